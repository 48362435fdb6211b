// What a session in a LiveKit room costs its worker against one that is p2p: both kinds in turn on
// one server.
import { setTimeout as delay } from 'node:timers/promises';
import type { PeerKind } from '../peers/light-peer.ts';
import type { TalkPlan } from '../peers/protocol.ts';
import { quantile } from '../report/stats.ts';
import { type Context, type Server, number } from '../scenario.ts';
import { Interval } from '../server-view.ts';
import { codecOf, look, settle, startFleet } from './setup.ts';

/** CPU of the worker a session, in cores, one pair a round. */
export interface RoomCost {
  readonly sessions: number;
  readonly rounds: readonly { readonly p2p: number; readonly room: number }[];
  /** Room against p2p: the median of the rounds. */
  readonly ratio: number;
}

/** Sessions of which the client is gone are over by then. */
const ENDED_MS = 2000;

async function costOf(
  context: Context,
  server: Server,
  kind: PeerKind,
  plan: TalkPlan,
): Promise<number> {
  const { options } = context;
  const sessions = number(options, 'from');
  const fleet = await startFleet(context, server, { processes: 1, codec: codecOf(options), kind });
  for (let i = 0; i < sessions; i++) {
    await fleet.openPatiently(plan);
  }
  await settle(options);
  const before = await look(server);
  await delay(number(options, 'hold') * 1000);
  const after = await look(server);
  await fleet.end();
  await delay(ENDED_MS);
  return before === undefined || after === undefined
    ? Number.NaN
    : new Interval(before, after).rate('mouthpiece_worker_cpu_seconds_total') / sessions;
}

/** @returns what `--from` sessions of each kind cost, `--rounds` times */
export async function compareWithP2p(
  context: Context,
  server: Server,
  plan: TalkPlan,
): Promise<RoomCost> {
  const rounds: { p2p: number; room: number }[] = [];
  for (let i = 0; i < number(context.options, 'rounds'); i++) {
    const p2p = await costOf(context, server, 'p2p', plan);
    const room = await costOf(context, server, 'livekit', plan);
    context.progress(
      `a session p2p ${(p2p * 100).toFixed(2)} %, in a room ${(room * 100).toFixed(2)} % of a core`,
    );
    rounds.push({ p2p, room });
  }
  return {
    sessions: number(context.options, 'from'),
    rounds,
    ratio: quantile(
      rounds.map(({ p2p, room }) => room / p2p),
      0.5,
    ),
  };
}

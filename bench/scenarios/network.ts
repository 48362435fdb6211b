// Bad networks: loss, jitter, delay, and a link that narrows and widens again. Through a relay of
// our own, so that it needs no root and is the same everywhere.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type JudgeFigures, openJudge } from '../judge.ts';
import type { Fleet } from '../peers/fleet.ts';
import { type Impairment, PERFECT } from '../peers/impaired-relay.ts';
import type { PeerFigures } from '../peers/peer-figures.ts';
import { mean, quantile } from '../report/stats.ts';
import {
  type Bound,
  type Context,
  type Outcome,
  type Scenario,
  type Server,
  atLeast,
  atMost,
  number,
  text,
} from '../scenario.ts';
import { benchSpeech, codecOf, firstFace, startFleet } from './setup.ts';

/** `rounds`: how often the browser judges it; where chance decides, once says little. */
const PROFILES: readonly {
  readonly name: string;
  readonly impairment: Impairment;
  readonly rounds?: number;
}[] = [
  { name: 'perfect', impairment: PERFECT },
  { name: 'loss 2 %', impairment: { ...PERFECT, lossPercent: 2, delayMs: 10 } },
  {
    name: 'loss 5 %, jitter 50 ms',
    impairment: { ...PERFECT, lossPercent: 5, delayMs: 10, jitterMs: 50 },
    rounds: 4,
  },
  { name: 'delay 150 ms', impairment: { ...PERFECT, delayMs: 150 } },
];
const NARROW: Impairment = { ...PERFECT, rateKbps: 250, delayMs: 20 };
const WIDE: Impairment = { ...PERFECT, delayMs: 20 };
const TALK = { cycleSeconds: 10, speechSeconds: 10, pace: 'burst' } as const;

interface ProfileResult {
  readonly name: string;
  readonly peers: readonly PeerFigures[];
  readonly judges: readonly JudgeFigures[];
  readonly judgeFirstFrameMs: number;
}

async function measureProfile(
  context: Context,
  server: Server,
  fleet: Fleet,
  { name, impairment, rounds: factor = 1 }: (typeof PROFILES)[number],
): Promise<ProfileResult> {
  const ids: number[] = [];
  for (let i = 0; i < number(context.options, 'peers'); i++) {
    // The network turns bad once they are connected: how a handshake fares is Chromium's to judge,
    // not the peer library's.
    const { peer } = await fleet.openPatiently(TALK, PERFECT);
    await fleet.impair(peer, impairment);
    ids.push(peer);
  }
  const rounds = number(context.options, 'judge') * factor;
  const judges: JudgeFigures[] = [];
  const setUps: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const judge = await openJudge(context, server, await firstFace(server), impairment);
    const file = readFileSync((await benchSpeech()).file);
    await judge.speak(new Int16Array(file.buffer, file.byteOffset, file.byteLength >> 1));
    await delay(number(context.options, 'hold') * 1000);
    judges.push(await judge.stats());
    setUps.push(judge.firstFrameMs);
    await judge.close();
  }
  if (rounds === 0) {
    await delay(number(context.options, 'hold') * 1000);
  }
  const { peers } = await fleet.figures();
  for (const id of ids) {
    await fleet.close(id);
  }
  const longest = Math.max(0, ...peers.map(({ longestGapMs }) => longestGapMs));
  context.record('longest gap of a profile', longest, 'ms');
  const heard = judges.map(
    ({ freezeCount, longestFreezeMs, jitterBufferMs, nackCount }) =>
      `${freezeCount} (longest ${longestFreezeMs.toFixed(0)} ms, ` +
      `buffer ${jitterBufferMs.toFixed(0)} ms, ${nackCount} NACKs)`,
  );
  context.progress(
    `${name.padEnd(24)} longest gap ${longest.toFixed(0)} ms  ` +
      `NACKs ${peers.reduce((sum, { nacks }) => sum + nacks, 0)}  ` +
      (judges.length === 0 ? '' : `freezes in Chromium: ${heard.join(', ')}`),
  );
  return { name, peers: structuredClone(peers), judges, judgeFirstFrameMs: quantile(setUps, 0.5) };
}

interface RateResult {
  readonly kbps: readonly number[];
  readonly narrowAt: number;
  readonly wideAt: number;
  readonly recoveredAfterSeconds: number;
  readonly beforeKbps: number;
  readonly duringKbps: number;
  readonly longestGapMs: number;
}

/** A link that carries less than the sender would send for a while. */
async function measureRate(context: Context, fleet: Fleet): Promise<RateResult> {
  const { options } = context;
  const { peer } = await fleet.openPatiently(TALK, WIDE);
  const figures = async (): Promise<PeerFigures> => (await fleet.figures()).peers[0]!;
  await delay(number(options, 'hold') * 1000);
  const narrowAt = (await figures()).receivedKbps.length;
  await fleet.impair(peer, NARROW);
  await delay(number(options, 'narrow') * 1000);
  const wideAt = (await figures()).receivedKbps.length;
  await fleet.impair(peer, WIDE);
  await delay(number(options, 'recover') * 1000);
  const { receivedKbps, longestGapMs } = await figures();
  await fleet.close(peer);
  const beforeKbps = quantile(receivedKbps.slice(Math.min(2, narrowAt - 1), narrowAt), 0.5);
  const back = receivedKbps.findIndex(
    (kbps, second) => second > wideAt && kbps >= 0.8 * beforeKbps,
  );
  return {
    kbps: receivedKbps,
    narrowAt,
    wideAt,
    beforeKbps,
    longestGapMs,
    duringKbps: mean(receivedKbps.slice(Math.ceil((narrowAt + wideAt) / 2), wideAt)),
    recoveredAfterSeconds: back < 0 ? Number.NaN : back - wideAt,
  };
}

async function run(context: Context): Promise<Outcome> {
  const server = await context.server({ WORKERS: '1' });
  const fleet = await startFleet(context, server, {
    processes: 1,
    codec: codecOf(context.options),
  });
  const results: ProfileResult[] = [];
  const chosen = PROFILES.filter(({ name }) => name.includes(text(context.options, 'only'))).slice(
    0,
    number(context.options, 'profiles'),
  );
  for (const profile of chosen) {
    results.push(await measureProfile(context, server, fleet, profile));
  }
  const rate =
    number(context.options, 'narrow') > 0 ? await measureRate(context, fleet) : undefined;
  if (rate !== undefined) {
    context.progress(
      `narrow link: ${rate.beforeKbps.toFixed(0)} → ${rate.duringKbps.toFixed(0)} kbit/s, ` +
        `back after ${rate.recoveredAfterSeconds} s`,
    );
  }

  const figures: Record<string, number> = {};
  const bounds: Bound[] = [];
  const rows: (string | number)[][] = [];
  for (const { name, peers, judges, judgeFirstFrameMs } of results) {
    const sum = (value: (peer: PeerFigures) => number): number =>
      peers.reduce((total, peer) => total + value(peer), 0);
    const longest = Math.max(0, ...peers.map(({ longestGapMs }) => longestGapMs));
    const freezes = judges.reduce((total, { freezeCount }) => total + freezeCount, 0);
    const longestFreezeMs = Math.max(...judges.map((judge) => judge.longestFreezeMs));
    const lost =
      sum(({ packetsMissed }) => packetsMissed) / sum(({ videoPackets }) => videoPackets);
    rows.push([
      name,
      longest,
      sum(({ gapsOver300 }) => gapsOver300),
      sum(({ framesLost }) => framesLost),
      sum(({ nacks }) => nacks),
      sum(({ keyFrames }) => keyFrames),
      lost * 100,
      judgeFirstFrameMs,
      judges.length === 0 ? Number.NaN : freezes,
      judges.length === 0 ? Number.NaN : longestFreezeMs,
      mean(judges.map(({ jitterBufferMs }) => jitterBufferMs)),
      mean(judges.map(({ concealedShare }) => concealedShare)) * 100,
    ]);
    figures[`${name}: longest gap ms`] = longest;
    // How soon a lost packet is asked for again is the receiver's art; where a browser judges, its
    // freezes count and not the light peers'.
    if (
      judges.length === 0 ||
      PROFILES.find((profile) => profile.name === name)!.impairment.lossPercent === 0
    ) {
      bounds.push(
        atMost(
          `${name}: gaps over 300 ms between showable frames`,
          sum(({ gapsOver300 }) => gapsOver300),
          0,
        ),
      );
    }
    if (judges.length === 0) {
      continue;
    }
    figures[`${name}: Chromium freezes`] = freezes;
    figures[`${name}: Chromium seconds watched`] = judges.length * number(context.options, 'hold');
    figures[`${name}: Chromium longest freeze ms`] = longestFreezeMs;
    figures[`${name}: Chromium total freeze ms`] = judges.reduce(
      (total, { totalFreezesDuration }) => total + 1000 * totalFreezesDuration,
      0,
    );
    figures[`${name}: Chromium socket to first frame ms`] = judgeFirstFrameMs;
    bounds.push(atMost(`${name}: Chromium's longest freeze`, longestFreezeMs, 300, 'ms'));
  }
  if (rate !== undefined) {
    Object.assign(figures, {
      beforeKbps: rate.beforeKbps,
      duringKbps: rate.duringKbps,
      recoveredAfterSeconds: rate.recoveredAfterSeconds,
      narrowLongestGapMs: rate.longestGapMs,
    });
    bounds.push(
      atMost('narrow link: rate sent into 250 kbit/s', rate.duringKbps, 275, 'kbit/s'),
      atMost(
        'narrow link: back to 80 % of the rate before',
        rate.recoveredAfterSeconds,
        number(context.options, 'recover'),
        's',
      ),
      atLeast('narrow link: rate before it', rate.beforeKbps, 100, 'kbit/s'),
    );
  }
  return {
    figures,
    bounds,
    tables: [
      {
        title: 'each profile',
        columns: [
          '',
          'longest gap ms',
          'gaps > 300',
          'frames lost',
          'NACKs',
          'key frames',
          'missed %',
          'Chromium set-up ms',
          'its freezes',
          'longest ms',
          'its buffer ms',
          'concealed %',
        ],
        rows,
      },
    ],
    plots:
      rate === undefined
        ? []
        : [
            {
              kind: 'lines',
              title: 'Rate received over a link that narrows to 250 kbit/s and widens again',
              x: 's',
              y: 'kbit/s',
              lines: [
                { name: 'received', points: rate.kbps.map((kbps, second) => [second, kbps]) },
              ],
              limits: [{ name: '250 kbit/s', y: 250 }],
            },
          ],
    notes: [
      'A gap is the time between two frames that could be shown, each with all before it ' +
        'complete (retransmissions waited for); a receiver with a jitter buffer hides those ' +
        'shorter than its buffer.',
      'Jitter delays each datagram by up to so much without letting one overtake another, ' +
        'both ways; loss is even and both ways, so that NACKs and reports are lost too.',
      'Light peers estimate the path by loss and queueing delay and send REMB.',
    ],
  };
}

export const network: Scenario = {
  name: 'network',
  about:
    'Loss, jitter, delay and a link that narrows: freezes, repair, and whether the bitrate ' +
    'obeys and comes back.',
  options: {
    peers: 2,
    hold: 15,
    narrow: 12,
    recover: 25,
    profiles: 4,
    only: '',
    judge: 1,
    codec: 'vp8',
  },
  small: { peers: 1, hold: 3, narrow: 0, recover: 0, profiles: 3, judge: 0 },
  run,
};

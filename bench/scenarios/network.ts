// Bad networks: loss, jitter, delay, and a link that narrows and widens again. Through a relay of our own, so that it needs no root and is the same everywhere.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type JudgeFigures, openJudge } from '../judge.ts';
import type { Fleet } from '../peers/fleet.ts';
import { type Impairment, PERFECT } from '../peers/impaired-relay.ts';
import type { PeerFigures } from '../peers/light-peer.ts';
import { mean, quantile } from '../report/stats.ts';
import { type Bound, type Context, type Outcome, type Scenario, type Server, atLeast, atMost, number } from '../scenario.ts';
import { benchSpeech, codecOf, firstFace, startFleet } from './common.ts';

const PROFILES: readonly { readonly name: string; readonly impairment: Impairment }[] = [
  { name: 'perfect', impairment: PERFECT },
  { name: 'loss 2 %', impairment: { ...PERFECT, lossPercent: 2, delayMs: 10 } },
  { name: 'loss 5 %, jitter 50 ms', impairment: { ...PERFECT, lossPercent: 5, delayMs: 10, jitterMs: 50 } },
  { name: 'delay 150 ms', impairment: { ...PERFECT, delayMs: 150 } },
];
const NARROW: Impairment = { ...PERFECT, rateKbps: 250, delayMs: 20 };
const WIDE: Impairment = { ...PERFECT, delayMs: 20 };
const TALK = { cycleSeconds: 10, speechSeconds: 10, pace: 'burst' } as const;

interface ProfileResult { readonly name: string; readonly peers: readonly PeerFigures[]; readonly judge: JudgeFigures | null; readonly judgeFirstFrameMs: number }

async function measureProfile(context: Context, server: Server, fleet: Fleet, { name, impairment }: (typeof PROFILES)[number]): Promise<ProfileResult> {
  const ids: number[] = [];
  for (let i = 0; i < number(context.options, 'peers'); i += 1) {
    // The network turns bad once they are connected: how a handshake fares is Chromium's to judge, not the peer library's.
    const { peer } = await fleet.openPatiently(TALK, PERFECT);
    await fleet.impair(peer, impairment);
    ids.push(peer);
  }
  const judge = number(context.options, 'judge') > 0 ? await openJudge(context, server, await firstFace(server), impairment) : null;
  if (judge !== null) {
    const file = readFileSync((await benchSpeech()).file);
    await judge.speak(new Int16Array(file.buffer, file.byteOffset, file.byteLength >> 1));
  }
  await delay(number(context.options, 'hold') * 1000);
  const { peers } = await fleet.figures();
  const stats = judge === null ? null : await judge.stats();
  await judge?.close();
  for (const id of ids) await fleet.close(id);
  const longest = Math.max(...peers.map(({ longestGapMs }) => longestGapMs));
  context.progress(`${name.padEnd(24)} longest gap ${longest.toFixed(0)} ms  NACKs ${peers.reduce((sum, { nacks }) => sum + nacks, 0)}  ${stats === null ? '' : `Chromium: ${stats.freezeCount} freezes, ${stats.framesDecoded} frames`}`);
  return { name, peers: structuredClone(peers), judge: stats, judgeFirstFrameMs: judge?.firstFrameMs ?? Number.NaN };
}

interface RateResult { readonly kbps: readonly number[]; readonly narrowAt: number; readonly wideAt: number; readonly recoveredAfterSeconds: number; readonly beforeKbps: number; readonly duringKbps: number; readonly longestGapMs: number }

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
  const back = receivedKbps.findIndex((kbps, second) => second > wideAt && kbps >= 0.8 * beforeKbps);
  return {
    kbps: receivedKbps, narrowAt, wideAt, beforeKbps, longestGapMs, duringKbps: mean(receivedKbps.slice(Math.ceil((narrowAt + wideAt) / 2), wideAt)),
    recoveredAfterSeconds: back < 0 ? Number.NaN : back - wideAt,
  };
}

async function run(context: Context): Promise<Outcome> {
  const server = await context.server({ WORKERS: '1' });
  const fleet = await startFleet(context, server, { processes: 1, codec: codecOf(context.options) });
  const results: ProfileResult[] = [];
  for (const profile of PROFILES.slice(0, number(context.options, 'profiles'))) results.push(await measureProfile(context, server, fleet, profile));
  const rate = number(context.options, 'narrow') > 0 ? await measureRate(context, fleet) : null;
  if (rate !== null) context.progress(`narrow link: ${rate.beforeKbps.toFixed(0)} → ${rate.duringKbps.toFixed(0)} kbit/s, back after ${rate.recoveredAfterSeconds} s`);

  const figures: Record<string, number> = {};
  const bounds: Bound[] = [];
  const rows: (string | number)[][] = [];
  for (const { name, peers, judge, judgeFirstFrameMs } of results) {
    const sum = (value: (peer: PeerFigures) => number): number => peers.reduce((total, peer) => total + value(peer), 0);
    const longest = Math.max(...peers.map(({ longestGapMs }) => longestGapMs));
    const lost = sum(({ packetsMissed }) => packetsMissed) / sum(({ videoPackets }) => videoPackets);
    rows.push([name, longest, sum(({ gapsOver300 }) => gapsOver300), sum(({ framesLost }) => framesLost), sum(({ nacks }) => nacks), sum(({ keyFrames }) => keyFrames), lost * 100, judgeFirstFrameMs, judge?.freezeCount ?? Number.NaN, judge?.jitterBufferMs ?? Number.NaN, (judge?.concealedShare ?? Number.NaN) * 100]);
    figures[`${name}: longest gap ms`] = longest;
    // How soon a lost packet is asked for again is the receiver's art; where a browser judges, its freezes count and not the light peers'.
    if (judge === null || PROFILES.find((profile) => profile.name === name)!.impairment.lossPercent === 0) bounds.push(atMost(`${name}: gaps over 300 ms between showable frames`, sum(({ gapsOver300 }) => gapsOver300), 0));
    if (judge === null) continue;
    figures[`${name}: Chromium freezes`] = judge.freezeCount;
    figures[`${name}: Chromium socket to first frame ms`] = judgeFirstFrameMs;
    bounds.push(atMost(`${name}: Chromium's total freeze`, judge.totalFreezesDuration * 1000, 300, 'ms'));
  }
  if (rate !== null) {
    Object.assign(figures, { beforeKbps: rate.beforeKbps, duringKbps: rate.duringKbps, recoveredAfterSeconds: rate.recoveredAfterSeconds, narrowLongestGapMs: rate.longestGapMs });
    bounds.push(atMost('narrow link: rate sent into 250 kbit/s', rate.duringKbps, 275, 'kbit/s'), atMost('narrow link: back to 80 % of the rate before', rate.recoveredAfterSeconds, number(context.options, 'recover'), 's'), atLeast('narrow link: rate before it', rate.beforeKbps, 100, 'kbit/s'));
  }
  return {
    figures, bounds,
    tables: [{ title: 'each profile', columns: ['', 'longest gap ms', 'gaps > 300', 'frames lost', 'NACKs', 'key frames', 'missed %', 'Chromium set-up ms', 'its freezes', 'its buffer ms', 'concealed %'], rows }],
    plots: rate === null ? [] : [{
      kind: 'lines', title: 'Rate received over a link that narrows to 250 kbit/s and widens again', x: 's', y: 'kbit/s', lines: [{ name: 'received', points: rate.kbps.map((kbps, second) => [second, kbps]) }], limits: [{ name: '250 kbit/s', y: 250 }],
    }],
    notes: [
      'A gap is the time between two frames that could be shown, each with all before it complete (retransmissions waited for); a receiver with a jitter buffer hides those shorter than its buffer.',
      'Jitter delays each datagram by up to so much without letting one overtake another, both ways; loss is even and both ways, so that NACKs and reports are lost too.',
      'Light peers estimate the path by loss and queueing delay and send REMB.',
    ],
  };
}

export const network: Scenario = {
  name: 'network',
  about: 'Loss, jitter, delay and a link that narrows: freezes, repair, and whether the bitrate obeys and comes back.',
  options: { peers: 2, hold: 15, narrow: 12, recover: 25, profiles: 4, judge: 1, codec: 'vp8' },
  small: { peers: 1, hold: 3, narrow: 0, recover: 0, profiles: 3, judge: 0 },
  run,
};

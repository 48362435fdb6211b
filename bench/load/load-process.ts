// A process that makes load: it lets sessions arrive when they are due, and keeps what it sees.
// Started by scenarios/load.ts, ends when its parent goes.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { SPEECH_RATE } from '../../src/media/timeline.ts';
import type { VideoCodec } from '../../src/media/coded-frame.ts';
import { answerCommands } from '../child-process.ts';
import {
  LightPeer,
  type PeerKind,
  type PeerOptions,
  type PeerTarget,
} from '../peers/light-peer.ts';
import { type Arrival, type TalkPattern, utterancesOf } from './arrivals.ts';
import { type LoadData, LoadRecord } from './load-data.ts';

export interface LoadTarget extends PeerTarget {
  readonly faceId: string;
}

export interface LoadSetUp {
  readonly targets: readonly LoadTarget[];
  readonly kind: PeerKind;
  readonly codec: VideoCodec;
  /** Raw PCM16 16 kHz mono file that sessions speak. */
  readonly speechFile: string;
  readonly spanSeconds: number;
  readonly pattern: TalkPattern;
}

export type LoadCommand =
  | { readonly op: 'setUp'; readonly setUp: LoadSetUp }
  /** Answers with what was seen, when the last session is over. */
  | { readonly op: 'run'; readonly beginUnixMs: number; readonly arrivals: readonly Arrival[] }
  | { readonly op: 'progress' };

export interface LoadAnswers {
  setUp: undefined;
  run: LoadData;
  progress: { readonly live: number; readonly started: number; readonly failed: number };
}

const SAMPLE_MS = 500;
const REASON_CHARACTERS = 100;
const TOKEN = { maxIdleTime: 86_400, maxSessionLength: 86_400 };

const unixMs = (): number => performance.timeOrigin + performance.now();
/** A time of this process' clock on that of all. */
const toUnixMs = (ms: number): number => performance.timeOrigin + ms;

async function until(dueMs: number): Promise<void> {
  // A timer may fire a little early.
  for (let left = dueMs - unixMs(); left > 0; left = dueMs - unixMs()) {
    await delay(left);
  }
}

/** What was counted of a peer that is live. */
interface Counted {
  frames: number;
  framesLost: number;
  gapsOver300: number;
  bytes: number;
  atMs: number;
}

let setUp: LoadSetUp;
let speech = new Int16Array(0);
let record: LoadRecord;
const live = new Map<LightPeer, { readonly target: string; readonly counted: Counted }>();
const told = { started: 0, failed: 0 };

/** `seconds` of the speech, from a place that differs. */
function cut(fromSeconds: number, seconds: number): Int16Array {
  const from = Math.round(fromSeconds * SPEECH_RATE) % speech.length;
  const out = new Int16Array(Math.round(seconds * SPEECH_RATE));
  for (let at = 0; at < out.length; at++) {
    out[at] = speech[(from + at) % speech.length]!;
  }
  return out;
}

/** Adds what has arrived since the last time. */
function sample(peer: LightPeer): void {
  const { target, counted } = live.get(peer)!;
  const { frames, framesLost, gapsOver300, bytes } = peer.figures;
  const nowMs = unixMs();
  const span = record.at(target, nowMs / 1000);
  span.count('frames', frames - counted.frames);
  span.count('framesLost', framesLost - counted.framesLost);
  span.count('gaps', gapsOver300 - counted.gapsOver300);
  span.count('kilobits', ((bytes - counted.bytes) * 8) / 1000);
  span.count('liveSeconds', (nowMs - counted.atMs) / 1000);
  Object.assign(counted, { frames, framesLost, gapsOver300, bytes, atMs: nowMs });
}

const optionsFor = (target: LoadTarget): PeerOptions => ({
  target,
  kind: setUp.kind,
  codec: setUp.codec,
  faceId: target.faceId,
  token: TOKEN,
});

/** One session from its arrival to its end. */
async function visit(arrival: Arrival, beginUnixMs: number): Promise<void> {
  const target = setUp.targets[arrival.target]!;
  const dueMs = beginUnixMs + arrival.atSeconds * 1000;
  await until(dueMs);
  const span = record.at(target.url, dueMs / 1000);
  const lagMs = unixMs() - dueMs;
  span.count('due');
  span.time('lag', lagMs);
  let peer: LightPeer;
  try {
    peer = await LightPeer.connect(optionsFor(target));
  } catch (error) {
    told.failed++;
    span.count('failed');
    span.time('setUp', Number.POSITIVE_INFINITY);
    record.reason(reasonOf('did not start', (error as Error).message));
    return;
  }
  told.started++;
  span.count('started');
  span.time('setUp', lagMs + peer.figures.setUp.firstFrame);
  const { frames, framesLost, gapsOver300, bytes } = peer.figures;
  const counted = { frames, framesLost, gapsOver300, bytes, atMs: unixMs() };
  live.set(peer, { target: target.url, counted });
  if (arrival.talks) {
    await talk(peer, target.url, arrival, dueMs);
  }
  const left = Math.max(0, dueMs + arrival.staySeconds * 1000 - unixMs());
  await Promise.race([delay(left, undefined, { ref: false }), peer.over]);
  if (peer.figures.state === 'over') {
    record.at(target.url, unixMs() / 1000).count('lost');
    record.reason(reasonOf('ended', peer.figures.ending));
  }
  sample(peer);
  live.delete(peer);
  await peer.close();
}

/** Speaks when it is due, whether the face has answered or not. */
async function talk(
  peer: LightPeer,
  target: string,
  { staySeconds, seed }: Arrival,
  arrivedMs: number,
): Promise<void> {
  const dues: number[] = [];
  for (const { atSeconds, seconds } of utterancesOf(setUp.pattern, staySeconds, seed)) {
    const dueMs = arrivedMs + atSeconds * 1000;
    await Promise.race([until(dueMs), peer.over]);
    if (peer.figures.state === 'over') {
      break;
    }
    dues.push(dueMs);
    await peer.speak(cut(seed + atSeconds, seconds), setUp.pattern.pace);
  }
  // The last one's answer: no later than its next would be.
  await Promise.race([delay(setUp.pattern.pause[0] * 1000), peer.over]);
  for (const [index, dueMs] of dues.entries()) {
    const span = record.at(target, dueMs / 1000);
    const { speakMs } = peer.figures.utterances[index]!;
    span.count('utterances');
    span.time(
      'response',
      speakMs === undefined ? Number.POSITIVE_INFINITY : toUnixMs(speakMs) - dueMs,
    );
  }
}

const reasonOf = (what: string, why = 'without a word'): string =>
  `${what}: ${why.slice(0, REASON_CHARACTERS)}`;

/** A session before the load: the first one compiles what all run, which takes half a second. */
async function warmUp(): Promise<void> {
  const target = setUp.targets[0]!;
  const peer = await LightPeer.connect(optionsFor(target)).catch(() => undefined);
  await delay(SAMPLE_MS);
  await peer?.close();
}

async function run(beginUnixMs: number, arrivals: readonly Arrival[]): Promise<LoadData> {
  record = new LoadRecord(setUp.spanSeconds);
  let dueMs = performance.now() + SAMPLE_MS;
  const timer = setInterval(() => {
    // Late ticks tell that this process has no time: then it, not the server, is measured.
    const lagMs = Math.max(0, performance.now() - dueMs);
    dueMs = performance.now() + SAMPLE_MS;
    record.at(setUp.targets[0]!.url, unixMs() / 1000).time('lag', lagMs);
    for (const peer of live.keys()) {
      sample(peer);
    }
  }, SAMPLE_MS);
  try {
    await Promise.all(arrivals.map((arrival) => visit(arrival, beginUnixMs)));
  } finally {
    clearInterval(timer);
  }
  return record.toData([]);
}

async function obey(command: LoadCommand): Promise<LoadAnswers[LoadCommand['op']]> {
  switch (command.op) {
    case 'setUp': {
      ({ setUp } = command);
      const file = readFileSync(setUp.speechFile);
      speech = new Int16Array(file.buffer, file.byteOffset, file.byteLength >> 1);
      await warmUp();
      return undefined;
    }
    case 'run':
      return await run(command.beginUnixMs, command.arrivals);
    case 'progress':
      break;
  }
  return { live: live.size, ...told };
}

answerCommands('load process', obey);

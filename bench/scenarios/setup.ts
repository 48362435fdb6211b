// What most scenarios begin with: speech to send, a face, CPUs for the load, and a fleet of peers.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { spareCpus } from '../cpus.ts';
import { SPEECH_RATE } from '../../src/media/timeline.ts';
import type { VideoCodec } from '../../src/media/coded-frame.ts';
import { synthesize, trim } from '../../test/harness/speech.ts';
import { Fleet, type FleetOptions } from '../peers/fleet.ts';
import type { PeerKind } from '../peers/light-peer.ts';
import { ROOT } from '../run.ts';
import { type Context, type Options, type Server, type Target, number, text } from '../scenario.ts';
import { type Scrape, scrape } from '../server-view.ts';

export const OUT = path.join(ROOT, 'bench/out');

/** Sentences of the canonical load; together they hold every sound of English more than once. */
const SENTENCES = [
  'Peter Piper picked a peck of pickled peppers before the market opened.',
  'The quick brown fox jumps over the lazy dog while five wizards box.',
  'Please call me back about the meeting that we moved to Friday evening.',
  'She sells sea shells, and he buys much bread from both of the bakers.',
  'Our weather today is mild with some fog, turning to sun by the afternoon.',
];

export interface BenchSpeech {
  readonly file: string;
  /** Where each sentence begins, with its first sound. */
  readonly startsSeconds: readonly number[];
}

let made: Promise<BenchSpeech> | undefined;

/** The canonical speech: sentences without quiet before or after, a quarter second between them. */
export const benchSpeech = (): Promise<BenchSpeech> =>
  (made ??= (async () => {
    const parts: Int16Array[] = [];
    const startsSeconds: number[] = [];
    let samples = 0;
    for (const sentence of SENTENCES) {
      const pcm = trim((await synthesize(sentence, 'slt')).pcm);
      startsSeconds.push(samples / SPEECH_RATE);
      const pause = new Int16Array(SPEECH_RATE / 4);
      parts.push(pcm, pause);
      samples += pcm.length + pause.length;
    }
    mkdirSync(OUT, { recursive: true });
    const file = path.join(OUT, 'speech.raw');
    writeFileSync(
      file,
      Buffer.concat(
        parts.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength)),
      ),
    );
    return { file, startsSeconds };
  })());

/** The first face a key can use. @throws Error when there is none. */
export async function firstFace({ url, apiKey }: Target): Promise<string> {
  const response = await fetch(`${url}/faces`, { headers: { 'x-service-api-key': apiKey } });
  const faces = response.ok ? ((await response.json()) as { id: string }[]) : [];
  if (faces[0] === undefined) {
    throw new Error(`GET /faces answered ${response.status} and no face`);
  }
  return faces[0].id;
}

export const codecOf = (options: Options): VideoCodec => {
  const codec = text(options, 'codec');
  if (codec !== 'vp8' && codec !== 'h264') {
    throw new Error(`--codec must be vp8 or h264, not ${codec}`);
  }
  return codec;
};

export const kindOf = (options: Options): PeerKind => {
  const kind = text(options, 'kind');
  if (kind !== 'p2p' && kind !== 'livekit') {
    throw new Error(`--kind must be p2p or livekit, not ${kind}`);
  }
  return kind;
};

/** Lets what a new load begins with pass: key frames, caches, compiling. `--settle` seconds. */
export const settle = (options: Options): Promise<void> => delay(number(options, 'settle') * 1000);

export async function startFleet(
  context: Context,
  server: Server,
  more: Partial<FleetOptions> & Pick<FleetOptions, 'processes'>,
): Promise<Fleet> {
  const speech = await benchSpeech();
  const cpus = spareCpus(server.pid);
  const fleet = await Fleet.start({
    target: { url: server.url, apiKey: server.apiKey },
    codec: 'vp8',
    faceId: await firstFace(server),
    speechFile: speech.file,
    token: { maxIdleTime: 86_400, maxSessionLength: 86_400 },
    // Beside a server of our own, the load keeps off the workers' cores.
    ...(cpus === undefined ? {} : { cpus }),
    ...more,
  });
  context.defer(() => fleet.end());
  return fleet;
}

/**
 * The server's own figures; undefined where they are out of reach: a server elsewhere that keeps
 * /metrics to itself.
 */
export async function look(server: Server): Promise<Scrape | undefined> {
  try {
    return await scrape(server.url);
  } catch (error) {
    if (server.pid !== undefined) {
      throw error;
    }
    return undefined;
  }
}

export const OUTSIDE_NOTE =
  'The server is elsewhere and shows no /metrics: what only it can know (lateness, CPU, ' +
  'memory, its session statistics) is missing.';

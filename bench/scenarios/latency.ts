// How long from speech sent to lips and sound, for audio in bursts and paced in real time; and from
// SKIP to silence.
import { rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { PeerFigures, Utterance } from '../peers/peer-figures.ts';
import type { Fleet } from '../peers/fleet.ts';
import { decodeLuma, lipOnsets } from '../peers/lips.ts';
import { isEnough, tailQuantile } from '../report/stats.ts';
import {
  type Bound,
  type Context,
  type Outcome,
  type Scenario,
  atMost,
  number,
} from '../scenario.ts';
import { Interval, type Scrape } from '../server-view.ts';
import { OUT, OUTSIDE_NOTE, benchSpeech, codecOf, look, startFleet } from './setup.ts';

type Pace = 'burst' | 'realtime';

interface PaceResult {
  readonly pace: Pace;
  readonly lips: number[];
  readonly sound: number[];
  readonly speak: number[];
  readonly inside: Interval | undefined;
}

/** Until SILENT was seen, or long enough after. */
async function untilSilent(fleet: Fleet, index: number, limitMs: number): Promise<Utterance> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const utterance = (await fleet.figures()).peers[0]!.utterances[index]!;
    if (utterance.silentMs !== undefined || performance.now() > deadline) {
      return utterance;
    }
    await delay(50);
  }
}

async function measurePace(
  context: Context,
  fleet: Fleet,
  pace: Pace,
  before: () => Promise<Scrape | undefined>,
): Promise<PaceResult> {
  const utterances = number(context.options, 'utterances');
  const seconds = number(context.options, 'seconds');
  const { startsSeconds } = await benchSpeech();
  const scraped = await before();
  const saidAtMs: number[] = [];
  const { peer } = await fleet.open(undefined, true);
  await delay(2500);
  for (let i = 0; i < utterances; i++) {
    await fleet.speak(peer, pace, startsSeconds[i % startsSeconds.length]!, seconds);
    const { sentMs, speakMs, audibleMs } = await untilSilent(fleet, i, seconds * 1000 + 4000);
    context.record(`${pace}: speech to SPEAK`, (speakMs ?? Number.NaN) - sentMs, 'ms');
    context.record(`${pace}: speech to sound`, (audibleMs ?? Number.NaN) - sentMs, 'ms');
    saidAtMs.push(performance.now());
    context.progress(
      `${pace} ${String(i + 1).padStart(3)}/${utterances}  ` +
        `SPEAK ${((speakMs ?? Number.NaN) - sentMs).toFixed(0)} ms  ` +
        `sound ${((audibleMs ?? Number.NaN) - sentMs).toFixed(0)} ms`,
    );
    // Not in step with the frame clock, so that every phase of it is met.
    await delay(400 + Math.random() * 100);
  }
  const all = (await fleet.figures()).peers[0]!.utterances;
  const file = path.join(
    OUT,
    `latency-${process.pid}-${pace}.${codecOf(context.options) === 'vp8' ? 'ivf' : 'h264'}`,
  );
  const { arrivalsMs } = await fleet.dump(peer, file);
  const spans = all.map(({ sentMs, audibleMs, silentMs }) => ({
    sentMs,
    fromMs: (audibleMs ?? sentMs) + 200,
    toMs: (silentMs ?? sentMs + seconds * 1000) - 300,
  }));
  const lips = lipOnsets(await decodeLuma(file), arrivalsMs, spans);
  rmSync(file);
  for (const [index, ms] of lips.entries()) {
    context.record(`${pace}: speech to lips`, ms, 'ms', saidAtMs[index]);
  }
  const after = await before();
  await fleet.close(peer);
  return {
    pace,
    lips,
    inside: scraped !== undefined && after !== undefined ? new Interval(scraped, after) : undefined,
    sound: all.map(({ sentMs, audibleMs }) => (audibleMs ?? Number.NaN) - sentMs),
    speak: all.map(({ sentMs, speakMs }) => (speakMs ?? Number.NaN) - sentMs),
  };
}

/**
 * Interrupts a speaking face.
 * @returns milliseconds from SKIP to the last packet with sound, for each try.
 */
async function measureInterrupts(context: Context, fleet: Fleet): Promise<number[]> {
  const found: number[] = [];
  const { peer } = await fleet.openPatiently();
  for (let i = 0; i < number(context.options, 'interrupts'); i++) {
    await fleet.speak(peer, 'burst', i, 4);
    await delay(1000 + Math.random() * 100);
    found.push(await fleet.skip(peer));
    context.record('SKIP to silence', found.at(-1)!, 'ms');
  }
  await fleet.close(peer);
  return found;
}

const clean = (values: readonly number[]): number[] => values.filter(Number.isFinite);

async function run(context: Context): Promise<Outcome> {
  const server = await context.server({ WORKERS: '1' });
  const codec = codecOf(context.options);
  const fleet = await startFleet(context, server, { processes: 1, codec });
  const load = number(context.options, 'load');
  if (load > 0) {
    const background = await startFleet(context, server, { processes: 1, codec });
    for (let i = 0; i < load; i++) {
      await background.openPatiently({ cycleSeconds: 10, speechSeconds: 10, pace: 'burst' });
    }
  }
  const look1 = (): Promise<Scrape | undefined> => look(server);
  const results = [
    await measurePace(context, fleet, 'burst', look1),
    await measurePace(context, fleet, 'realtime', look1),
  ];
  const interrupts = await measureInterrupts(context, fleet);
  const setUp = await measureSetUps(context, fleet);

  const figures: Record<string, number> = {
    interruptP50Ms: tailQuantile(interrupts, 0.5),
    interruptP99Ms: tailQuantile(interrupts, 0.99),
    setUpP50Ms: tailQuantile(setUp, 0.5),
    setUpP99Ms: tailQuantile(setUp, 0.99),
  };
  const bounds: Bound[] = [];
  const rows: (string | number)[][] = [];
  for (const { pace, lips, sound, speak, inside } of results) {
    for (const [name, values] of [
      ['lips', lips],
      ['sound', sound],
      ['SPEAK', speak],
    ] as const) {
      figures[`${pace}${name[0]!.toUpperCase()}${name.slice(1).toLowerCase()}P50Ms`] = tailQuantile(
        clean(values),
        0.5,
      );
      figures[`${pace}${name[0]!.toUpperCase()}${name.slice(1).toLowerCase()}P99Ms`] = tailQuantile(
        clean(values),
        0.99,
      );
      rows.push([
        `${pace}: ${name}, outside`,
        tailQuantile(clean(values), 0.5),
        tailQuantile(clean(values), 0.9),
        tailQuantile(clean(values), 0.99),
        clean(values).length,
      ]);
    }
    figures[`${pace}LipsSeen`] = clean(lips).length / lips.length;
    if (inside === undefined) {
      continue;
    }
    const paceLabel = pace === 'burst' ? 'burst' : 'paced';
    const utterances = inside.increase('mouthpiece_audio_to_lips_seconds_count', {
      pace: paceLabel,
    });
    const fromServer = (q: number): number =>
      isEnough(utterances, q)
        ? inside.quantile('mouthpiece_audio_to_lips_seconds', q, { pace: paceLabel }) * 1000
        : Number.NaN;
    const [p50, p90, p99] = [fromServer(0.5), fromServer(0.9), fromServer(0.99)];
    figures[`${pace}LedgerP50Ms`] = p50;
    figures[`${pace}LedgerP99Ms`] = p99;
    rows.push([`${pace}: lips, server's statistics`, p50, p90, p99, utterances]);
  }
  rows.push([
    'SKIP to silence, outside',
    tailQuantile(interrupts, 0.5),
    tailQuantile(interrupts, 0.9),
    tailQuantile(interrupts, 0.99),
    interrupts.length,
  ]);
  rows.push([
    'token to first frame, outside',
    tailQuantile(setUp, 0.5),
    tailQuantile(setUp, 0.9),
    tailQuantile(setUp, 0.99),
    setUp.length,
  ]);
  const burst = results[0]!;
  if (burst.inside !== undefined) {
    bounds.push(
      atMost(
        "burst: audio to lips, server's statistics, median",
        figures['burstLedgerP50Ms']!,
        60,
        'ms',
      ),
    );
    if (Number.isFinite(figures['burstLedgerP99Ms'])) {
      bounds.push(
        atMost(
          "burst: audio to lips, server's statistics, p99",
          figures['burstLedgerP99Ms']!,
          120,
          'ms',
        ),
      );
    }
  }
  bounds.push(
    atMost('burst: audio to lips, from outside, median', figures['burstLipsP50Ms']!, 100, 'ms'),
    atMost(
      'real time: audio to lips, from outside, median',
      figures['realtimeLipsP50Ms']!,
      150,
      'ms',
    ),
    isEnough(interrupts.length, 0.99)
      ? atMost('SKIP to silence, p99', figures['interruptP99Ms']!, 100, 'ms')
      : atMost(
          `SKIP to silence, longest of ${interrupts.length}`,
          Math.max(...interrupts),
          100,
          'ms',
        ),
  );
  return {
    figures,
    bounds,
    tables: [{ title: 'milliseconds', columns: ['', 'p50', 'p90', 'p99', 'n'], rows }],
    plots: [
      {
        kind: 'distribution',
        title: 'From sending speech to moving lips (decoded, outside)',
        x: 'ms',
        samples: results.map(({ pace, lips }) => ({ name: pace, values: clean(lips) })),
      },
      {
        kind: 'distribution',
        title: 'From sending speech to sound (outside)',
        x: 'ms',
        samples: results.map(({ pace, sound }) => ({ name: pace, values: clean(sound) })),
      },
    ],
    notes: [
      'Outside: from the first chunk of speech handed to the socket to the arrival of the ' +
        'last packet of the first frame whose decoded mouth moves; the mouth is found as the ' +
        'blocks that move with speech and not without; the motion of the head is taken out.',
      'A sentence may begin with a sound that hardly moves the lips, so lips seen from ' +
        'outside come later than the first frame with an articulation in it, which is what ' +
        "the server's own statistics counts.",
      "token to first frame includes the 100 ms that the peer's DTLS library sleeps in the " +
        'client role.',
      ...(burst.inside === undefined ? [OUTSIDE_NOTE] : []),
    ],
  };
}

async function measureSetUps(context: Context, fleet: Fleet): Promise<number[]> {
  const found: PeerFigures[] = [];
  for (let i = 0; i < number(context.options, 'connects'); i++) {
    const { peer, figures } = await fleet.openPatiently();
    found.push(figures);
    context.record('token to first frame', figures.setUp.firstFrame, 'ms');
    await fleet.close(peer);
  }
  context.progress(`${found.length} connects`);
  return found.map(({ setUp }) => setUp.firstFrame);
}

export const latency: Scenario = {
  name: 'latency',
  about:
    'From speech sent to moving lips and sound (bursts and real time), from SKIP to ' +
    'silence, from token to picture.',
  options: { utterances: 30, seconds: 2, interrupts: 20, connects: 20, codec: 'vp8', load: 0 },
  small: { utterances: 1, seconds: 1.5, interrupts: 1, connects: 1 },
  run,
};

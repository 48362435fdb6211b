// Hours of conversation: does the picture drift against the clock or the sound, does memory grow,
// does quality fade?
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { type LiveMemory, liveMemory } from '../live-memory.ts';
import type { PeerFigures } from '../peers/peer-figures.ts';
import { floorSlope, mean, quantile, slope } from '../report/stats.ts';
import {
  type Bound,
  type Context,
  type Outcome,
  type Scenario,
  atMost,
  number,
} from '../scenario.ts';
import { Interval, type Scrape } from '../server-view.ts';
import { OUTSIDE_NOTE, codecOf, look, startFleet } from './setup.ts';

/** Below this, noise over so short a time says nothing about an hour. */
const MIN_MINUTES_FOR_SLOPES = 10;
const MS_PER_HOUR = 3_600_000;
/**
 * Garbage makes a sawtooth of the resident size (7 MB high, a tooth in 7.5 minutes with four
 * sessions), through which a regression says what its teeth happen to say: 15 MB/h of a server that
 * was flat. So it is the lowest reading of each of these windows that is judged, and what is alive
 * after a forced collection.
 */
const WINDOW_MINUTES = 10;
/**
 * Seldom enough that the collections it forces, some ten milliseconds on each thread, are not what
 * the frames' lateness tells of.
 */
const COLLECTIONS = 12;
const READING_MS = 10_000;
const READINGS_PER_POINT = 6;

interface Reading {
  readonly minutes: number;
  readonly rssMb: number;
}
interface Point {
  readonly minutes: number;
  readonly latenessP99Ms: number;
  readonly cores: number;
  readonly lipsP99Ms: number;
  readonly machineLoad: number;
}

const mb = ({ heapBytes, mallocBytes }: LiveMemory): number => (heapBytes + mallocBytes) / 2 ** 20;

/** Milliseconds an hour by which a course of values moves, averaged over the peers. */
const drift = (
  peers: readonly PeerFigures[],
  value: (entry: PeerFigures['course'][number]) => number,
): number =>
  mean(
    peers
      .map(({ course }) =>
        slope(
          course
            .filter((entry) => Number.isFinite(value(entry)))
            .map((entry) => [entry.atMs / MS_PER_HOUR, value(entry)] as const),
        ),
      )
      .filter(Number.isFinite),
  );

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const minutes = number(options, 'minutes');
  const server = await context.server({ WORKERS: '1' }, { inspect: true });
  const fleet = await startFleet(context, server, { processes: 1, codec: codecOf(options) });
  for (let i = 0; i < number(options, 'peers'); i++) {
    await fleet.openPatiently({
      cycleSeconds: 10,
      speechSeconds: (10 * number(options, 'speaking')) / 100,
      pace: i % 2 === 0 ? 'burst' : 'realtime',
    });
  }
  const points: Point[] = [];
  const readings: Reading[] = [];
  const alive: ({ readonly minutes: number } & LiveMemory)[] = [];
  const beganMs = performance.now();
  const elapsed = (): number => (performance.now() - beganMs) / 60_000;
  const readingMs = Math.min(READING_MS, (minutes * 60_000) / (4 * READINGS_PER_POINT));
  let before: Scrape | undefined = await look(server);
  for (let turn = 1; elapsed() < minutes; turn++) {
    await delay(Math.max(0, beganMs + turn * readingMs - performance.now()));
    if (
      typeof server.inspectorUrl === 'string' &&
      elapsed() > (minutes * (alive.length + 1)) / COLLECTIONS
    ) {
      const memory = await liveMemory(server.inspectorUrl);
      alive.push({ minutes: elapsed(), ...memory });
      context.record('memory alive after a collection', mb(memory), 'MB');
    }
    const after = await look(server);
    if (after !== undefined) {
      readings.push({
        minutes: elapsed(),
        rssMb: after.sum('process_resident_memory_bytes') / 2 ** 20,
      });
    }
    if (turn % READINGS_PER_POINT !== 0) {
      continue;
    }
    if (before !== undefined && after !== undefined) {
      const inside = new Interval(before, after);
      points.push({
        minutes: elapsed(),
        cores: inside.rate('mouthpiece_worker_cpu_seconds_total'),
        latenessP99Ms: inside.quantile('mouthpiece_frame_lateness_seconds', 0.99) * 1000,
        lipsP99Ms: inside.quantile('mouthpiece_audio_to_lips_seconds', 0.99) * 1000,
        machineLoad: os.loadavg()[0]!,
      });
    }
    before = after;
    const { peers } = await fleet.figures();
    const last = points.at(-1);
    const memory = alive.at(-1);
    const skews = peers.flatMap(({ course }) => course.slice(-1).map(({ skewMs }) => skewMs));
    context.record('picture minus sound, median', quantile(skews, 0.5), 'ms');
    context.progress(
      `${elapsed().toFixed(1)} min  RSS ${readings.at(-1)?.rssMb.toFixed(0) ?? '?'} MB  ` +
        `alive ${memory === undefined ? '?' : mb(memory).toFixed(1)} MB  ` +
        `lateness p99 ${last?.latenessP99Ms.toFixed(1) ?? '?'} ms  ` +
        `skew ${quantile(skews, 0.5).toFixed(0)} ms  ` +
        `gaps over 300 ms ${peers.reduce((sum, { gapsOver300 }) => sum + gapsOver300, 0)}`,
    );
  }
  const { peers } = await fleet.figures();
  const isSettled = (reading: { readonly minutes: number }): boolean =>
    reading.minutes > minutes / 4;
  const figures = {
    minutes,
    peersAlive: peers.filter(({ state }) => state === 'live').length,
    pictureDriftMsPerHour: drift(peers, ({ delayMs }) => delayMs),
    skewDriftMsPerHour: drift(peers, ({ skewMs }) => skewMs),
    skewMeanMs: mean(
      peers.flatMap(({ course }) => course.map(({ skewMs }) => skewMs)).filter(Number.isFinite),
    ),
    aliveMbPerHour: slope(
      alive.filter(isSettled).map((memory) => [memory.minutes / 60, mb(memory)]),
    ),
    aliveMb: alive.length === 0 ? Number.NaN : mb(alive.at(-1)!),
    floorMbPerHour: floorSlope(
      readings.filter(isSettled).map((reading) => [reading.minutes / 60, reading.rssMb]),
      WINDOW_MINUTES / 60,
    ),
    rssMb: readings.at(-1)?.rssMb ?? Number.NaN,
    gapsOver300: peers.reduce((sum, { gapsOver300 }) => sum + gapsOver300, 0),
    latenessP99Ms: quantile(
      points.map(({ latenessP99Ms }) => latenessP99Ms),
      0.5,
    ),
    machineLoad: mean(points.map(({ machineLoad }) => machineLoad)),
  };
  const bounds: Bound[] = [
    atMost('sessions that did not last', peers.length - figures.peersAlive, 0),
  ];
  if (minutes >= MIN_MINUTES_FOR_SLOPES) {
    bounds.push(
      atMost(
        "picture against the receiver's clock",
        Math.abs(figures.pictureDriftMsPerHour),
        10,
        'ms/h',
      ),
      atMost('picture against sound', Math.abs(figures.skewDriftMsPerHour), 10, 'ms/h'),
    );
    if (alive.length > 0) {
      bounds.push(
        atMost(
          'memory alive after collections, slope after the first quarter',
          figures.aliveMbPerHour,
          number(options, 'slope'),
          'MB/h',
        ),
      );
    }
    if (Number.isFinite(figures.floorMbPerHour)) {
      bounds.push(
        atMost(
          'lowest resident memory of ten minutes, slope after the first quarter',
          figures.floorMbPerHour,
          number(options, 'floor'),
          'MB/h',
        ),
      );
    }
  }
  const line = (value: (point: Point) => number): [number, number][] =>
    points.map((point) => [point.minutes, value(point)]);
  const startMs = Math.min(...peers.flatMap(({ course }) => course.map(({ atMs }) => atMs)));
  return {
    figures,
    bounds,
    tables: [{ title: 'soak', columns: ['', ''], rows: Object.entries(figures) }],
    plots: [
      {
        kind: 'lines',
        title: 'Memory of the server',
        x: 'minutes',
        y: 'MB',
        lines: [
          { name: 'resident', points: readings.map((reading) => [reading.minutes, reading.rssMb]) },
          {
            name: 'alive after a collection',
            points: alive.map((memory) => [memory.minutes, mb(memory)]),
          },
        ],
      },
      {
        kind: 'lines',
        title: 'Picture time minus sound time, by sender reports',
        x: 'minutes',
        y: 'ms',
        lines: peers.slice(0, 8).map(({ course }, index) => ({
          name: `peer ${index}`,
          points: course.map(({ atMs, skewMs }) => [(atMs - startMs) / 60_000, skewMs]),
        })),
      },
      {
        kind: 'lines',
        title: 'Least frame delay in ten seconds, above the quickest frame of all',
        x: 'minutes',
        y: 'ms',
        lines: peers.slice(0, 8).map(({ course }, index) => ({
          name: `peer ${index}`,
          points: course.map(({ atMs, delayMs }) => [(atMs - startMs) / 60_000, delayMs]),
        })),
      },
      {
        kind: 'lines',
        title: 'Frame lateness and audio to lips, p99',
        x: 'minutes',
        y: 'ms',
        lines: [
          { name: 'lateness', points: line(({ latenessP99Ms }) => latenessP99Ms) },
          { name: 'audio to lips', points: line(({ lipsP99Ms }) => lipsP99Ms) },
        ],
      },
    ],
    notes: [
      'Half of the peers send speech in bursts, half in real time.',
      `Memory: alive is what V8's heaps and malloc hold of all threads after a forced ` +
        `collection, ${COLLECTIONS} times in the run; the floor is the least resident size ` +
        `in each ${WINDOW_MINUTES} minutes, after the first quarter. Both slopes are least ` +
        'squares.',
      ...(server.pid !== undefined && figures.machineLoad > os.availableParallelism()
        ? [
            'The machine had other things to do: load ' +
              `average ${figures.machineLoad.toFixed(1)} on ${os.availableParallelism()} ` +
              'cores. Lateness and gaps are those of a busy machine.',
          ]
        : []),
      ...(points.length === 0 ? [OUTSIDE_NOTE] : []),
    ],
  };
}

export const soak: Scenario = {
  name: 'soak',
  about:
    'Minutes to hours of conversation: drift of picture and sound, slope of memory, ' +
    'quality over time.',
  options: { minutes: 60, peers: 4, speaking: 50, slope: 2, floor: 3, codec: 'vp8' },
  small: { minutes: 0.2, peers: 2 },
  run,
};

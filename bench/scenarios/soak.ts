// Hours of conversation: does the picture drift against the clock or the sound, does memory grow, does quality fade?
import { setTimeout as delay } from 'node:timers/promises';
import type { PeerFigures } from '../peers/light-peer.ts';
import { mean, quantile, slope } from '../report/stats.ts';
import { type Bound, type Context, type Outcome, type Scenario, atMost, number } from '../scenario.ts';
import { Interval, type Scrape } from '../server-view.ts';
import { OUTSIDE_NOTE, codecOf, look, startFleet } from './common.ts';

/** Below this, noise over so short a time says nothing about an hour. */
const MIN_MINUTES_FOR_SLOPES = 10;
const MS_PER_HOUR = 3_600_000;

interface Point { readonly minutes: number; readonly rssMb: number; readonly latenessP99Ms: number; readonly cores: number; readonly lipsP99Ms: number }

/** Milliseconds an hour by which a course of values moves, averaged over the peers. */
const drift = (peers: readonly PeerFigures[], value: (entry: PeerFigures['course'][number]) => number): number =>
  mean(peers.map(({ course }) => slope(course.filter((entry) => Number.isFinite(value(entry))).map((entry) => [entry.atMs / MS_PER_HOUR, value(entry)] as const))).filter(Number.isFinite));

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const minutes = number(options, 'minutes');
  const server = await context.server({ WORKERS: '1' });
  const fleet = await startFleet(context, server, { processes: 1, codec: codecOf(options) });
  for (let i = 0; i < number(options, 'peers'); i += 1) {
    await fleet.openPatiently({ cycleSeconds: 10, speechSeconds: 10 * number(options, 'speaking') / 100, pace: i % 2 === 0 ? 'burst' : 'realtime' });
  }
  const points: Point[] = [];
  const beganMs = performance.now();
  let before: Scrape | null = await look(server);
  while (performance.now() - beganMs < minutes * 60_000) {
    await delay(Math.min(60_000, minutes * 60_000 / 4));
    const after = await look(server);
    if (before !== null && after !== null) {
      const inside = new Interval(before, after);
      points.push({
        minutes: (performance.now() - beganMs) / 60_000, rssMb: after.sum('process_resident_memory_bytes') / 2 ** 20, cores: inside.rate('mouthpiece_worker_cpu_seconds_total'),
        latenessP99Ms: inside.quantile('mouthpiece_frame_lateness_seconds', 0.99) * 1000, lipsP99Ms: inside.quantile('mouthpiece_audio_to_lips_seconds', 0.99) * 1000,
      });
    }
    before = after;
    const { peers } = await fleet.figures();
    const last = points.at(-1);
    context.progress(`${((performance.now() - beganMs) / 60_000).toFixed(1)} min  RSS ${last?.rssMb.toFixed(0) ?? '?'} MB  lateness p99 ${last?.latenessP99Ms.toFixed(1) ?? '?'} ms  skew ${quantile(peers.flatMap(({ course }) => course.slice(-1).map(({ skewMs }) => skewMs)), 0.5).toFixed(0)} ms  gaps over 300 ms ${peers.reduce((sum, { gapsOver300 }) => sum + gapsOver300, 0)}`);
  }
  const { peers } = await fleet.figures();
  const settled = points.filter((point) => point.minutes > minutes / 4);
  const figures = {
    minutes, peersAlive: peers.filter(({ state }) => state === 'live').length,
    pictureDriftMsPerHour: drift(peers, ({ delayMs }) => delayMs), skewDriftMsPerHour: drift(peers, ({ skewMs }) => skewMs),
    skewMeanMs: mean(peers.flatMap(({ course }) => course.map(({ skewMs }) => skewMs)).filter(Number.isFinite)),
    rssMbPerHour: slope(settled.map((point) => [point.minutes / 60, point.rssMb])), rssMb: points.at(-1)?.rssMb ?? Number.NaN,
    gapsOver300: peers.reduce((sum, { gapsOver300 }) => sum + gapsOver300, 0), latenessP99Ms: quantile(points.map(({ latenessP99Ms }) => latenessP99Ms), 0.5),
  };
  const bounds: Bound[] = [atMost('sessions that did not last', peers.length - figures.peersAlive, 0)];
  if (minutes >= MIN_MINUTES_FOR_SLOPES) {
    bounds.push(
      atMost('picture against the receiver\'s clock', Math.abs(figures.pictureDriftMsPerHour), 10, 'ms/h'), atMost('picture against sound', Math.abs(figures.skewDriftMsPerHour), 10, 'ms/h'),
    );
    if (points.length > 0) bounds.push(atMost('memory slope after the first quarter', figures.rssMbPerHour, number(options, 'slope'), 'MB/h'));
  }
  const line = (value: (point: Point) => number): [number, number][] => points.map((point) => [point.minutes, value(point)]);
  const startMs = Math.min(...peers.flatMap(({ course }) => course.map(({ atMs }) => atMs)));
  return {
    figures, bounds,
    tables: [{ title: 'soak', columns: ['', ''], rows: Object.entries(figures) }],
    plots: [
      { kind: 'lines', title: 'Resident memory of the server', x: 'minutes', y: 'MB', lines: [{ name: 'resident', points: line(({ rssMb }) => rssMb) }] },
      { kind: 'lines', title: 'Picture time minus sound time, by sender reports', x: 'minutes', y: 'ms', lines: peers.slice(0, 8).map(({ course }, index) => ({ name: `peer ${index}`, points: course.map(({ atMs, skewMs }) => [(atMs - startMs) / 60_000, skewMs]) })) },
      { kind: 'lines', title: 'Least frame delay in ten seconds, above the quickest frame of all', x: 'minutes', y: 'ms', lines: peers.slice(0, 8).map(({ course }, index) => ({ name: `peer ${index}`, points: course.map(({ atMs, delayMs }) => [(atMs - startMs) / 60_000, delayMs]) })) },
      { kind: 'lines', title: 'Frame lateness and audio to lips, p99', x: 'minutes', y: 'ms', lines: [{ name: 'lateness', points: line(({ latenessP99Ms }) => latenessP99Ms) }, { name: 'audio to lips', points: line(({ lipsP99Ms }) => lipsP99Ms) }] },
    ],
    notes: ['Half of the peers send speech in bursts, half in real time.', ...(points.length === 0 ? [OUTSIDE_NOTE] : [])],
  };
}

export const soak: Scenario = {
  name: 'soak',
  about: 'Minutes to hours of conversation: drift of picture and sound, slope of memory, quality over time.',
  options: { minutes: 60, peers: 4, speaking: 50, slope: 3, codec: 'vp8' },
  small: { minutes: 0.25, peers: 2 },
  run,
};

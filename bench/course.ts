// Figures over the time of a run: what a scenario tells as it measures, and what its servers show.
import { setTimeout as delay } from 'node:timers/promises';
import type { Plot } from './report/plot.ts';
import type { Server } from './scenario.ts';
import { Interval, type Scrape, scrape } from './server-view.ts';

/** A figure over time. */
export interface Series {
  readonly name: string;
  readonly unit: string;
  /** Seconds since the start of the run, and the value then. */
  readonly points: readonly (readonly [seconds: number, value: number])[];
}

/** How often servers are looked at, at least in the first ten minutes. */
const LOOK_MS = 1000;
/** In longer runs a look every so many-th part of the time so far: a day has 4,000 points. */
const LOOKS = 600;

/** What a look at a server's metrics tells, since the look before it. */
const VIEWS: readonly {
  readonly name: string;
  readonly unit: string;
  readonly of: (interval: Interval) => number;
}[] = [
  { name: 'live sessions', unit: '', of: ({ after }) => after.sum('mouthpiece_sessions') },
  {
    name: 'CPU of the workers',
    unit: 'cores',
    of: (interval) => interval.rate('mouthpiece_worker_cpu_seconds_total'),
  },
  {
    name: 'CPU of the main thread',
    unit: 'cores',
    of: (interval) => interval.rate('mouthpiece_front_cpu_seconds_total'),
  },
  {
    name: 'resident memory',
    unit: 'MB',
    of: ({ after }) => after.sum('process_resident_memory_bytes') / 2 ** 20,
  },
  {
    name: 'frame lateness p99',
    unit: 'ms',
    of: (interval) => interval.quantile('mouthpiece_frame_lateness_seconds', 0.99) * 1000,
  },
  {
    name: 'audio to lips p99',
    unit: 'ms',
    of: (interval) => interval.quantile('mouthpiece_audio_to_lips_seconds', 0.99) * 1000,
  },
];

/** Values by the span of time in which they were measured. */
export function spansOf(
  atMs: readonly number[],
  values: readonly number[],
  spanMs: number,
): { readonly at: number; readonly values: readonly number[] }[] {
  const spans = new Map<number, number[]>();
  for (const [index, at] of atMs.entries()) {
    const begin = Math.floor(at / spanMs) * spanMs;
    const span = spans.get(begin) ?? [];
    spans.set(begin, span);
    span.push(values[index]!);
  }
  return [...spans].map(([at, found]) => ({ at, values: found }));
}

/** The course of one run. */
export class Course {
  readonly #startMs = performance.now();
  readonly #series = new Map<string, { unit: string; points: [number, number][] }>();
  readonly #over = new AbortController();
  #servers = 0;

  /**
   * Adds a point to a figure. What is no number is left out.
   * @param atMs when it was measured, as performance.now()
   */
  add(name: string, value: number, unit: string, atMs = performance.now()): void {
    if (!Number.isFinite(value)) {
      return;
    }
    const found = this.#series.get(name) ?? { unit, points: [] };
    this.#series.set(name, found);
    found.points.push([(atMs - this.#startMs) / 1000, value]);
  }

  /** Looks at a server's metrics until it is gone, or the run is over. */
  async watch(server: Pick<Server, 'url'>): Promise<void> {
    this.#servers++;
    const prefix = this.#servers === 1 ? 'server' : `server ${this.#servers}`;
    const { signal } = this.#over;
    try {
      let before: Scrape = await scrape(server.url);
      for (;;) {
        const pauseMs = Math.max(LOOK_MS, (performance.now() - this.#startMs) / LOOKS);
        await delay(pauseMs, undefined, { signal, ref: false });
        const after = await scrape(server.url);
        const interval = new Interval(before, after);
        for (const { name, unit, of } of VIEWS) {
          this.add(`${prefix}: ${name}`, of(interval), unit);
        }
        before = after;
      }
    } catch {
      // Over, stopped by the scenario, or a server elsewhere that keeps /metrics to itself.
    }
  }

  /** Ends all watching. @returns the figures, each in the order of its time */
  end(): Series[] {
    this.#over.abort();
    return [...this.#series].map(([name, { unit, points }]) => ({
      name,
      unit,
      points: points
        .map(([seconds, value]) => [round(seconds), value] as const)
        .sort(([a], [b]) => a - b),
    }));
  }
}

const round = (seconds: number): number => Math.round(seconds * 1000) / 1000;

/**
 * A plot of each figure over the time of the run, if it was measured more than once; servers of one
 * run share a plot.
 */
export function plotsOf(course: readonly Series[]): Plot[] {
  const groups = new Map<string, Series[]>();
  for (const series of course.filter(({ points }) => points.length > 1)) {
    const title = `${titleOf(series)} over time`;
    groups.set(title, [...(groups.get(title) ?? []), series]);
  }
  return [...groups].map(([title, all]) => ({
    kind: 'lines',
    title,
    x: 's',
    y: all[0]!.unit,
    lines: all.map(({ name, points }) => ({
      name: all.length === 1 ? '' : name.slice(0, name.indexOf(':')),
      points,
    })),
  }));
}

const titleOf = ({ name }: Series): string => {
  const what = name.replace(/^server \d+: /, 'server: ');
  return what.charAt(0).toUpperCase() + what.slice(1);
};

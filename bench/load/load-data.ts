// What generators of load have seen: by target and by time, so that the reports of many machines
// become one.
import { Histogram, type HistogramData } from '../report/histogram.ts';

/** Counts of a span of time. */
export const COUNTS = [
  /** Sessions that were to arrive. */
  'due',
  'started',
  /** Did not start. */
  'failed',
  /** Started, and were ended by the server or the network. */
  'lost',
  'utterances',
  'frames',
  'framesLost',
  /** Times of more than 300 ms without a frame. */
  'gaps',
  /** Kilobits that arrived. */
  'kilobits',
  /** Seconds of all live sessions together. */
  'liveSeconds',
] as const;
export type Count = (typeof COUNTS)[number];

/** Times of a span, ms. */
export const TIMES = [
  /** From the moment a session was to arrive to its first picture. */
  'setUp',
  /** From the moment an utterance was due to the word that the face speaks. */
  'response',
  /** By how much the generator itself was late. */
  'lag',
] as const;
export type Time = (typeof TIMES)[number];

export interface SpanData {
  readonly counts: Readonly<Partial<Record<Count, number>>>;
  readonly times: Readonly<Partial<Record<Time, HistogramData>>>;
}

export interface LoadData {
  /** Of each generator: what is merged twice is found. */
  readonly generators: readonly {
    readonly id: string;
    readonly name: string;
    /** Unix seconds. */
    readonly from: number;
    readonly to: number;
  }[];
  readonly spanSeconds: number;
  /** By target, then by the Unix second at which the span begins. */
  readonly targets: Readonly<Record<string, Readonly<Record<string, SpanData>>>>;
  /** Why sessions failed or were lost, and how often. */
  readonly reasons: Readonly<Record<string, number>>;
}

/** A span of time, while it is filled. */
export class Span {
  readonly counts = new Map<Count, number>();
  readonly times = new Map<Time, Histogram>();

  count(name: Count, value = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + value);
  }

  time(name: Time, ms: number): void {
    this.#histogram(name).add(ms);
  }

  merge({ counts, times }: SpanData): void {
    for (const [name, value] of Object.entries(counts)) {
      this.count(name as Count, value);
    }
    for (const [name, data] of Object.entries(times)) {
      this.#histogram(name as Time).merge(data);
    }
  }

  of(name: Count): number {
    return this.counts.get(name) ?? 0;
  }

  quantile(name: Time, q: number): number {
    return this.times.get(name)?.quantile(q) ?? Number.NaN;
  }

  toData(): SpanData {
    return {
      counts: Object.fromEntries(this.counts),
      times: Object.fromEntries(
        [...this.times].map(([name, histogram]) => [name, histogram.toData()]),
      ),
    };
  }

  #histogram(name: Time): Histogram {
    const found = this.times.get(name) ?? new Histogram();
    this.times.set(name, found);
    return found;
  }
}

/** What one generator sees, as it sees it. */
export class LoadRecord {
  readonly #spanSeconds: number;
  readonly #targets = new Map<string, Map<number, Span>>();
  readonly #reasons = new Map<string, number>();

  constructor(spanSeconds: number) {
    this.#spanSeconds = spanSeconds;
  }

  /** The span in which something belongs. */
  at(target: string, unixSeconds: number): Span {
    const spans = this.#targets.get(target) ?? new Map<number, Span>();
    this.#targets.set(target, spans);
    const begin = Math.floor(unixSeconds / this.#spanSeconds) * this.#spanSeconds;
    const span = spans.get(begin) ?? new Span();
    spans.set(begin, span);
    return span;
  }

  reason(text: string, count = 1): void {
    this.#reasons.set(text, (this.#reasons.get(text) ?? 0) + count);
  }

  toData(generators: LoadData['generators']): LoadData {
    return {
      generators,
      spanSeconds: this.#spanSeconds,
      targets: Object.fromEntries(
        [...this.#targets].map(([target, spans]) => [
          target,
          Object.fromEntries([...spans].map(([begin, span]) => [begin, span.toData()])),
        ]),
      ),
      reasons: Object.fromEntries(this.#reasons),
    };
  }
}

/**
 * One report of many: counts and histograms are added, nothing is averaged.
 * @throws Error when two do not fit, or one is there twice
 */
export function mergeLoads(all: readonly LoadData[]): LoadData {
  const spanSeconds = all[0]?.spanSeconds ?? 1;
  const record = new LoadRecord(spanSeconds);
  const generators = all.flatMap((one) => one.generators);
  const twice = generators.find(
    ({ id }, index) => generators.findIndex((other) => other.id === id) !== index,
  );
  if (twice !== undefined) {
    throw new Error(`the run of ${twice.name} is there twice: give each report once`);
  }
  for (const one of all) {
    if (one.spanSeconds !== spanSeconds) {
      throw new Error('the reports have spans of different length: run all with the same --span');
    }
    for (const [target, spans] of Object.entries(one.targets)) {
      for (const [begin, span] of Object.entries(spans)) {
        record.at(target, Number(begin)).merge(span);
      }
    }
    for (const [reason, count] of Object.entries(one.reasons)) {
      record.reason(reason, count);
    }
  }
  return record.toData(generators);
}

/** All spans of some targets, added up. */
export function total(data: LoadData, targets = Object.keys(data.targets)): Span {
  const sum = new Span();
  for (const spans of targets.map((target) => data.targets[target]!)) {
    for (const span of Object.values(spans)) {
      sum.merge(span);
    }
  }
  return sum;
}

/** The spans of all targets by their begin, in seconds after the first. */
export function course(data: LoadData): { readonly seconds: number; readonly span: Span }[] {
  const spans = new Map<number, Span>();
  for (const target of Object.values(data.targets)) {
    for (const [begin, span] of Object.entries(target)) {
      const sum = spans.get(Number(begin)) ?? new Span();
      sum.merge(span);
      spans.set(Number(begin), sum);
    }
  }
  const sorted = [...spans].sort(([a], [b]) => a - b);
  const first = sorted[0]?.[0] ?? 0;
  return sorted.map(([begin, span]) => ({ seconds: begin - first, span }));
}

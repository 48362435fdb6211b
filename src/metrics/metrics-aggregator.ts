// Reads the shared metrics of all workers at a scrape: sums, values per worker, and the totals of
// workers that ended.
import type { MetricFamily } from './metric-family.ts';
import { labelAdder, withBound, type LabelSet, type Sample } from './sample.ts';
import {
  EXEMPLAR_SLOTS,
  SHARED_FAMILIES,
  SHARED_SLOTS,
  type Series,
  type SharedFamily,
} from './shared-metrics.ts';

const withWorker = labelAdder('worker');

/** The metrics of all workers, by worker index. */
export class MetricsAggregator {
  readonly #live = new Map<number, Float64Array>();
  /**
   * Counters and histograms of workers that ended, by worker index, so that no counter ever
   * decreases.
   */
  readonly #retired = new Map<number, Float64Array>();
  readonly #total = new Float64Array(SHARED_SLOTS);

  /**
   * Worker `index` writes `memory` from now on. Memory of an earlier worker with that index is
   * retired first.
   */
  attach(index: number, memory: SharedArrayBuffer): void {
    this.detach(index);
    this.#live.set(index, new Float64Array(memory));
  }

  /** Worker `index` ended: drops its gauges and keeps its totals. May be called more than once. */
  detach(index: number): void {
    const cells = this.#live.get(index);
    if (cells === undefined) {
      return;
    }
    this.#live.delete(index);
    const kept = this.#retired.get(index) ?? new Float64Array(SHARED_SLOTS);
    for (const { family, series } of SHARED_FAMILIES) {
      if (family.type === 'gauge') {
        continue;
      }
      for (const { slot } of series) {
        for (let i = 0; i < countedSlots(family); i++) {
          kept[slot + i]! += cells[slot + i]!;
        }
      }
    }
    this.#retired.set(index, kept);
  }

  /** Sums all workers. Call it once before `samples`. The workers go on writing meanwhile. */
  refresh(): void {
    this.#total.fill(0);
    for (const cells of this.#live.values()) {
      addTo(this.#total, cells);
    }
    for (const cells of this.#retired.values()) {
      addTo(this.#total, cells);
    }
  }

  /** All lines of one metric. */
  samples({ name, family, series }: SharedFamily): Sample[] {
    const samples: Sample[] = [];
    if (!family.perWorker) {
      for (const one of series) {
        write(samples, name, family, one, this.#total, one.labels, [...this.#live.values()]);
      }
      return samples;
    }
    const indices =
      family.type === 'gauge'
        ? this.#live.keys()
        : new Set([...this.#live.keys(), ...this.#retired.keys()]);
    for (const index of indices) {
      const cells = new Float64Array(SHARED_SLOTS);
      const live = this.#live.get(index);
      const kept = this.#retired.get(index);
      for (const { slot } of series) {
        for (let i = slot; i < slot + countedSlots(family); i++) {
          cells[i] = (live?.[i] ?? 0) + (kept?.[i] ?? 0);
        }
      }
      for (const one of series) {
        write(
          samples,
          name,
          family,
          one,
          cells,
          withWorker(one.labels, String(index)),
          live === undefined ? [] : [live],
        );
      }
    }
    return samples;
  }
}

const addTo = (total: Float64Array, cells: Float64Array): void => {
  for (let i = 0; i < total.length; i++) {
    total[i]! += cells[i]!;
  }
};

/** Slots that are summed over workers; the exemplars behind them are not. */
const countedSlots = ({ type, buckets }: MetricFamily): number =>
  type === 'histogram' ? buckets.length + 2 : 1;

function write(
  samples: Sample[],
  name: string,
  family: MetricFamily,
  { slot }: Series,
  cells: Float64Array,
  labels: LabelSet,
  live: readonly Float64Array[],
): void {
  if (family.type !== 'histogram') {
    samples.push({ sharedLabels: labels, value: cells[slot]! });
    return;
  }
  const { buckets } = family;
  let count = 0;
  for (let i = 0; i <= buckets.length; i++) {
    count += cells[slot + i]!;
    const exemplar = newestExemplar(family, slot + buckets.length + 2 + i * EXEMPLAR_SLOTS, live);
    const le = i < buckets.length ? String(buckets[i]) : '+Inf';
    samples.push({
      metricName: `${name}_bucket`,
      sharedLabels: withBound(labels, le),
      value: count,
      ...(exemplar && { exemplar }),
    });
  }
  // The count is the sum of the buckets, so that it agrees with them while the worker writes.
  samples.push(
    { metricName: `${name}_sum`, sharedLabels: labels, value: cells[slot + buckets.length + 1]! },
    { metricName: `${name}_count`, sharedLabels: labels, value: count },
  );
}

function newestExemplar(
  { exemplar: label }: MetricFamily,
  at: number,
  workers: readonly Float64Array[],
): Sample['exemplar'] {
  if (label === undefined) {
    return undefined;
  }
  let newest: Sample['exemplar'];
  for (const cells of workers) {
    const sequence = cells[at]!;
    const hex = [1, 2, 3, 4].map((i) => cells[at + i]!.toString(16).padStart(8, '0')).join('');
    const [value, timestamp] = [cells[at + 5]!, cells[at + 6]!];
    const isWhole = sequence > 0 && sequence % 2 === 0 && cells[at] === sequence;
    if (!isWhole || timestamp <= (newest?.timestamp ?? 0)) {
      continue;
    }
    newest = {
      labelSet: { [label]: hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') },
      value,
      timestamp: Math.round(timestamp * 1000) / 1000,
    };
  }
  return newest;
}

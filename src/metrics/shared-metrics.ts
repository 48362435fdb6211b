// A worker's metrics in shared memory: a Float64Array whose layout follows from the catalogue. The
// worker writes, the main thread reads.
import { wallMs } from '../base/time.ts';
import {
  CATALOGUE,
  type Counter,
  type Exemplar,
  type Gauge,
  type Histogram,
  type LabelArguments,
  type Meter,
  type MetricName,
  type NameOf,
} from './catalogue.ts';
import type { MetricFamily } from './metric-family.ts';

/**
 * Slots of one series. A counter or gauge has one. A histogram has one per bucket (not cumulative,
 * +Inf last), then the sum, then EXEMPLAR_SLOTS per bucket if it keeps exemplars. Aligned 64-bit
 * loads and stores are atomic on the 64-bit machines that Node supports.
 */
export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly slot: number;
}
/** A metric of the workers with all its series. */
export interface SharedFamily {
  readonly name: MetricName;
  readonly family: MetricFamily;
  readonly series: readonly Series[];
}

/**
 * Slots of an exemplar: sequence (odd while being written), four 32-bit words of a UUID, value,
 * Unix seconds.
 */
export const EXEMPLAR_SLOTS = 7;

function combinations(labels: MetricFamily['labels'], name: string): Record<string, string>[] {
  let found: Record<string, string>[] = [{}];
  for (const [label, values] of Object.entries(labels)) {
    if (!Array.isArray(values)) {
      throw new TypeError(`${name}: a worker's label must list its values; '${label}' does not`);
    }
    found = found.flatMap((partial) =>
      (values as readonly string[]).map((value) => ({ ...partial, [label]: value })),
    );
  }
  return found;
}

const slotsPerSeries = ({ type, buckets, exemplar }: MetricFamily): number =>
  type !== 'histogram'
    ? 1
    : buckets.length + 2 + (exemplar === undefined ? 0 : (buckets.length + 1) * EXEMPLAR_SLOTS);

function layOut(): { families: SharedFamily[]; size: number } {
  let size = 0;
  const families: SharedFamily[] = [];
  for (const [name, family] of Object.entries(CATALOGUE) as [MetricName, MetricFamily][]) {
    if (family.writer !== 'worker') {
      continue;
    }
    const series = combinations(family.labels, name).map((labels, index) => ({
      labels,
      slot: size + index * slotsPerSeries(family),
    }));
    size += series.length * slotsPerSeries(family);
    families.push({ name, family, series });
  }
  return { families, size };
}

const layout = layOut();
/** The metrics that workers write, in the order in which they lie in memory. */
export const SHARED_FAMILIES: readonly SharedFamily[] = layout.families;
/** Numbers (float64) of one worker's shared metrics. */
export const SHARED_SLOTS = layout.size;
const byName = new Map(SHARED_FAMILIES.map((entry) => [entry.name, entry]));

/** Memory for the metrics of one worker, which gets it in its workerData. */
export const createSharedMetrics = (): SharedArrayBuffer =>
  new SharedArrayBuffer(SHARED_SLOTS * Float64Array.BYTES_PER_ELEMENT);

/** The exemplar of a session or request. Make it once per session. @param uuid in its usual form */
export function exemplarOf(uuid: string): Exemplar {
  const hex = uuid.replaceAll('-', '');
  const word = (index: number): number =>
    Number.parseInt(hex.slice(index * 8, index * 8 + 8), 16) || 0;
  return { id: uuid, words: [word(0), word(1), word(2), word(3)] };
}

class SharedCell implements Counter, Gauge {
  readonly #cells: Float64Array;
  readonly #slot: number;

  constructor(cells: Float64Array, slot: number) {
    this.#cells = cells;
    this.#slot = slot;
  }

  add(amount = 1): void {
    this.#cells[this.#slot]! += amount;
  }
  set(value: number): void {
    this.#cells[this.#slot] = value;
  }
}

class SharedHistogram implements Histogram {
  readonly #cells: Float64Array;
  readonly #slot: number;
  readonly #buckets: readonly number[];
  readonly #keepsExemplars: boolean;

  constructor(cells: Float64Array, slot: number, family: MetricFamily) {
    this.#cells = cells;
    this.#slot = slot;
    this.#buckets = family.buckets;
    this.#keepsExemplars = family.exemplar !== undefined;
  }

  observe(value: number, exemplar?: Exemplar): void {
    const cells = this.#cells;
    const buckets = this.#buckets;
    let bucket = 0;
    while (bucket < buckets.length && value > buckets[bucket]!) {
      bucket++;
    }
    cells[this.#slot + bucket]!++;
    cells[this.#slot + buckets.length + 1]! += value;
    if (exemplar === undefined || !this.#keepsExemplars) {
      return;
    }
    const at = this.#slot + buckets.length + 2 + bucket * EXEMPLAR_SLOTS;
    cells[at]!++;
    for (let i = 0; i < 4; i++) {
      cells[at + 1 + i] = exemplar.words[i]!;
    }
    cells[at + 5] = value;
    cells[at + 6] = wallMs() / 1000;
    cells[at]!++;
  }
}

/**
 * Writes the metrics of one worker. Resolving a handle looks up its slots once; writing then
 * allocates nothing.
 */
export class SharedMetrics implements Meter<'worker'> {
  readonly #cells: Float64Array;

  /**
   * @param memory from `createSharedMetrics`.
   * @throws RangeError when its size does not fit the catalogue
   */
  constructor(memory: SharedArrayBuffer) {
    this.#cells = new Float64Array(memory);
    if (this.#cells.length !== SHARED_SLOTS) {
      throw new RangeError(
        `shared metrics have ${SHARED_SLOTS} slots, this memory ${this.#cells.length}: use ` +
          'createSharedMetrics()',
      );
    }
  }

  counter<N extends NameOf<'counter', 'worker'>>(name: N, ...labels: LabelArguments<N>): Counter {
    return new SharedCell(this.#cells, slotOf(name, labels[0]));
  }
  gauge<N extends NameOf<'gauge', 'worker'>>(name: N, ...labels: LabelArguments<N>): Gauge {
    return new SharedCell(this.#cells, slotOf(name, labels[0]));
  }

  histogram<N extends NameOf<'histogram', 'worker'>>(
    name: N,
    ...labels: LabelArguments<N>
  ): Histogram {
    return new SharedHistogram(this.#cells, slotOf(name, labels[0]), CATALOGUE[name]);
  }
}

/**
 * The first slot of a series. @throws TypeError when a label is missing or its value is not in the
 * catalogue, unless the catalogue lists "other"
 */
function slotOf(name: MetricName, labels: object = {}): number {
  const entry = byName.get(name);
  if (entry === undefined) {
    throw new TypeError(`${name} is not a metric of workers`);
  }
  const wanted = new Map(Object.entries(labels) as [string, string][]);
  for (const [label, values] of Object.entries(entry.family.labels)) {
    const value = wanted.get(label);
    if (value !== undefined && (values as readonly string[]).includes(value)) {
      continue;
    }
    if (!(values as readonly string[]).includes('other')) {
      throw new TypeError(`${name}: label ${label}='${value}' is not in the catalogue`);
    }
    wanted.set(label, 'other');
  }
  return entry.series.find((series) =>
    Object.entries(series.labels).every(([label, value]) => wanted.get(label) === value),
  )!.slot;
}

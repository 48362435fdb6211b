// A worker's figures: one shared Float64Array whose slots follow from the catalogue, written by the worker alone, read by the front.
import { wallMs } from '../base/time.ts';
import {
  CATALOGUE,
  type Counter,
  type Exemplar,
  type Family,
  type Gauge,
  type Histogram,
  type LabelArguments,
  type Meter,
  type MetricName,
  type NameOf,
} from './catalogue.ts';

/**
 * Slots of one series. A counter or gauge has one; a histogram one per bucket (not cumulative, +Inf last), then the sum, then, if it
 * keeps exemplars, EXEMPLAR_SLOTS per bucket. Aligned 64-bit loads and stores do not tear on the 64-bit machines Node runs on.
 */
export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly slot: number;
}
export interface SharedFamily {
  readonly name: MetricName;
  readonly family: Family;
  readonly series: readonly Series[];
}

/** Sequence (odd while being written), four 32-bit words of a UUID, value, Unix seconds. */
export const EXEMPLAR_SLOTS = 7;

function combinations(labels: Family['labels'], name: string): Record<string, string>[] {
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

const slotsPerSeries = ({ type, buckets, exemplar }: Family): number =>
  type !== 'histogram'
    ? 1
    : buckets.length + 2 + (exemplar === undefined ? 0 : (buckets.length + 1) * EXEMPLAR_SLOTS);

function layOut(): { families: SharedFamily[]; size: number } {
  let size = 0;
  const families: SharedFamily[] = [];
  for (const [name, family] of Object.entries(CATALOGUE) as [MetricName, Family][]) {
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
export const SHARED_FAMILIES: readonly SharedFamily[] = layout.families;
export const SHARED_SLOTS = layout.size;
const byName = new Map(SHARED_FAMILIES.map((entry) => [entry.name, entry]));

/** Memory of one worker's sheet: made by the front, sent to the worker when it is born. */
export const createSharedMetrics = (): SharedArrayBuffer =>
  new SharedArrayBuffer(SHARED_SLOTS * Float64Array.BYTES_PER_ELEMENT);

/** The session or request behind an observation; `uuid` in its usual form. Keep it as long as the session lives. */
export function exemplarOf(uuid: string): Exemplar {
  const hex = uuid.replaceAll('-', '');
  const word = (index: number): number =>
    Number.parseInt(hex.slice(index * 8, index * 8 + 8), 16) || 0;
  return { id: uuid, words: [word(0), word(1), word(2), word(3)] };
}

class SheetCell implements Counter, Gauge {
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

class SheetHistogram implements Histogram {
  readonly #cells: Float64Array;
  readonly #slot: number;
  readonly #buckets: readonly number[];
  readonly #keepsExemplars: boolean;

  constructor(cells: Float64Array, slot: number, family: Family) {
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

/** The worker's pen: resolves names and labels to slots once, after which writing allocates nothing and asks nobody. */
export class SharedMetrics implements Meter<'worker'> {
  readonly #cells: Float64Array;

  /** @param memory from `createSheet`. @throws RangeError if it was made by another version of the catalogue. */
  constructor(memory: SharedArrayBuffer) {
    this.#cells = new Float64Array(memory);
    if (this.#cells.length !== SHARED_SLOTS) {
      throw new RangeError(
        `a sheet has ${SHARED_SLOTS} slots, this memory ${this.#cells.length}: use createSheet()`,
      );
    }
  }

  counter<N extends NameOf<'counter', 'worker'>>(name: N, ...labels: LabelArguments<N>): Counter {
    return new SheetCell(this.#cells, slotOf(name, labels[0]));
  }
  gauge<N extends NameOf<'gauge', 'worker'>>(name: N, ...labels: LabelArguments<N>): Gauge {
    return new SheetCell(this.#cells, slotOf(name, labels[0]));
  }

  histogram<N extends NameOf<'histogram', 'worker'>>(
    name: N,
    ...labels: LabelArguments<N>
  ): Histogram {
    return new SheetHistogram(this.#cells, slotOf(name, labels[0]), CATALOGUE[name]);
  }
}

/** @throws TypeError when a label is missing or its value is not in the catalogue (unless that lists "other"). */
function slotOf(name: MetricName, labels: object = {}): number {
  const entry = byName.get(name);
  if (entry === undefined) {
    throw new TypeError(`${name} is not a worker's metric`);
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

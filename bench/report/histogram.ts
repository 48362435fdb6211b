// A histogram that can be added to others without a loss: the quantiles of the sum are those of all
// samples together. Quantiles of several machines cannot be averaged.

/** As it stands in a report. */
export interface HistogramData {
  /** Bucket and how many, in the order of the buckets. */
  readonly counts: readonly (readonly [bucket: number, count: number])[];
  /** What never happened: longer than any value. */
  readonly never: number;
  readonly sum: number;
  /** The largest; 0 of nothing. */
  readonly max: number;
}

/** Width of the smallest buckets, ms. */
const UNIT_MS = 0.1;
/** Buckets for each doubling: a bucket is 1/64 of its values wide, at most. */
const PER_OCTAVE = 64;
const LINEAR = 2 * PER_OCTAVE;

/** Bucket of a value in ms: those up to 12.8 ms are all of one width. */
function bucketOf(ms: number): number {
  const units = Math.floor(Math.max(0, ms) / UNIT_MS);
  if (units < LINEAR) {
    return units;
  }
  const octave = Math.floor(Math.log2(units / LINEAR)) + 1;
  return octave * PER_OCTAVE + Math.floor(units / 2 ** octave);
}

/** Upper edge of a bucket, ms. */
function edgeOf(bucket: number): number {
  if (bucket < LINEAR) {
    return (bucket + 1) * UNIT_MS;
  }
  const octave = Math.floor(bucket / PER_OCTAVE) - 1;
  return (bucket - octave * PER_OCTAVE + 1) * 2 ** octave * UNIT_MS;
}

/** Milliseconds, within 1/64 (0.1 ms where they are few). */
export class Histogram {
  readonly #counts = new Map<number, number>();
  #never = 0;
  #count = 0;
  #sum = 0;
  #max = 0;

  static from(data: HistogramData): Histogram {
    const histogram = new Histogram();
    histogram.merge(data);
    return histogram;
  }

  /** @param ms Infinity: it never happened */
  add(ms: number): void {
    if (ms === Number.POSITIVE_INFINITY) {
      this.#never++;
      return;
    }
    const bucket = bucketOf(ms);
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + 1);
    this.#count++;
    this.#sum += ms;
    this.#max = Math.max(this.#max, ms);
  }

  merge({ counts, never, sum, max }: HistogramData): void {
    for (const [bucket, count] of counts) {
      this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + count);
      this.#count += count;
    }
    this.#never += never;
    this.#sum += sum;
    this.#max = Math.max(this.#max, max);
  }

  /** How many, those that never happened among them. */
  get count(): number {
    return this.#count + this.#never;
  }

  /**
   * The value that the share `q` of all is not above: the edge of its bucket.
   * @returns Infinity where it is among those that never happened; NaN of nothing
   */
  quantile(q: number): number {
    if (this.count === 0) {
      return Number.NaN;
    }
    let left = Math.max(1, Math.ceil(q * this.count));
    for (const [bucket, count] of this.toData().counts) {
      left -= count;
      if (left <= 0) {
        return Math.min(edgeOf(bucket), this.#max);
      }
    }
    return Number.POSITIVE_INFINITY;
  }

  toData(): HistogramData {
    return {
      counts: [...this.#counts].sort(([a], [b]) => a - b),
      never: this.#never,
      sum: this.#sum,
      max: this.#max,
    };
  }
}

// The server as the bench sees it from inside: its metrics, scraped and compared over an interval.
import { type Bucket, histogramQuantile } from './report/stats.ts';
import type { MetricName } from '../src/metrics/catalogue.ts';

type Series = ReadonlyMap<
  string,
  { readonly labels: Readonly<Record<string, string>>; readonly value: number }[]
>;
type Labels = Readonly<Record<string, string>>;

const matches = (labels: Labels, wanted: Labels): boolean =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value);

/** One scrape. */
export class Scrape {
  readonly atMs = performance.now();
  readonly #series: Series;

  constructor(text: string) {
    const series = new Map<string, { labels: Labels; value: number }[]>();
    for (const line of text.split('\n')) {
      const match = /^([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? (\S+)/i.exec(line);
      if (match === null) {
        continue;
      }
      const [, name, labels = '', value] = match;
      const list = series.get(name!) ?? [];
      series.set(name!, list);
      list.push({
        labels: Object.fromEntries(
          [...labels.matchAll(/\b(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [
            label!,
            text!,
          ]),
        ),
        value: Number(value),
      });
    }
    this.#series = series;
  }

  /** Sum over all series of the name that carry these labels. */
  sum(name: string, labels: Labels = {}): number {
    return (this.#series.get(name) ?? [])
      .filter((one) => matches(one.labels, labels))
      .reduce((total, { value }) => total + value, 0);
  }

  max(name: MetricName, labels: Labels = {}): number {
    return Math.max(
      0,
      ...(this.#series.get(name) ?? [])
        .filter((one) => matches(one.labels, labels))
        .map(({ value }) => value),
    );
  }

  /** Cumulative buckets, summed over all other labels. */
  buckets(name: MetricName, labels: Labels = {}): Bucket[] {
    const counts = new Map<number, number>();
    for (const one of this.#series.get(`${name}_bucket`) ?? []) {
      if (!matches(one.labels, labels)) {
        continue;
      }
      const le = one.labels['le'] === '+Inf' ? Number.POSITIVE_INFINITY : Number(one.labels['le']);
      counts.set(le, (counts.get(le) ?? 0) + one.value);
    }
    return [...counts].map(([le, count]) => ({ le, count })).sort((a, b) => a.le - b.le);
  }
}

/** What happened between two scrapes. */
export class Interval {
  readonly #before: Scrape;
  readonly after: Scrape;
  readonly seconds: number;

  constructor(before: Scrape, after: Scrape) {
    this.#before = before;
    this.after = after;
    this.seconds = (after.atMs - before.atMs) / 1000;
  }

  increase(name: string, labels: Labels = {}): number {
    return this.after.sum(name, labels) - this.#before.sum(name, labels);
  }
  rate(name: string, labels: Labels = {}): number {
    return this.increase(name, labels) / this.seconds;
  }

  /** Cumulative buckets of what was observed in between. */
  buckets(name: MetricName, labels: Labels = {}): Bucket[] {
    const before = new Map(this.#before.buckets(name, labels).map(({ le, count }) => [le, count]));
    return this.after
      .buckets(name, labels)
      .map(({ le, count }) => ({ le, count: count - (before.get(le) ?? 0) }));
  }

  quantile(name: MetricName, q: number, labels: Labels = {}): number {
    return histogramQuantile(this.buckets(name, labels), q);
  }
  mean(name: MetricName, labels: Labels = {}): number {
    return this.increase(`${name}_sum`, labels) / this.increase(`${name}_count`, labels);
  }
}

/** @throws Error when /metrics cannot be read. */
export async function scrape(url: string): Promise<Scrape> {
  const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(10_000) });
  if (!response.ok) {
    throw new Error(`/metrics answered ${response.status}`);
  }
  return new Scrape(await response.text());
}

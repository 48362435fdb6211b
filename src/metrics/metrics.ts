// Renders /metrics: the main thread's own metrics (prom-client) and the shared metrics of the
// workers.
//
// The server makes one `Metrics` at start. Resolve handles once, in a constructor:
//   const issued = metrics.counter('mouthpiece_tokens_issued_total');        issued.add();
//   const setUp = metrics.histogram('mouthpiece_session_setup_seconds', { step: 'dtls' });
//   setUp.observe(seconds, exemplarOf(sessionId));
// Set gauges that mirror a state in an `onScrape` callback. For each worker, pass
// `createSharedMetrics()` in its workerData and to `attachWorker`; `new SharedMetrics(memory)` in
// the worker has the same three methods. Call `detachWorker` when the worker ended.
import client from 'prom-client';
import { guarded, reportDefect } from '../base/guard.ts';
import { monotonicMs } from '../base/time.ts';
import { MetricsAggregator } from './metrics-aggregator.ts';
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
import { withBound, type LabelSet, type Sample } from './sample.ts';
import { SHARED_FAMILIES } from './shared-metrics.ts';

type PromMetric = client.Counter | client.Gauge | client.Histogram;

/**
 * A metric with at most so many label combinations is written as 0 from the start, so that its
 * first event is an increase.
 */
const MAX_ZEROED_SERIES = 192;

/** All metrics of this process; writes those of the main thread. */
export class Metrics implements Meter<'front'> {
  readonly #own = new Map<string, PromMetric>();
  readonly #seen = new Map<string, Set<string>>();
  readonly #workers = new MetricsAggregator();
  readonly #collectors: (() => void)[] = [];
  readonly #text = new client.Registry();
  readonly #openMetrics = new client.Registry<client.OpenMetricsContentType>();
  readonly #scrapeDuration: Histogram;

  constructor() {
    this.#openMetrics.setContentType(client.Registry.OPENMETRICS_CONTENT_TYPE);
    for (const [name, family] of Object.entries(CATALOGUE) as [MetricName, MetricFamily][]) {
      if (family.writer === 'front') {
        this.#own.set(name, createPromMetric(name, family));
      }
    }
    this.#register(this.#text);
    this.#register(this.#openMetrics);
    this.#scrapeDuration = this.histogram('mouthpiece_scrape_duration_seconds');
  }

  counter<N extends NameOf<'counter', 'front'>>(name: N, ...labels: LabelArguments<N>): Counter {
    const child = (this.#own.get(name) as client.Counter).labels(this.#bounded(name, labels[0]));
    return {
      add: (amount = 1) => {
        child.inc(amount);
      },
    };
  }

  gauge<N extends NameOf<'gauge', 'front'>>(name: N, ...labels: LabelArguments<N>): Gauge {
    const child = (this.#own.get(name) as client.Gauge).labels(this.#bounded(name, labels[0]));
    return {
      set: (value) => {
        child.set(value);
      },
      add: (amount) => {
        child.inc(amount);
      },
    };
  }

  histogram<N extends NameOf<'histogram', 'front'>>(
    name: N,
    ...labels: LabelArguments<N>
  ): Histogram {
    const metric = this.#own.get(name) as client.Histogram;
    const bound = this.#bounded(name, labels[0]);
    const label = (CATALOGUE[name] as MetricFamily).exemplar;
    // The types of prom-client lack the form with exemplars.
    if (label !== undefined) {
      return {
        observe: (value, exemplar) => {
          (metric.observe as (data: object) => void)({
            labels: bound,
            value,
            exemplarLabels: exemplarLabels(label, exemplar),
          });
        },
      };
    }
    const child = metric.labels(bound);
    return {
      observe: (value) => {
        child.observe(value);
      },
    };
  }

  /** Worker `index` writes `memory` (createSharedMetrics) from now on. */
  attachWorker(index: number, memory: SharedArrayBuffer): void {
    this.#workers.attach(index, memory);
  }
  /** Worker `index` ended. */
  detachWorker(index: number): void {
    this.#workers.detach(index);
  }

  /**
   * Calls `collect` at the start of each scrape. Set gauges there, and do nothing slow. An
   * exception is reported; the other callbacks run.
   */
  onScrape(collect: () => void): void {
    this.#collectors.push(guarded('a collector of metrics', collect));
  }

  /**
   * The response of /metrics.
   * @param accept the Accept header: OpenMetrics with exemplars when it names that, else Prometheus
   * text 0.0.4
   */
  async render(accept = ''): Promise<{ contentType: string; body: string }> {
    const startedMs = monotonicMs();
    for (const collect of this.#collectors) {
      collect();
    }
    this.#refresh();
    const registry = accept.includes('application/openmetrics-text')
      ? this.#openMetrics
      : this.#text;
    const body = await registry.metrics();
    this.#scrapeDuration.observe((monotonicMs() - startedMs) / 1000);
    return { contentType: registry.contentType, body };
  }

  readonly #refresh = guarded("the reading of the workers' metrics", () => {
    this.#workers.refresh();
  });

  /**
   * prom-client renames counters in place when it writes OpenMetrics. So each registry gets its own
   * view of every metric.
   */
  #register(registry: Pick<client.Registry, 'registerMetric'>): void {
    for (const [name, metric] of this.#own) {
      registry.registerMetric(
        new View(name, CATALOGUE[name as MetricName], () =>
          readSamples(metric),
        ) as unknown as PromMetric,
      );
    }
    for (const entry of SHARED_FAMILIES) {
      registry.registerMetric(
        new View(entry.name, entry.family, () =>
          this.#workers.samples(entry),
        ) as unknown as PromMetric,
      );
    }
  }

  /**
   * Replaces label values that the catalogue does not allow by "other".
   * @throws TypeError where "other" is not allowed either
   */
  #bounded(name: MetricName, labels: object = {}): Record<string, string> {
    const bound: Record<string, string> = {};
    const given = labels as Record<string, string>;
    for (const [label, allowed] of Object.entries((CATALOGUE[name] as MetricFamily).labels)) {
      const value = String(given[label]);
      bound[label] = Array.isArray(allowed)
        ? listed(name, label, value, allowed)
        : this.#firstSeen(`${name}/${label}`, value, (allowed as { atMost: number }).atMost);
    }
    return bound;
  }

  #firstSeen(key: string, value: string, atMost: number): string {
    const values = this.#seen.get(key) ?? new Set();
    this.#seen.set(key, values);
    if (values.has(value)) {
      return value;
    }
    if (values.size >= atMost) {
      return 'other';
    }
    values.add(value);
    return value;
  }
}

function listed(name: string, label: string, value: string, allowed: readonly string[]): string {
  if (allowed.includes(value)) {
    return value;
  }
  if (allowed.includes('other')) {
    return 'other';
  }
  throw new TypeError(`${name}: label ${label}='${value}' is not in the catalogue`);
}

/** What prom-client has of a metric: a histogram's `labels` is its bucket, the others are shared. */
interface PromSample extends Omit<Sample, 'sharedLabels'> {
  readonly labels: { readonly le?: string | number };
  readonly sharedLabels?: LabelSet;
}

async function readSamples(metric: PromMetric): Promise<Sample[]> {
  if (!(metric instanceof client.Histogram)) {
    const { values } = await metric.get();
    return values.map(({ labels, value }) => ({ sharedLabels: labels as LabelSet, value }));
  }
  // The types of prom-client lack this method; get() would write new labels for every line.
  const { values } = await (
    metric as unknown as { getForPromString: () => Promise<{ values: PromSample[] }> }
  ).getForPromString();
  return values.map(({ labels: { le }, sharedLabels = {}, ...rest }) => ({
    ...rest,
    sharedLabels: le === undefined ? sharedLabels : withBound(sharedLabels, String(le)),
  }));
}

/** A metric in the form that prom-client's registry reads. */
class View {
  name: string;
  readonly help: string;
  readonly type: string;
  readonly #read: () => Sample[] | Promise<Sample[]>;

  constructor(
    name: string,
    { help, type }: MetricFamily,
    read: () => Sample[] | Promise<Sample[]>,
  ) {
    this.name = name;
    this.help = help;
    this.type = type;
    this.#read = read;
  }

  async getForPromString(): Promise<{
    name: string;
    help: string;
    type: string;
    values: Sample[];
  }> {
    const values = await this.#readOrNothing();
    return { name: this.name, help: this.help, type: this.type, values };
  }

  /** Leaves a metric that cannot be read empty, so that the others are still answered. */
  async #readOrNothing(): Promise<Sample[]> {
    try {
      return await this.#read();
    } catch (error) {
      reportDefect('the reading of a metric', error);
      return [];
    }
  }
}

function createPromMetric(name: string, family: MetricFamily): PromMetric {
  const options = {
    name,
    help: family.help,
    labelNames: Object.keys(family.labels),
    registers: [],
  };
  if (family.type === 'histogram') {
    return zeroed(
      new client.Histogram({
        ...options,
        buckets: [...family.buckets],
        enableExemplars: family.exemplar !== undefined,
      }),
      family,
    );
  }
  return zeroed(
    family.type === 'counter' ? new client.Counter(options) : new client.Gauge(options),
    family,
  );
}

function zeroed<M extends PromMetric>(metric: M, { labels, type }: MetricFamily): M {
  let combinations: Record<string, string>[] = [{}];
  for (const [label, values] of Object.entries(labels)) {
    if (!Array.isArray(values)) {
      return metric;
    }
    combinations = combinations.flatMap((partial) =>
      (values as readonly string[]).map((value) => ({ ...partial, [label]: value })),
    );
  }
  if (combinations.length > MAX_ZEROED_SERIES || Object.keys(labels).length === 0) {
    return metric;
  }
  for (const combination of combinations) {
    if (type === 'histogram') {
      (metric as client.Histogram).zero(combination);
    } else {
      (metric as client.Counter | client.Gauge).inc(combination, 0);
    }
  }
  return metric;
}

const exemplarLabels = (label: string, exemplar: Exemplar | undefined): Record<string, string> =>
  exemplar === undefined ? {} : { [label]: exemplar.id };

// What describes a metric of the catalogue: type, help, labels, buckets, and the thread that writes
// it.

/**
 * Values of a label: all of them, or the most that are kept at run time; further ones count as
 * "other".
 */
export type LabelValues = readonly string[] | { readonly atMost: number };
/** The labels of a metric, with their values. */
export type Labels = Readonly<Record<string, LabelValues>>;

/**
 * `front`: written on the main thread. `worker`: written into shared memory (shared-metrics.ts),
 * summed at scrape.
 */
export type Writer = 'front' | 'worker';
/** Types of the Prometheus data model. */
export type MetricType = 'counter' | 'gauge' | 'histogram';

/** One metric with all its series. */
export interface MetricFamily {
  readonly type: MetricType;
  readonly writer: Writer;
  readonly help: string;
  readonly labels: Labels;
  /** Upper bounds without +Inf, ascending; histograms only. */
  readonly buckets: readonly number[];
  /** Keep a `worker` label instead of summing over workers. */
  readonly perWorker: boolean;
  /** Label of its exemplars, in OpenMetrics; undefined: it has none. */
  readonly exemplar: 'session_id' | 'request_id' | undefined;
  /** Why no dashboard panel shows it; undefined: one must. */
  readonly unpanelled: string | undefined;
}

interface Options {
  readonly perWorker?: true;
  readonly exemplar?: 'session_id' | 'request_id';
  readonly unpanelled?: string;
}

const family = <T extends MetricType, W extends Writer, const L extends Labels>(
  type: T,
  writer: W,
  help: string,
  labels: L,
  buckets: readonly number[],
  options: Options,
) => ({
  type,
  writer,
  help,
  labels,
  buckets,
  perWorker: options.perWorker ?? false,
  exemplar: options.exemplar ?? undefined,
  unpanelled: options.unpanelled ?? undefined,
});

/** Describes a counter. */
export const counter = <W extends Writer, const L extends Labels = {}>(
  writer: W,
  help: string,
  labels: L = {} as L,
  options: Options = {},
) => family('counter', writer, help, labels, [], options);
/** Describes a gauge. */
export const gauge = <W extends Writer, const L extends Labels = {}>(
  writer: W,
  help: string,
  labels: L = {} as L,
  options: Options = {},
) => family('gauge', writer, help, labels, [], options);
/** Describes a histogram. */
export const histogram = <W extends Writer, const L extends Labels = {}>(
  writer: W,
  help: string,
  buckets: readonly number[],
  labels: L = {} as L,
  options: Options = {},
) => family('histogram', writer, help, labels, buckets, options);

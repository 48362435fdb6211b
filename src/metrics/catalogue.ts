// The catalogue of every metric: name (with its base unit), type, help, bounded labels, buckets,
// and the thread that writes it.
import { CLUSTER_METRICS } from './catalogue-cluster.ts';
import { CONVERSATION_METRICS } from './catalogue-conversation.ts';
import { HOST_METRICS } from './catalogue-host.ts';
import { SERVER_METRICS } from './catalogue-server.ts';
import { ROOM_METRICS } from './catalogue-rooms.ts';
import { SESSION_METRICS } from './catalogue-session.ts';
import { WORKER_METRICS } from './catalogue-worker.ts';
import { TRANSPORT_METRICS } from './catalogue-transport.ts';
import { STORAGE_METRICS } from './catalogue-storage.ts';
import type { MetricType, Writer } from './metric-family.ts';

/** All metrics, by name, in the order of /metrics. */
export const CATALOGUE = {
  ...SERVER_METRICS,
  ...SESSION_METRICS,
  ...ROOM_METRICS,
  ...CONVERSATION_METRICS,
  ...WORKER_METRICS,
  ...HOST_METRICS,
  ...TRANSPORT_METRICS,
  ...STORAGE_METRICS,
  ...CLUSTER_METRICS,
} as const;

/** The type of the catalogue. */
export type Catalogue = typeof CATALOGUE;
/** The name of a metric. */
export type MetricName = keyof Catalogue;
/** All names, in the order of the catalogue. */
export const METRIC_NAMES = Object.keys(CATALOGUE) as MetricName[];

/** Names of the metrics of one type that one kind of thread may write. */
export type NameOf<T extends MetricType, W extends Writer> = {
  [N in MetricName]: Catalogue[N]['type'] extends T
    ? Catalogue[N]['writer'] extends W
      ? N
      : never
    : never;
}[MetricName];

/** The labels of a metric, with their values. */
export type LabelsOf<N extends MetricName> = {
  readonly [
    L in keyof Catalogue[N]['labels']
  ]: Catalogue[N]['labels'][L] extends readonly (infer V)[] ? V : string;
};

/** The labels argument of a metric: absent when the metric has no labels. */
export type LabelArguments<N extends MetricName> = keyof Catalogue[N]['labels'] extends never
  ? []
  : [labels: LabelsOf<N>];

/** One series that only grows. */
export interface Counter {
  add(amount?: number): void;
}
/** One series with a current value. */
export interface Gauge {
  set(value: number): void;
  add(amount: number): void;
}
/** One series of observations. */
export interface Histogram {
  observe(value: number, exemplar?: Exemplar): void;
}

/**
 * The session or request of an observation: leads from a slow bucket to one of them. Made by
 * `exemplarOf`.
 */
export interface Exemplar {
  /** UUID. */
  readonly id: string;
  /** The UUID as four 32-bit words. */
  readonly words: readonly [number, number, number, number];
}

/**
 * Writes the metrics of one kind of thread. Resolve a handle once; its `add`, `set` and `observe`
 * are cheap enough for every frame.
 */
export interface Meter<W extends Writer> {
  counter<N extends NameOf<'counter', W>>(name: N, ...labels: LabelArguments<N>): Counter;
  gauge<N extends NameOf<'gauge', W>>(name: N, ...labels: LabelArguments<N>): Gauge;
  histogram<N extends NameOf<'histogram', W>>(name: N, ...labels: LabelArguments<N>): Histogram;
}

// What a scenario is: options in, figures, bounds and plots out; and what it is given to work with.
import type { LoadData } from './load/load-data.ts';
import type { Plot } from './report/plot.ts';

export type OptionValue = string | number;
export type Options = Readonly<Record<string, OptionValue>>;

/**
 * One bound that was stated before the run. A figure that could not be measured is NaN and does not
 * hold.
 */
export interface Bound {
  readonly name: string;
  readonly value: number;
  readonly relation: '<=' | '>=';
  readonly limit: number;
  readonly unit: string;
}

export const holds = ({ value, relation, limit }: Bound): boolean =>
  relation === '<=' ? value <= limit : value >= limit;
export const atMost = (name: string, value: number, limit: number, unit = ''): Bound => ({
  name,
  value,
  relation: '<=',
  limit,
  unit,
});
export const atLeast = (name: string, value: number, limit: number, unit = ''): Bound => ({
  name,
  value,
  relation: '>=',
  limit,
  unit,
});

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

export interface Outcome {
  /** Flat and named with units, for the history line. */
  readonly figures: Readonly<Record<string, number>>;
  readonly bounds: readonly Bound[];
  readonly tables: readonly Table[];
  readonly plots: readonly Plot[];
  /**
   * What a reader must know to judge the figures: how something was measured, what could not be
   * known.
   */
  readonly notes: readonly string[];
  /** What can be merged with the reports of other machines. */
  readonly load?: LoadData;
}

export interface Target {
  readonly url: string;
  readonly apiKey: string;
}

export interface Server extends Target {
  /** Process id; undefined for a server elsewhere. */
  readonly pid: number | undefined;
  /** Its inspector, when it was asked for; see live-memory.ts. */
  readonly inspectorUrl?: string | undefined;
  readonly stop: () => Promise<unknown>;
}

export interface Context {
  readonly options: Options;
  /** A server elsewhere; undefined: the scenario starts its own. */
  readonly target: Target | undefined;
  /**
   * A server to measure: the target, or one of our own with these settings, of the source tree that
   * the bench measures unless told. Stopped after the run if it still runs.
   */
  server(
    settings?: Readonly<Record<string, string>>,
    options?: { readonly inspect?: boolean; readonly tree?: string | undefined },
  ): Promise<Server>;
  /**
   * Keeps a value of a figure that is measured over time: the report draws each over the run.
   * @param atMs when it was measured, as performance.now(); now by default
   */
  record(name: string, value: number, unit: string, atMs?: number): void;
  /** One line of the live table. */
  progress(line: string): void;
  /** Cleans up after the run, whatever happens; last in, first out. */
  defer(cleanUp: () => Promise<unknown> | void): void;
}

export interface Scenario {
  readonly name: string;
  readonly about: string;
  /** Options and their defaults; the type of a default is the type of the option. */
  readonly options: Options;
  /** What `--small` changes: seconds instead of minutes, for the tests. */
  readonly small: Options;
  run(context: Context): Promise<Outcome>;
}

export const number = (options: Options, name: string): number => Number(options[name]);
export const text = (options: Options, name: string): string => String(options[name]);

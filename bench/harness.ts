// The harness of the micro benches: cases take turns in one run, so that their ratios hold on a
// machine whose speed drifts.
import process from 'node:process';

export interface BenchCase {
  readonly name: string;
  /**
   * One operation; `round` counts up, so that inputs can vary. Asynchronous cases cost a promise a
   * call.
   */
  readonly run: (round: number) => unknown;
  /** How many items (frames, samples...) one operation handles; figures are per item. Default 1. */
  readonly items?: number;
}

export interface BenchOptions {
  /** Wall-clock budget for all cases together. Default 2000 ms. */
  readonly budgetMs?: number;
  /** The case that others are compared with. Default: the first. */
  readonly reference?: string;
}

export interface BenchResult {
  readonly name: string;
  /** Milliseconds per item: median, 10th and 90th percentile over batches. */
  readonly medianMs: number;
  readonly p10Ms: number;
  readonly p90Ms: number;
  /** Median over that of the reference case in the same run. */
  readonly ratio: number;
  readonly operations: number;
}

const BATCH_MS = 2;
const WARM_UP_MS = 50;

/** @returns the value at `fraction` (0..1) of `values` in order. */
export function quantile(values: readonly number[], fraction: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(fraction * sorted.length))] ?? Number.NaN;
}

/**
 * Runs every case in turn, in batches of about 2 ms, until the budget is spent.
 * @throws when there is nothing to run.
 */
export async function measure(
  cases: readonly BenchCase[],
  options: BenchOptions = {},
): Promise<BenchResult[]> {
  if (cases.length === 0) {
    throw new Error('measure() needs at least one case');
  }
  const states = cases.map((item) => ({ item, round: 0, batch: 1, times: [] as number[] }));
  const runBatch = async (
    { item, batch }: { item: BenchCase; batch: number },
    round: number,
  ): Promise<number> => {
    const started = performance.now();
    for (let i = 0; i < batch; i++) {
      const result = item.run(round + i);
      if (result instanceof Promise) {
        await result;
      }
    }
    return performance.now() - started;
  };
  for (const state of states) {
    for (const end = performance.now() + WARM_UP_MS; performance.now() < end; state.round++) {
      await runBatch({ item: state.item, batch: 1 }, state.round);
    }
    state.batch = Math.max(1, Math.round(BATCH_MS / (WARM_UP_MS / state.round)));
  }
  const deadline = performance.now() + (options.budgetMs ?? 2000);
  do {
    for (const state of states) {
      state.times.push(
        (await runBatch(state, state.round)) / state.batch / (state.item.items ?? 1),
      );
      state.round += state.batch;
    }
  } while (performance.now() < deadline);
  const referenceName = options.reference ?? cases[0]?.name;
  const reference = states.find((state) => state.item.name === referenceName);
  if (!reference) {
    throw new Error(`the reference case '${referenceName}' is not among the cases`);
  }
  const base = quantile(reference.times, 0.5);
  return states.map(({ item, times, batch }) => {
    const medianMs = quantile(times, 0.5);
    return {
      name: item.name,
      medianMs,
      p10Ms: quantile(times, 0.1),
      p90Ms: quantile(times, 0.9),
      ratio: medianMs / base,
      operations: times.length * batch,
    };
  });
}

/** Prints a table for people on stderr, and one line of JSON per case on stdout for scripts. */
export function report(bench: string, results: readonly BenchResult[]): void {
  const width = Math.max(...results.map((result) => result.name.length));
  for (const result of results) {
    console.error(
      `${bench}  ${result.name.padEnd(width)}  ${formatMs(result.medianMs).padStart(9)}  ` +
        `(p10 ${formatMs(result.p10Ms)}, ` +
        `p90 ${formatMs(result.p90Ms)})  ${result.ratio.toFixed(2)}x`,
    );
    process.stdout.write(`${JSON.stringify({ bench, ...result })}\n`);
  }
}

/** 0.0123 → '12.3 µs' */
export function formatMs(ms: number): string {
  if (ms >= 1) {
    return `${ms.toPrecision(3)} ms`;
  }
  return ms >= 1e-3 ? `${(ms * 1e3).toPrecision(3)} µs` : `${(ms * 1e6).toPrecision(3)} ns`;
}

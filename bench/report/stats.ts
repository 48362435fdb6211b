// Numbers out of numbers: quantiles of samples and of histograms, slopes, and what a machine is.
import { execFileSync } from 'node:child_process';
import os from 'node:os';

/** @returns the value at fraction `q` (0..1); NaN of nothing. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) {
    return Number.NaN;
  }
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)]!;
  return low + (sorted[Math.ceil(at)]! - low) * (at - Math.floor(at));
}

/**
 * Samples that must be expected beyond a quantile before it is told: 99 % takes 20 samples, 90 %
 * takes 2. Fewer only tell their longest.
 */
const LEAST_BEYOND = 0.2;
export const isEnough = (samples: number, q: number): boolean =>
  q <= 0.5 ? samples > 0 : samples * (1 - q) > LEAST_BEYOND - 1e-9;

/** As `quantile`, but NaN where there are too few samples to speak of one. */
export const tailQuantile = (values: readonly number[], q: number): number =>
  isEnough(values.length, q) ? quantile(values, q) : Number.NaN;

export const mean = (values: readonly number[]): number =>
  values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0) / values.length;

export interface Bucket {
  readonly le: number;
  readonly count: number;
}

/**
 * As Prometheus' histogram_quantile: linear within a bucket. `buckets` are cumulative, ascending,
 * +Inf last.
 */
export function histogramQuantile(buckets: readonly Bucket[], q: number): number {
  const total = buckets.at(-1)?.count ?? 0;
  if (total === 0) {
    return Number.NaN;
  }
  const rank = q * total;
  const index = buckets.findIndex(({ count }) => count >= rank);
  const { le, count } = buckets[index]!;
  if (le === Number.POSITIVE_INFINITY) {
    return buckets[index - 1]?.le ?? Number.NaN;
  }
  const below = index === 0 ? { le: Math.min(0, le), count: 0 } : buckets[index - 1]!;
  return below.le + ((le - below.le) * (rank - below.count)) / Math.max(1e-12, count - below.count);
}

/** Least squares. @returns units of y per unit of x; NaN below three points. */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  if (points.length < 3) {
    return Number.NaN;
  }
  const meanX = mean(points.map(([x]) => x));
  const meanY = mean(points.map(([, y]) => y));
  const covariance = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  return covariance / points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
}

/**
 * Least squares through the lowest point of each window: the course of what stays, where
 * collections make a sawtooth of the whole. A window must hold a whole tooth; what does not fill
 * one at the end is left out.
 * @returns units of y per unit of x; NaN below three windows
 */
export function floorSlope(
  points: readonly (readonly [x: number, y: number])[],
  window: number,
): number {
  if (points.length === 0) {
    return Number.NaN;
  }
  const from = points[0]![0];
  // By how far apart readings are, so that a window is not dropped for its last one.
  const step = (points.at(-1)![0] - from) / Math.max(1, points.length - 1);
  const windows = Math.floor((points.at(-1)![0] - from + step * 1.5) / window);
  const lowest = Array.from({ length: windows }, (_, index) =>
    points
      .filter(([x]) => Math.floor((x - from) / window) === index)
      .reduce<readonly [number, number] | undefined>(
        (low, point) => (low === undefined || point[1] < low[1] ? point : low),
        undefined,
      ),
  );
  return slope(lowest.filter((point) => point !== undefined));
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly node: string;
}

export const machine = (): Machine => ({
  cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
  cores: os.availableParallelism(),
  memoryGb: Math.round(os.totalmem() / 2 ** 30),
  kernel: os.release(),
  node: process.versions.node,
});

/**
 * Short hash of HEAD with a "+" when the tree differs from it; "unknown" outside of a repository.
 */
export function commit(folder: string): string {
  try {
    const git = (...args: string[]): string =>
      execFileSync('git', args, {
        cwd: folder,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim();
    return (
      git('rev-parse', '--short', 'HEAD') +
      (git('status', '--porcelain', '--', 'src', 'native', 'models') === '' ? '' : '+')
    );
  } catch {
    return 'unknown';
  }
}

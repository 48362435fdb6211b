// How a signal moves: its spread, by band of frequency, and its speed.
import { FPS } from '../../src/media/timeline.ts';

/** Borders of the bands, Hz. */
const BANDS = [
  [0, 0.5],
  [0.5, 1],
  [1, 2],
  [2, 5],
] as const;

export interface Spread {
  /** Standard deviation. */
  readonly sd: number;
  /** Root mean square below 0.5 Hz, from 0.5 to 1, 1 to 2, and 2 to 5 Hz. */
  readonly bands: readonly number[];
  /** Mean absolute speed per second. */
  readonly speed: number;
}

/** Measures a signal of FPS values a second by its Fourier transform. */
export function spread(signal: readonly number[]): Spread {
  const n = signal.length;
  const mean = signal.reduce((sum, value) => sum + value, 0) / n;
  const bands = BANDS.map(([low, high]) => {
    let power = 0;
    for (let k = Math.max(1, Math.ceil((low * n) / FPS)); k < (high * n) / FPS; k++) {
      // The rotation by recurrence: exact enough for a few thousand values.
      const cos = Math.cos((2 * Math.PI * k) / n);
      const sin = Math.sin((2 * Math.PI * k) / n);
      let re = 0;
      let im = 0;
      let x = 1;
      let y = 0;
      for (let i = 0; i < n; i++) {
        const value = signal[i]! - mean;
        re += value * x;
        im += value * y;
        const turned = x * cos - y * sin;
        y = x * sin + y * cos;
        x = turned;
      }
      power += 2 * (re * re + im * im);
    }
    return Math.sqrt(power) / n;
  });
  const square = signal.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const path = signal.reduce(
    (sum, value, i) => sum + Math.abs(value - signal[Math.max(0, i - 1)]!),
    0,
  );
  return { sd: Math.sqrt(square / n), bands, speed: (path * FPS) / n };
}

/** Pearson's correlation of two signals of equal length. */
export function correlation(a: readonly number[], b: readonly number[]): number {
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const [ma, mb] = [mean(a), mean(b)];
  let [ab, aa, bb] = [0, 0, 0];
  for (const [i, value] of a.entries()) {
    ab += (value - ma) * (b[i]! - mb);
    aa += (value - ma) ** 2;
    bb += (b[i]! - mb) ** 2;
  }
  return ab / Math.sqrt(aa * bb);
}

// How well articulation follows its reference: correlation, closures found, lag, and motion where
// there should be none.
import { ARTICULATION_SIZE, ARTICULATOR_INDEX, ARTICULATORS } from '../src/media/articulation.ts';
import { FPS } from '../src/media/timeline.ts';

/**
 * A predicted closure counts when its middle lies within this of a reference closure's interval.
 */
export const CLOSURE_TOLERANCE_S = 0.04;
const CLOSED = 0.5;
const MOVED = 0.05;
/**
 * The six curves of the mouth that one sees most; their mean correlation is the headline figure.
 */
export const MOUTH = ['jaw', 'open', 'press', 'round', 'wide', 'tuck'] as const;
const MOUTH_CHANNELS = ARTICULATORS.length - 3; // without brow, nod, speech

/**
 * One recording: frames of ARTICULATION_SIZE channels each, `timeOf(k)` the audio instant that
 * frame k describes.
 */
export interface Track {
  readonly predicted: readonly Float32Array[];
  readonly reference: readonly (readonly number[])[] | undefined;
  readonly closures: readonly (readonly [number, number])[];
}

export const timeOf = (frame: number, lookaheadMs: number): number =>
  (frame + 1) / FPS - lookaheadMs / 1000;

export function correlation(x: readonly number[], y: readonly number[]): number {
  const mean = (v: readonly number[]): number => v.reduce((a, b) => a + b, 0) / v.length;
  const mx = mean(x);
  const my = mean(y);
  let xy = 0;
  let xx = 0;
  let yy = 0;
  for (let i = 0; i < x.length; i++) {
    const dx = x[i]! - mx;
    const dy = y[i]! - my;
    xy += dx * dy;
    xx += dx * dx;
    yy += dy * dy;
  }
  return xx > 0 && yy > 0 ? xy / Math.sqrt(xx * yy) : 0;
}

/** Correlation of each channel over all frames of all tracks. */
export function correlations(tracks: readonly Track[]): Record<string, number> {
  const out: Record<string, number> = {};
  for (let c = 0; c < ARTICULATION_SIZE; c++) {
    const predicted: number[] = [];
    const reference: number[] = [];
    for (const track of tracks) {
      for (let k = 0; k < track.predicted.length; k++) {
        predicted.push(track.predicted[k]![c]!);
        reference.push(track.reference![k]![c]!);
      }
    }
    out[ARTICULATORS[c]!] = correlation(predicted, reference);
  }
  return out;
}

export const mouthMean = (r: Record<string, number>): number =>
  MOUTH.reduce((sum, name) => sum + r[name]!, 0) / MOUTH.length;

/** Middles of the runs of frames in which the lips are pressed together, in seconds. */
export function predictedClosures(track: Track, lookaheadMs: number): number[] {
  const middles: number[] = [];
  let weight = 0;
  let moment = 0;
  for (let k = 0; k <= track.predicted.length; k++) {
    const press = k < track.predicted.length ? track.predicted[k]![ARTICULATOR_INDEX.press]! : 0;
    if (press >= CLOSED) {
      weight += press;
      moment += press * timeOf(k, lookaheadMs);
    } else if (weight > 0) {
      middles.push(moment / weight);
      weight = 0;
      moment = 0;
    }
  }
  return middles;
}

export interface ClosureScore {
  precision: number;
  recall: number;
  f1: number;
  reference: number;
  predicted: number;
}

export function scoreClosures(tracks: readonly Track[], lookaheadMs: number): ClosureScore {
  let hits = 0;
  let predicted = 0;
  let reference = 0;
  for (const track of tracks) {
    const middles = predictedClosures(track, lookaheadMs);
    predicted += middles.length;
    reference += track.closures.length;
    const used = new Set<number>();
    for (const [start, end] of track.closures) {
      const found = middles.findIndex(
        (t, i) =>
          !used.has(i) && t >= start - CLOSURE_TOLERANCE_S && t <= end + CLOSURE_TOLERANCE_S,
      );
      if (found < 0) {
        continue;
      }
      used.add(found);
      hits++;
    }
  }
  const precision = predicted > 0 ? hits / predicted : 0;
  const recall = reference > 0 ? hits / reference : 0;
  return {
    precision,
    recall,
    f1: precision + recall > 0 ? (2 * precision * recall) / (precision + recall) : 0,
    reference,
    predicted,
  };
}

/**
 * The shift of the predicted mouth against the reference, in ms, at which they agree best
 * (positive: late), to a tenth of a frame.
 */
export function lagMs(tracks: readonly Track[]): number {
  const at = (shift: number): number => {
    const predicted: number[] = [];
    const reference: number[] = [];
    for (const track of tracks) {
      for (let k = Math.max(0, shift); k < track.predicted.length + Math.min(0, shift); k++) {
        predicted.push(track.predicted[k]![ARTICULATOR_INDEX.open]!);
        reference.push(track.reference![k - shift]![ARTICULATOR_INDEX.open]!);
      }
    }
    return correlation(predicted, reference);
  };
  const shifts = [-3, -2, -1, 0, 1, 2, 3];
  const values = shifts.map((shift) => at(shift));
  const best = Math.min(Math.max(values.indexOf(Math.max(...values)), 1), shifts.length - 2);
  const [left, middle, right] = [values[best - 1]!, values[best]!, values[best + 1]!];
  const offset = (left - right) / (2 * (left - 2 * middle + right));
  return ((shifts[best]! + offset) * 1000) / FPS;
}

/**
 * Median, over recordings, of how much later the mouth first opens than the reference's does, in
 * ms.
 */
export function onsetLagMs(tracks: readonly Track[]): number {
  const first = (frames: readonly ArrayLike<number>[]): number =>
    frames.findIndex((frame) => frame[ARTICULATOR_INDEX.open]! > 0.15);
  const lags = tracks
    .map((track) => [first(track.predicted), first(track.reference!)] as const)
    .filter(([a, b]) => a >= 0 && b >= 0)
    .map(([a, b]) => ((a - b) * 1000) / FPS)
    .sort((a, b) => a - b);
  return lags[lags.length >> 1] ?? Number.NaN;
}

/** The largest value of any mouth channel, and the share of frames in which one exceeds 0.05. */
export function motion(tracks: readonly Track[]): { peak: number; moving: number } {
  let peak = 0;
  let moving = 0;
  let frames = 0;
  for (const track of tracks) {
    for (const frame of track.predicted) {
      const largest = Math.max(...frame.subarray(0, MOUTH_CHANNELS));
      peak = Math.max(peak, largest);
      moving += largest > MOVED ? 1 : 0;
      frames++;
    }
  }
  return { peak, moving: frames > 0 ? moving / frames : 0 };
}

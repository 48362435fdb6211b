// Judges a recording: where the mouth is, how far it is open, and how far picture and sound are
// apart. The head's motion is taken out first.
import { type Recording, type ShownFrame, framesBetween } from './probe.ts';
import { FRAME_MS } from '../../src/media/timeline.ts';
import { opennessOf } from './phone-openness.ts';
import type { Speech } from './speech.ts';
import { steady } from './steady.ts';

/** Steps of the common time grid on which picture and sound are compared. */
const GRID_MS = 5;

/**
 * A frame is seen from when it is shown until the next one is: on average half a frame after it
 * came up.
 */
const SEEN_AFTER_MS = FRAME_MS / 2;
const seenTimes = (frames: readonly ShownFrame[]): number[] =>
  frames.map(({ shownMs }) => shownMs + SEEN_AFTER_MS);

export interface Region {
  /** Indices into a frame's luma. */
  readonly pixels: readonly number[];
}

/** The pixels of a picture `size` wide and high whose place, as shares of it, satisfies `isIn`. */
export const region = (size: number, isIn: (x: number, y: number) => boolean): Region => ({
  pixels: [...Array(size * size).keys()].filter((i) =>
    isIn(((i % size) + 0.5) / size, (Math.floor(i / size) + 0.5) / size),
  ),
});

export interface MouthRegion extends Region {
  readonly centerX: number;
  readonly centerY: number;
}

/**
 * Mean square of each pixel's change from frame to frame: what moves fast, as lips do, and not what
 * sways, as heads do.
 */
function restlessness(frames: readonly ShownFrame[], area: number): Float64Array {
  const sum = new Float64Array(area);
  for (let n = 1; n < frames.length; n++) {
    const [before, now] = [frames[n - 1]!.luma, frames[n]!.luma];
    for (let i = 0; i < area; i++) {
      sum[i]! += (now[i]! - before[i]!) ** 2;
    }
  }
  return sum.map((value) => value / (frames.length - 1));
}

/** A mouth is at most about this wide, as a share of the picture. */
const MOUTH_WIDTH = 0.24;

/**
 * The mouth: a patch of the lower half (no eyes) that moves much more while there is speech than in
 * silence.
 * @throws Error when nothing of the kind is there, which is to say that the mouth did not move.
 */
export function findMouth(
  recording: Recording,
  speech: { fromMs: number; toMs: number },
  quiet: { fromMs: number; toMs: number },
): MouthRegion {
  const { size } = recording;
  const speaking = framesBetween(steady(recording), speech.fromMs, speech.toMs);
  const silent = framesBetween(steady(recording), quiet.fromMs, quiet.toMs);
  if (speaking.length < 10 || silent.length < 5) {
    throw new Error(
      `too few frames to find a mouth: ${speaking.length} with speech, ${silent.length} without`,
    );
  }
  const still = restlessness(silent, size * size);
  const excess = restlessness(speaking, size * size).map((value, i) =>
    Math.floor(i / size) < size * 0.45 ? 0 : value - 2 * still[i]!,
  );
  const strongest = Math.max(...excess);
  if (strongest < 10) {
    throw new Error(
      'no mouth moves: the fastest pixel in speech exceeds silence ' +
        `by ${strongest.toFixed(1)} grey levels² a frame`,
    );
  }
  const candidates = [...excess.keys()].filter((i) => excess[i]! > 0.15 * strongest);
  const around = (center: number): number[] =>
    candidates.filter(
      (i) =>
        Math.hypot((i % size) - (center % size), Math.floor(i / size) - Math.floor(center / size)) <
        (size * MOUTH_WIDTH) / 2,
    );
  const weight = (pixels: readonly number[]): number =>
    pixels.reduce((sum, i) => sum + excess[i]!, 0);
  const pixels = candidates
    .map(around)
    .reduce((best, patch) => (weight(patch) > weight(best) ? patch : best));
  const mean = (of: (pixel: number) => number): number =>
    pixels.reduce((total, pixel) => total + of(pixel), 0) / pixels.length;
  return {
    pixels,
    centerX: mean((pixel) => pixel % size),
    centerY: mean((pixel) => Math.floor(pixel / size)),
  };
}

/**
 * Mean absolute change from one frame to the next over a region, in grey levels: entry n is between
 * frames n-1 and n.
 */
export function motion(frames: readonly ShownFrame[], { pixels }: Region): Float64Array {
  return Float64Array.from(frames, ({ luma }, n) => {
    const previous = frames[n - 1]?.luma;
    if (!previous || pixels.length === 0) {
      return 0;
    }
    return (
      pixels.reduce((sum, pixel) => sum + Math.abs(luma[pixel]! - previous[pixel]!), 0) /
      pixels.length
    );
  });
}

/** Mean of `motion` between two instants. */
export function meanMotion(
  recording: Recording,
  where: Region,
  fromMs: number,
  toMs: number,
): number {
  const values = motion(framesBetween(steady(recording), fromMs, toMs), where);
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length - 1);
}

/**
 * The time of the last frame in which the region moves by a third or more of its usual motion
 * between two instants: less is the encoder refining.
 */
export function lastMotion(
  recording: Recording,
  where: Region,
  usual: { fromMs: number; toMs: number },
): number {
  const threshold = meanMotion(recording, where, usual.fromMs, usual.toMs) / 3;
  const last = motion(steady(recording).frames, where).findLastIndex((value) => value > threshold);
  return recording.frames[last]?.shownMs ?? 0;
}

/**
 * The time of the first frame after `sinceMs` in which the region moves clearly more than it did in
 * the second before.
 */
export function firstMotion(recording: Recording, where: Region, sinceMs: number): number {
  const values = motion(steady(recording).frames, where);
  const quiet = values.filter(
    (_, n) =>
      recording.frames[n]!.shownMs < sinceMs && recording.frames[n]!.shownMs > sinceMs - 1000,
  );
  const threshold = Math.max(1, 3 * Math.max(...quiet));
  const first = values.findIndex(
    (value, n) => value > threshold && recording.frames[n]!.shownMs > sinceMs,
  );
  return recording.frames[first]?.shownMs ?? Infinity;
}

/**
 * Frames to either side over which a pixel's own mean is taken away: head sway is slower than this,
 * speech faster.
 */
const SWAY_FRAMES = 15;

/**
 * How far the mouth is open in each frame: the projection of its pixels on their first principal
 * component, by power iteration. Its scale is arbitrary; its sign is chosen so that open is
 * positive (an open mouth is darker than lips and skin).
 */
export function opening(frames: readonly ShownFrame[], { pixels }: MouthRegion): Float64Array {
  const series = pixels.map((pixel) =>
    highPass(Float64Array.from(frames, ({ luma }) => luma[pixel]!)),
  );
  let axis: Float64Array = new Float64Array(pixels.length).fill(1);
  const project = (n: number): number =>
    series.reduce((sum, values, k) => sum + values[n]! * axis[k]!, 0);
  for (let round = 0; round < 30; round++) {
    const weights = Float64Array.from(frames, (_, n) => project(n));
    const next = Float64Array.from(series, (values) =>
      values.reduce((sum, value, n) => sum + value * weights[n]!, 0),
    );
    const length = Math.hypot(...next) || 1;
    axis = next.map((value) => value / length);
  }
  const sign = axis.reduce((sum, value) => sum + value, 0) > 0 ? -1 : 1;
  return Float64Array.from(frames, (_, n) => sign * project(n));
}

function highPass(values: Float64Array): Float64Array {
  return values.map((value, n) => {
    const around = values.subarray(Math.max(0, n - SWAY_FRAMES), n + SWAY_FRAMES + 1);
    return value - around.reduce((sum, one) => sum + one, 0) / around.length;
  });
}

/**
 * Loudness over time: root mean square in windows of 20 ms, one value each 5 ms, compressed as the
 * ear does.
 */
export function envelope(sound: Int16Array, rate = 16_000): Float64Array {
  const hop = (rate * GRID_MS) / 1000;
  const half = 2 * hop;
  return Float64Array.from({ length: Math.floor(sound.length / hop) }, (_, n) => {
    let sum = 0;
    const from = Math.max(0, n * hop - half);
    const to = Math.min(sound.length, n * hop + half);
    for (let i = from; i < to; i++) {
      sum += sound[i]! ** 2;
    }
    return Math.sqrt(Math.sqrt(sum / (to - from)));
  });
}

/** Linear interpolation of a series with uneven times onto an even grid. */
export function onGrid(
  timesMs: readonly number[],
  values: ArrayLike<number>,
  fromMs: number,
  toMs: number,
): Float64Array {
  let at = 0;
  return Float64Array.from({ length: Math.floor((toMs - fromMs) / GRID_MS) }, (_, n) => {
    const timeMs = fromMs + n * GRID_MS;
    while (at + 1 < timesMs.length && timesMs[at + 1]! <= timeMs) {
      at++;
    }
    const [before, after] = [timesMs[at]!, timesMs[at + 1] ?? timesMs[at]! + 1];
    const share = Math.max(0, Math.min(1, (timeMs - before) / (after - before)));
    return values[at]! * (1 - share) + (values[at + 1] ?? values[at]!) * share;
  });
}

export interface Correlation {
  readonly lagMs: number;
  readonly correlation: number;
}

/**
 * The lag of `b` behind `a` (both on the 5 ms grid, same start) at which they correlate best, to a
 * fraction of a step.
 */
export function bestLag(a: Float64Array, b: Float64Array, limitMs = 300): Correlation {
  const limit = Math.round(limitMs / GRID_MS);
  const scores = Array.from({ length: 2 * limit + 1 }, (_, k) => correlationAt(a, b, k - limit));
  const best = scores.indexOf(Math.max(...scores));
  const [left, top, right] = [
    scores[best - 1] ?? scores[best]!,
    scores[best]!,
    scores[best + 1] ?? scores[best]!,
  ];
  const bend = left - 2 * top + right;
  const shift = bend < 0 ? (0.5 * (left - right)) / bend : 0;
  return { lagMs: (best - limit + shift) * GRID_MS, correlation: top };
}

function correlationAt(a: Float64Array, b: Float64Array, lag: number): number {
  let [n, sumA, sumB, sumAA, sumBB, sumAB] = [0, 0, 0, 0, 0, 0];
  for (let i = Math.max(0, -lag); i < a.length && i + lag < b.length; i++) {
    const [x, y] = [a[i]!, b[i + lag]!];
    n++;
    sumA += x;
    sumB += y;
    sumAA += x * x;
    sumBB += y * y;
    sumAB += x * y;
  }
  const spread = Math.sqrt((sumAA - (sumA * sumA) / n) * (sumBB - (sumB * sumB) / n));
  return spread > 0 ? (sumAB - (sumA * sumB) / n) / spread : 0;
}

export interface Location {
  /** 16 kHz; where the needle's first sample is in the hay. */
  readonly sample: number;
  /** Of the two envelopes: is it the same speech? */
  readonly likeness: number;
  /**
   * Of the samples, over a second from the middle: was it left as it was? A player that stretches
   * sound lowers this.
   */
  readonly correlation: number;
}

/**
 * Where `needle` (16 kHz) begins in `hay`: best match of the two envelopes, then of the samples
 * themselves.
 */
export function locate(hay: Int16Array, needle: Int16Array): Location {
  const [whole, part] = [envelope(hay), envelope(needle)];
  const step = 16 * GRID_MS;
  const at = bestMatch(whole, part, 0, whole.length - part.length);
  // A stretch of a second is enough to fix the sample, and cheap.
  const offset = Math.max(0, Math.floor(needle.length / 2) - 8000);
  const fine = bestMatch(
    hay,
    needle.subarray(offset, offset + 16_000),
    at.index * step + offset - 2 * step,
    at.index * step + offset + 2 * step,
  );
  return {
    sample: fine.score > 0.7 ? fine.index - offset : at.index * step,
    likeness: at.score,
    correlation: fine.score,
  };
}

/** Pearson's correlation of the needle with each stretch of the hay. */
function bestMatch(
  hay: ArrayLike<number>,
  needle: ArrayLike<number>,
  from: number,
  to: number,
): { index: number; score: number } {
  const count = needle.length;
  let [sum, squares] = [0, 0];
  for (let k = 0; k < count; k++) {
    sum += needle[k]!;
    squares += needle[k]! ** 2;
  }
  const spread = squares - (sum * sum) / count;
  let best = { index: Math.max(0, from), score: -1 };
  for (let index = Math.max(0, from); index <= Math.min(to, hay.length - count); index++) {
    let [dot, total, energy] = [0, 0, 0];
    for (let k = 0; k < count; k++) {
      const value = hay[index + k]!;
      dot += value * needle[k]!;
      total += value;
      energy += value * value;
    }
    const score =
      (dot - (total * sum) / count) / (Math.sqrt((energy - (total * total) / count) * spread) || 1);
    if (score > best.score) {
      best = { index, score };
    }
  }
  return best;
}

/**
 * How late the sound is behind the lips: positive, the sound comes after the lips. Mouth opening is
 * compared with loudness between two instants of the recording.
 */
export function soundBehindLips(
  recording: Recording,
  mouth: MouthRegion,
  fromMs: number,
  toMs: number,
): Correlation {
  const frames = framesBetween(steady(recording), fromMs - 200, toMs + 200);
  const open = onGrid(seenTimes(frames), opening(frames, mouth), fromMs, toMs);
  const loud = envelope(recording.sound);
  const times = Array.from(loud, (_, n) => recording.soundStartMs + n * GRID_MS);
  return bestLag(open, onGrid(times, loud, fromMs, toMs));
}

/**
 * Lips take about this long from one target to the next: half-width of the smoothing of the
 * expected course.
 */
const LIP_SMOOTHING_MS = 40;

/**
 * How late the sound is behind the lips, by comparing the measured mouth with what a mouth does to
 * the sounds that were said. Unlike loudness this knows that lips open before a vowel and stay shut
 * through a voiced m.
 * @param heardMs when the first sample of the speech was heard
 */
export function closestLips(
  recording: Recording,
  mouth: MouthRegion,
  speech: Speech,
  heardMs: number,
): Correlation {
  const [fromMs, toMs] = [heardMs - 300, heardMs + speech.durationMs + 300];
  const frames = framesBetween(steady(recording), fromMs - 200, toMs + 200);
  const open = onGrid(seenTimes(frames), opening(frames, mouth), fromMs, toMs);
  const target = (timeMs: number): number =>
    opennessOf(speech.segments.find(({ endMs }) => timeMs < endMs)?.phone ?? 'pau');
  const expected = Float64Array.from(open, (_, n) => {
    let sum = 0;
    for (let offset = -LIP_SMOOTHING_MS; offset <= LIP_SMOOTHING_MS; offset += GRID_MS) {
      const timeMs = fromMs + n * GRID_MS + offset - heardMs;
      sum += timeMs < 0 ? 0 : target(timeMs);
    }
    return sum;
  });
  return bestLag(open, expected);
}

// Holds the head of a recording still, so that what is left of its motion is the face's: finds how far
// eyes and nose have moved and turned in each frame (B. Lucas and T. Kanade 1981), and moves it back.
import type { Recording } from './probe.ts';

/** Where eyes and nose are, as shares of the picture. */
const HEAD = { left: 0.28, right: 0.72, top: 0.2, bottom: 0.54 };
const ROUNDS = 6;

const steadied = new WeakMap<Recording, Recording>();

/** @returns the recording with each frame's luma as if the head stood as in the middle frame */
export function steady(recording: Recording): Recording {
  let held = steadied.get(recording);
  if (held === undefined) {
    const { frames, size } = recording;
    const lumas = steadyLumas(
      frames.map(({ luma }) => luma),
      size,
    );
    held = { ...recording, frames: frames.map((frame, n) => ({ ...frame, luma: lumas[n]! })) };
    steadied.set(recording, held);
    steadied.set(held, held);
  }
  return held;
}

/**
 * @param lumas pictures of `size` times `size` pixels
 * @returns each picture as if the head stood as in the middle one
 */
export function steadyLumas(lumas: readonly Uint8Array[], size: number): readonly Uint8Array[] {
  const reference = lumas[lumas.length >> 1];
  if (reference === undefined) {
    return lumas;
  }
  const gradients = gradientsOf(reference, size);
  // The last frame's motion is a good guess for the next.
  const motion = { x: 0, y: 0, turn: 0 };
  return lumas.map((luma) => {
    follow(luma, reference, gradients, size, motion);
    return moved(luma, size, motion);
  });
}

interface Motion {
  x: number;
  y: number;
  turn: number;
}

/** A pixel of the head: its place in the picture and from the head's middle, and its gradient. */
interface Gradient {
  readonly index: number;
  readonly u: number;
  readonly v: number;
  /** Change of its value by a step to the right, a step down, and a turn by one radian. */
  readonly by: readonly [number, number, number];
}

function gradientsOf(luma: Uint8Array, size: number): readonly Gradient[] {
  const out: Gradient[] = [];
  const [middleX, middleY] = middle(size);
  for (let y = Math.round(HEAD.top * size); y < HEAD.bottom * size; y++) {
    for (let x = Math.round(HEAD.left * size); x < HEAD.right * size; x++) {
      const index = y * size + x;
      const gx = (luma[index + 1]! - luma[index - 1]!) / 2;
      const gy = (luma[index + size]! - luma[index - size]!) / 2;
      const [u, v] = [x - middleX, y - middleY];
      out.push({ index, u, v, by: [gx, gy, gy * u - gx * v] });
    }
  }
  return out;
}

const middle = (size: number): readonly [number, number] => [
  ((HEAD.left + HEAD.right) / 2) * size,
  ((HEAD.top + HEAD.bottom) / 2) * size,
];

/** Improves `motion` by Gauss-Newton steps. */
function follow(
  luma: Uint8Array,
  reference: Uint8Array,
  gradients: readonly Gradient[],
  size: number,
  motion: Motion,
): void {
  const [middleX, middleY] = middle(size);
  for (let round = 0; round < ROUNDS; round++) {
    const a = [0, 0, 0, 0, 0, 0, 0, 0, 0];
    const b = [0, 0, 0];
    for (const { index, u, v, by } of gradients) {
      const seen = sample(
        luma,
        size,
        middleX + u + motion.x - motion.turn * v,
        middleY + v + motion.y + motion.turn * u,
      );
      const error = seen - reference[index]!;
      // Blinks and glints are not motion.
      const weight = 1 / (1 + (error / 20) ** 2);
      for (let i = 0; i < 3; i++) {
        b[i]! -= weight * by[i]! * error;
        for (let k = 0; k < 3; k++) {
          a[3 * i + k]! += weight * by[i]! * by[k]!;
        }
      }
    }
    const step = solve(a, b);
    motion.x += step[0]!;
    motion.y += step[1]!;
    motion.turn += step[2]!;
  }
}

/** Solves three linear equations by Cramer's rule; no motion where they have no solution. */
function solve(a: readonly number[], b: readonly number[]): readonly number[] {
  const det = (m: readonly number[]): number =>
    m[0]! * (m[4]! * m[8]! - m[5]! * m[7]!) -
    m[1]! * (m[3]! * m[8]! - m[5]! * m[6]!) +
    m[2]! * (m[3]! * m[7]! - m[4]! * m[6]!);
  const whole = det(a);
  return [0, 1, 2].map((column) =>
    Math.abs(whole) < 1e-6
      ? 0
      : det(a.map((value, i) => (i % 3 === column ? b[Math.floor(i / 3)]! : value))) / whole,
  );
}

function sample(luma: Uint8Array, size: number, x: number, y: number): number {
  const [cx, cy] = [Math.min(size - 1.001, Math.max(0, x)), Math.min(size - 1.001, Math.max(0, y))];
  const [ix, iy] = [Math.floor(cx), Math.floor(cy)];
  const [fx, fy] = [cx - ix, cy - iy];
  const at = iy * size + ix;
  return (
    (luma[at]! * (1 - fx) + luma[at + 1]! * fx) * (1 - fy) +
    (luma[at + size]! * (1 - fx) + luma[at + size + 1]! * fx) * fy
  );
}

function moved(luma: Uint8Array, size: number, { x, y, turn }: Motion): Uint8Array {
  const [middleX, middleY] = middle(size);
  return Uint8Array.from({ length: size * size }, (_, index) => {
    const [u, v] = [(index % size) - middleX, Math.floor(index / size) - middleY];
    return Math.round(sample(luma, size, middleX + u + x - turn * v, middleY + v + y + turn * u));
  });
}

// What a fuzz target is, and what it must hold besides not throwing: time that grows no faster than the
// input.
import { performance } from 'node:perf_hooks';

export interface FuzzTarget {
  /**
   * Runs one input. Throws, or rejects, only for a defect: errors that the parser declares are caught
   * inside.
   * The same input does the same each time.
   */
  readonly run: (data: Buffer) => void | Promise<void>;
  /** Longest input, 64 KiB unless told. */
  readonly maxBytes?: number;
  /** Milliseconds that any input may take, and that 64 KiB of input may take. Unless told: 2, and 5. */
  readonly budget?: { readonly leastMs: number; readonly per64KiBMs: number };
  /** Words that inputs may have to contain, besides those in the sources. */
  readonly words?: readonly string[];
}

export const DEFAULT_MAX_BYTES = 64 * 1024;
const DEFAULT_BUDGET = { leastMs: 2, per64KiBMs: 5 };
/**
 * A machine that does other things as well makes one run slow, and hardly ever three in a row at two
 * times.
 */
const REPEATS = 3;

export class TooSlow extends Error {}

export function budgetMs(target: FuzzTarget, bytes: number): number {
  const { leastMs, per64KiBMs } = target.budget ?? DEFAULT_BUDGET;
  return Math.max(leastMs, (per64KiBMs * bytes) / 65_536);
}

/** @returns milliseconds; of an asynchronous target too: it has the event loop for itself */
async function timed(target: FuzzTarget, data: Buffer): Promise<number> {
  const startedMs = performance.now();
  await target.run(Buffer.from(data));
  return performance.now() - startedMs;
}

function timedNow(target: FuzzTarget, data: Buffer): number {
  const copy = Buffer.from(data);
  const startedMs = performance.now();
  void target.run(copy);
  return performance.now() - startedMs;
}

const tooSlow = (target: FuzzTarget, data: Buffer, leastMs: number): TooSlow =>
  new TooSlow(
    `${data.length} bytes took ${leastMs.toFixed(2)} ms, and may take ${budgetMs(target, data.length).toFixed(2)} ms`,
  );

/** Runs one input of a synchronous target and checks the time it takes. @throws whatever is wrong */
export function checkNow(target: FuzzTarget, data: Buffer): void {
  const limitMs = budgetMs(target, data.length);
  let leastMs = timedNow(target, data);
  for (let repeat = 0; leastMs > limitMs && repeat < 2 * REPEATS; repeat += 1)
    leastMs = Math.min(leastMs, timedNow(target, data));
  if (leastMs > limitMs) throw tooSlow(target, data, leastMs);
}

/** The same for any target. */
export async function check(target: FuzzTarget, data: Buffer): Promise<void> {
  const limitMs = budgetMs(target, data.length);
  let leastMs = await timed(target, data);
  for (let repeat = 0; leastMs > limitMs && repeat < 2 * REPEATS; repeat += 1)
    leastMs = Math.min(leastMs, await timed(target, data));
  if (leastMs > limitMs) throw tooSlow(target, data, leastMs);
}

// What a fuzz target is, and what it must hold besides not throwing: time that grows no faster than
// the input.
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { native } from '../../../src/native/addon.ts';

/** A parser under test. */
export interface FuzzTarget {
  /**
   * Runs one input. Throws, or rejects, only for a defect: errors that the parser declares are
   * caught inside. The same input does the same each time.
   */
  readonly run: (data: Buffer) => void | Promise<void>;
  /** Longest input, 64 KiB unless told. */
  readonly maxBytes?: number;
  /**
   * Milliseconds of computing that any input may take, and 64 KiB of input. Unless told: 2, and 5.
   */
  readonly budget?: { readonly leastMs: number; readonly per64KiBMs: number };
  /** Words that inputs may have to contain, besides those in the sources. */
  readonly words?: readonly string[];
}

export const DEFAULT_MAX_BYTES = 64 * 1024;
const DEFAULT_BUDGET = { leastMs: 2, per64KiBMs: 5 };
/**
 * Runs of an input that seems slow, at most: the first ones may be before it is compiled, or while
 * garbage is collected or other programs fill the caches.
 */
const REPEATS = 30;

/** An input took longer than the target's budget allows. */
export class TooSlow extends Error {}

/** How long an input of `bytes` may take. */
export function budgetMs(target: FuzzTarget, bytes: number): number {
  const { leastMs, per64KiBMs } = target.budget ?? DEFAULT_BUDGET;
  return Math.max(leastMs, (per64KiBMs * bytes) / 65_536);
}

/**
 * CPU time of the process with all its threads, milliseconds. Wall-clock time would include what
 * other programs do.
 */
function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function demandBudget(target: FuzzTarget, data: Buffer, leastMs: number): void {
  const limitMs = budgetMs(target, data.length);
  if (leastMs <= limitMs) {
    return;
  }
  throw new TooSlow(
    `${data.length} bytes took ${leastMs.toFixed(2)} ms, and may take ${limitMs.toFixed(2)} ms`,
  );
}

/**
 * Runs one input of a synchronous target and checks the time it takes.
 * @throws whatever is wrong
 */
export function checkNow(target: FuzzTarget, data: Buffer): void {
  const limitMs = budgetMs(target, data.length);
  const startedMs = performance.now();
  void target.run(Buffer.from(data));
  let leastMs = performance.now() - startedMs;
  for (let repeat = 0; leastMs > limitMs && repeat < REPEATS; repeat++) {
    const copy = Buffer.from(data);
    const cpuMs = native.threadCpuMs();
    void target.run(copy);
    leastMs = Math.min(leastMs, native.threadCpuMs() - cpuMs);
  }
  demandBudget(target, data, leastMs);
}

/** The same for any target. */
export async function check(target: FuzzTarget, data: Buffer): Promise<void> {
  const limitMs = budgetMs(target, data.length);
  const startedMs = performance.now();
  await target.run(Buffer.from(data));
  let leastMs = performance.now() - startedMs;
  for (let repeat = 0; leastMs > limitMs && repeat < REPEATS; repeat++) {
    // Other threads of the process may have been busy, such as the compiler's.
    await new Promise((resolve) => {
      setTimeout(resolve, 5 * repeat);
    });
    const cpuMs = processCpuMs();
    await target.run(Buffer.from(data));
    leastMs = Math.min(leastMs, processCpuMs() - cpuMs);
  }
  demandBudget(target, data, leastMs);
}

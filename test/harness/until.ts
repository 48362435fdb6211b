// Waiting in tests.
import { monotonicMs } from '../../src/base/time.ts';

/** Resolves once `condition` holds; fails after `limitMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  limitMs = 5_000,
  what = 'condition',
): Promise<void> {
  const deadline = monotonicMs() + limitMs;
  while (!(await condition())) {
    if (monotonicMs() > deadline) {
      throw new Error(`${what} not met within ${limitMs} ms`);
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}

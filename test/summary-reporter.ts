// A vitest reporter that names every retried test in a warning and ends with the counts in one
// plain line.
import type { Reporter, TestCase } from 'vitest/node';

export default class SummaryReporter implements Reporter {
  readonly #counts = { passed: 0, failed: 0, skipped: 0 };
  readonly #retried: string[] = [];

  onTestCaseResult(test: TestCase): void {
    const { state } = test.result();
    if (state !== 'pending') {
      this.#counts[state]++;
    }
    const retries = test.diagnostic()?.retryCount ?? 0;
    if (retries > 0) {
      this.#retried.push(
        `${test.module.relativeModuleId} > ${test.fullName} (${state} after ${retries} retry)`,
      );
    }
  }

  onTestRunEnd(): void {
    for (const test of this.#retried) {
      console.warn(`WARNING: retried: ${test}`);
    }
    const { passed, failed, skipped } = this.#counts;
    console.log(`\n${passed} passed, ${failed} failed, ${skipped} skipped`);
  }
}

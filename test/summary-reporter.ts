// A vitest reporter that names every retried test in a warning, with what failed at first, and ends
// with the failed tests, each with its message, and the counts in one plain line.
import { stripVTControlCharacters } from 'node:util';
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node';

/** The message, and where it came from, in few lines. */
const oneError = ({ message, stack }: { message: string; stack?: string }): string => {
  const text = stripVTControlCharacters(message).split('\n').slice(0, 6).join('\n    ');
  const place = stack?.split('\n').find((line) => /\.test\.ts:\d/.test(line));
  return place === undefined ? text : `${text}\n    ${place.trim()}`;
};

export default class SummaryReporter implements Reporter {
  readonly #counts = { passed: 0, failed: 0, skipped: 0 };
  readonly #retried: string[] = [];
  readonly #failed: string[] = [];

  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result();
    if (state === 'failed') {
      this.#failed.push(
        `${test.module.relativeModuleId} > ${test.fullName}: ${errors.map(oneError).join('; ')}`,
      );
    }
    if (state !== 'pending') {
      this.#counts[state]++;
    }
    const retries = test.diagnostic()?.retryCount ?? 0;
    if (retries > 0) {
      const name = `${test.module.relativeModuleId} > ${test.fullName}`;
      const why = (errors ?? []).map(oneError).join('; ');
      this.#retried.push(`${name} (${state} after ${retries} retry): ${why}`);
    }
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    for (const test of this.#retried) {
      console.warn(`WARNING: retried: ${test}`);
    }
    for (const module of modules) {
      for (const error of module.errors()) {
        this.#failed.push(`${module.relativeModuleId}: ${oneError(error)}`);
      }
    }
    this.#failed.push(...errors.map((error) => `outside of a test: ${oneError(error)}`));
    for (const test of this.#failed) {
      console.error(`FAILED: ${test}`);
    }
    const { passed, failed, skipped } = this.#counts;
    console.log(`\n${passed} passed, ${failed} failed, ${skipped} skipped`);
  }
}

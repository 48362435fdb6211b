// Test projects. `unit`: several files at a time. `functional`: servers and browsers, but hardly a
// measured time, two files at a time. `scenarios` and `bench`: these measure time, so their files
// run one by one, after the others.
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Worker threads that tests start get these options too. */
const NODE_OPTIONS = ['--disable-warning=ExperimentalWarning'];

const shared = {
  environment: 'node',
  pool: 'forks',
  execArgv: NODE_OPTIONS,
  // Node imports the files itself, as it does in production: Vite's module runner makes every
  // imported binding a property access, which slows hot loops several times.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  setupFiles:
    process.env['NODE_V8_COVERAGE'] === undefined ? [] : ['test/harness/take-coverage.ts'],
  testTimeout: 240_000,
  hookTimeout: 240_000,
} as const;

/** Scenarios whose figures do not depend on what else the machine does. */
const FUNCTIONAL = [
  'chromium',
  'docs-page',
  'failures',
  'firefox',
  'opus-input',
  'page',
  'refused-peer',
  'static-video',
  'wav2lip',
].map((name) => `test/scenarios/${name}.test.ts`);
/** Scenarios of the bench that leave most of a core free, and the tests of its instruments. */
const LIGHT_BENCH = ['hostile', 'parts', 'scenarios', 'speech-metrics'].map(
  (name) => `test/bench/${name}.test.ts`,
);

export default defineConfig({
  test: {
    reporters: ['default', './test/summary-reporter.ts'],
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/scenarios/**', 'test/bench/**'],
          retry: 0,
          // Three files on two cores: many tests wait for a process or a timer.
          maxWorkers: Math.min(3, availableParallelism() + 1),
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: 'functional',
          include: [...FUNCTIONAL, ...LIGHT_BENCH],
          globalSetup: './test/harness/shared-browser.ts',
          // A shared machine stalls for a second now and then. The reporter names what was retried.
          retry: 1,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...shared,
          name: 'scenarios',
          include: ['test/scenarios/**/*.test.ts'],
          exclude: FUNCTIONAL,
          globalSetup: './test/harness/shared-browser.ts',
          retry: 1,
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...shared,
          name: 'bench',
          include: ['test/bench/**/*.test.ts'],
          exclude: LIGHT_BENCH,
          retry: 1,
          maxWorkers: 1,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});

// Test projects, in the order in which they run. `unit` and `functional` (servers and browsers, but
// hardly a measured time) run together, three files at a time, two on a slow machine. `scenarios`
// and `bench` measure time, but leave half of the machine idle. The files of `alone` run one by one
// at the end, and so do those of `deep`, which `npm run test:deep` runs. `npm test` runs two
// projects beside these, one file at a time: `waiting` hardly computes, and `jobs` only computes, at
// the lowest priority.
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { slowness } from './test/harness/machine.ts';
import { LongestFirst } from './test/longest-first.ts';

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
/** A shared machine stalls for a second now and then. The reporter names what was retried. */
const withBrowser = {
  ...shared,
  globalSetup: './test/harness/shared-browser.ts',
  retry: 2,
} as const;

/**
 * More files than cores run: tests wait for processes and timers, those that are timed most. On a
 * machine that computes two thirds as fast they hardly wait, and would take the time of each other.
 */
const cores = Math.min(2, availableParallelism());
const extra = slowness() < 1.5 ? 1 : 0;
const ONE_BY_ONE = { maxWorkers: 1, fileParallelism: false } as const;
const FIRST = { ...ONE_BY_ONE, sequence: { groupOrder: 0 } } as const;
const TOGETHER = { maxWorkers: cores + extra, sequence: { groupOrder: 1 } } as const;
const TIMED = { maxWorkers: cores + 2 * extra, sequence: { groupOrder: 2 } } as const;
const ALONE = { ...ONE_BY_ONE, sequence: { groupOrder: 3 } } as const;
const DEEP_ALONE = { ...ONE_BY_ONE, sequence: { groupOrder: 4 } } as const;

/**
 * Unit tests that take up to a minute and a half each, but hardly compute, or whose threads of the
 * lowest priority wait for a core.
 */
const WAITING = [
  'front/cluster/cluster',
  'front/history/session-recorder',
  'front/placement/watchdog',
  'front/signalling',
  'front/store/storage-hangs',
  'front/videos/static-video-service',
  'talk/provider-sockets',
].map((name) => `test/${name}.test.ts`);
/** Face creation and video: they compute, whatever the time. */
const JOBS = 'test/jobs/**/*.test.ts';
/** They measure time, although without a server. */
const TIMED_THREADS = ['pipeline/wav2lip/neighbours', 'talk/conversation'].map(
  (name) => `test/${name}.test.ts`,
);

const scenario = (name: string): string => `test/scenarios/${name}.test.ts`;
/** Scenarios whose figures do not depend on what else the machine does. */
const FUNCTIONAL = [
  'chromium',
  'client',
  'docs-page',
  'examples',
  'failures',
  'firefox',
  'opus-input',
  'page',
  'refused-peer',
  'room-page',
  'split-session',
].map(scenario);
/** Scenarios with the strictest times: of single frames, and of lips against sound. */
const STRICT = ['bad-network', 'browser-media', 'frame-loop', 'pixels-against-phonemes'].map(
  scenario,
);

/**
 * What takes long beside a change that it hardly ever concerns: builds of the C++ core with
 * sanitizers, benches that need the machine or wait long, tools for those who judge faces, a real
 * livekit-server and agents in its rooms.
 */
const DEEP = [
  'bench/front',
  'bench/load',
  'bench/long',
  'bench/network',
  'native/races',
  'native/sanitizers',
  'pipeline/render/faces-judge',
  'pipeline/render/faces-sheet',
  'scenarios/foreign-peers',
  'scenarios/livekit-agent',
  'scenarios/livekit-agent-strain',
  'scenarios/livekit-outages',
  'scenarios/livekit-server',
].map((name) => `test/${name}.test.ts`);

export default defineConfig({
  test: {
    reporters: ['default', './test/summary-reporter.ts'],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...shared,
          ...TOGETHER,
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [
            ...WAITING,
            ...TIMED_THREADS,
            ...DEEP,
            JOBS,
            'test/scenarios/**',
            'test/bench/**',
          ],
          // A file takes the process of the one before it, with all that is imported and compiled
          // there: a fifth less of the processor.
          isolate: false,
          retry: 0,
        },
      },
      {
        test: {
          ...shared,
          ...FIRST,
          name: 'jobs',
          include: [JOBS],
          isolate: false,
          retry: 0,
          testTimeout: 600_000, // they may wait long for a core
        },
      },
      // What waits measures time, or waits for what is due by the clock: as in withBrowser.
      { test: { ...shared, ...FIRST, name: 'waiting', include: WAITING, retry: 1 } },
      {
        test: {
          ...shared,
          ...TIMED,
          name: 'bench',
          include: ['test/bench/**/*.test.ts'],
          exclude: DEEP,
          retry: 1, // as in withBrowser; the bounds of its figures are wide
        },
      },
      {
        test: {
          ...withBrowser,
          ...TOGETHER,
          name: 'functional',
          include: FUNCTIONAL,
        },
      },
      {
        test: {
          ...withBrowser,
          ...TIMED,
          name: 'scenarios',
          // And those whose threads of low priority get all of a core where others leave it idle:
          // static-video, cluster, page-inputs and wav2lip.
          include: ['test/scenarios/**/*.test.ts', ...TIMED_THREADS],
          exclude: [...FUNCTIONAL, ...STRICT, ...DEEP],
        },
      },
      { test: { ...withBrowser, ...ALONE, name: 'alone', include: STRICT } },
      { test: { ...withBrowser, ...DEEP_ALONE, name: 'deep', include: DEEP } },
    ],
  },
});

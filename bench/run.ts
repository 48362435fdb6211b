// Runs one scenario: gives it a server and a place to clean up, and keeps what it found.
import path from 'node:path';
import { startServer } from '../test/harness/server.ts';
import { type Machine, commit, machine } from './report/stats.ts';
import { Course, type Series } from './course.ts';
import type { Context, Options, Outcome, Scenario, Server, Target } from './scenario.ts';

export interface Run {
  readonly scenario: string;
  readonly about: string;
  readonly startedAt: string;
  readonly durationSeconds: number;
  readonly commit: string;
  readonly target: string;
  readonly machine: Machine;
  readonly options: Options;
  readonly outcome: Outcome;
  /** Each figure that was measured over time, and what the servers of the run showed. */
  readonly course: readonly Series[];
}

export const ROOT = path.resolve(import.meta.dirname, '..');

/**
 * Settings under which the bench measures: no limit but the hardware's, so that it is the hardware
 * that is found.
 */
const BENCH_SETTINGS = {
  LOG_LEVEL: 'warn',
  RATE_LIMIT_RPS: '100000',
  MAX_SESSIONS_PER_KEY: '100000',
  DRAIN_SECONDS: '0',
};

export interface RunOptions {
  readonly options?: Options;
  readonly target?: Target | undefined;
  readonly progress?: (line: string) => void;
  /** Source tree whose server is measured; this one by default. */
  readonly tree?: string;
}

export async function runScenario(
  scenario: Scenario,
  { options = {}, target, progress = () => {}, tree = ROOT }: RunOptions = {},
): Promise<Run> {
  const cleanUps: (() => Promise<unknown> | void)[] = [];
  const merged = { ...scenario.options, ...options };
  const course = new Course();
  cleanUps.push(() => {
    course.end();
  });
  const context: Context = {
    options: merged,
    target,
    progress,
    record: (name, value, unit, atMs) => {
      course.add(name, value, unit, atMs);
    },
    defer: (cleanUp) => {
      cleanUps.push(cleanUp);
    },
    async server(settings = {}, { inspect = false, tree: root = tree } = {}) {
      const server: Server =
        target === undefined
          ? await ownServer(settings, root, inspect)
          : { ...target, pid: undefined, inspectorUrl: undefined, stop: () => Promise.resolve() };
      cleanUps.push(server.stop);
      void course.watch(server);
      return server;
    },
  };
  const started = new Date();
  // As the tree is when the server starts: in an hour it may be another.
  const measuredCommit = commit(ROOT);
  try {
    const measured = await scenario.run(context);
    const unknown = Object.entries(measured.figures)
      .filter(([, value]) => Number.isNaN(value))
      .map(([name]) => name);
    const outcome =
      target === undefined || unknown.length === 0
        ? measured
        : {
            ...measured,
            notes: [...measured.notes, `Not to be known from outside: ${unknown.join(', ')}.`],
          };
    return {
      scenario: scenario.name,
      about: scenario.about,
      startedAt: started.toISOString(),
      durationSeconds: (Date.now() - started.getTime()) / 1000,
      commit: measuredCommit,
      target: nameOf(target, merged),
      machine: machine(),
      options: merged,
      outcome,
      course: course.end(),
    };
  } finally {
    for (const cleanUp of cleanUps.toReversed()) {
      await cleanUp();
    }
  }
}

function nameOf(target: Target | undefined, { targets }: Options): string {
  if (target !== undefined) {
    return `server at ${target.url}`;
  }
  return targets === undefined || targets === '' ? 'own server' : `servers of ${targets}`;
}

async function ownServer(
  settings: Readonly<Record<string, string>>,
  root: string,
  inspect: boolean,
): Promise<Server> {
  const server = await startServer({ env: { ...BENCH_SETTINGS, ...settings }, root, inspect });
  return {
    url: server.url,
    apiKey: server.apiKey,
    pid: server.process.pid ?? undefined,
    inspectorUrl: server.inspectorUrl,
    stop: () => server.stop(),
  };
}

// An open-loop load on one server or several: sessions arrive, speak and leave as they would if
// nobody waited for the server. Its report can be merged with those of other machines.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ProgramProcess } from '../child-process.ts';
import { spareCpus } from '../cpus.ts';
import { type Arrival, arrivalsOf, parseRange } from '../load/arrivals.ts';
import { mergeLoads } from '../load/load-data.ts';
import type { LoadAnswers, LoadCommand, LoadSetUp } from '../load/load-process.ts';
import { loadOutcome } from '../load/load-report.ts';
import {
  type Context,
  type Options,
  type Outcome,
  type Scenario,
  type Target,
  number,
  text,
} from '../scenario.ts';
import { benchSpeech, codecOf, firstFace, kindOf } from './setup.ts';

const PROGRAM = path.join(import.meta.dirname, '../load/load-process.ts');
/** Processes are told so long before the first arrival. */
const HEAD_START_MS = 1000;
const PROGRESS_MS = 5000;
/** How long a time to begin at may lie ahead. */
const MAX_WAIT_MS = 3_600_000;

interface WeightedTarget extends Target {
  readonly weight: number;
}

class LoadProcess extends ProgramProcess<LoadCommand> {
  constructor(prefix: readonly string[]) {
    super('a load process', PROGRAM, prefix);
  }

  override async ask<O extends LoadCommand['op']>(
    command: Extract<LoadCommand, { op: O }>,
  ): Promise<LoadAnswers[O]> {
    return (await super.ask(command)) as LoadAnswers[O];
  }
}

/** @throws Error that says what the file must be */
export function readTargets(file: string): WeightedTarget[] {
  const shape = '[{"url": "https://a.example", "apiKey": "…", "weight": 3}, …]';
  let found: unknown;
  try {
    found = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`--targets ${file} cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const isTarget = (one: Partial<WeightedTarget> | null): boolean =>
    typeof one?.url === 'string' &&
    /^https?:$/.test(URL.parse(one.url)?.protocol ?? '') &&
    typeof one.apiKey === 'string' &&
    (one.weight === undefined || one.weight > 0);
  if (!Array.isArray(found) || found.length === 0 || !found.every(isTarget)) {
    throw new Error(`--targets ${file} must hold ${shape}`);
  }
  return (found as (Target & { weight?: number })[]).map(({ url, apiKey, weight = 1 }) => ({
    url: url.replace(/\/$/, ''),
    apiKey,
    weight,
  }));
}

/** Another series of arrivals on each generator, and the same one again for a name and a seed. */
const seedOf = (name: string, seed: number): number =>
  Buffer.from(name).reduce((sum, byte) => Math.imul(sum, 31) + byte, seed);

/** When to begin, Unix ms. @throws Error when it is no time, or none that is near */
function beginOf(options: Options): number {
  const at = text(options, 'at');
  if (at === '') {
    return Date.now() + HEAD_START_MS;
  }
  const begin = Date.parse(at);
  if (!(begin - Date.now() > 0 && begin - Date.now() < MAX_WAIT_MS)) {
    throw new Error(
      `--at must be a time within the next hour, such as ${new Date().toISOString()}`,
    );
  }
  return begin;
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const arrival = text(options, 'arrival');
  const pace = text(options, 'pace');
  if (arrival !== 'poisson' && arrival !== 'fixed') {
    throw new Error(`--arrival must be poisson or fixed, not ${arrival}`);
  }
  if (pace !== 'burst' && pace !== 'realtime') {
    throw new Error(`--pace must be burst or realtime, not ${pace}`);
  }
  if (!(number(options, 'rate') > 0)) {
    throw new Error('--rate must be more than 0 sessions a second');
  }
  const [utterance, pause, stay] = (['utterance', 'pause', 'stay'] as const).map((name) =>
    parseRange(name, text(options, name)),
  ) as [
    LoadSetUp['pattern']['utterance'],
    LoadSetUp['pattern']['pause'],
    readonly [number, number],
  ];
  const name = text(options, 'name') || os.hostname();
  const file = text(options, 'targets');
  let pid: number | undefined;
  let targets: readonly WeightedTarget[];
  if (file === '') {
    const server = await context.server();
    pid = server.pid;
    targets = [{ url: server.url, apiKey: server.apiKey, weight: 1 }];
  } else {
    targets = readTargets(file);
  }
  const arrivals = arrivalsOf({
    rate: number(options, 'rate'),
    arrival,
    seconds: number(options, 'seconds'),
    stay,
    talkers: number(options, 'talkers'),
    weights: targets.map(({ weight }) => weight),
    seed: seedOf(name, number(options, 'seed')),
  });
  const setUp: LoadSetUp = {
    targets: await Promise.all(
      targets.map(async (target) => ({ ...target, faceId: await firstFace(target) })),
    ),
    kind: kindOf(options),
    codec: codecOf(options),
    speechFile: (await benchSpeech()).file,
    spanSeconds: number(options, 'span'),
    pattern: { utterance, pause, pace },
  };
  const begin = beginOf(options);
  const processes = startProcesses(context, pid);
  await Promise.all(processes.map((one) => one.ask<'setUp'>({ op: 'setUp', setUp })));
  const tell = setInterval(() => {
    progress(context, processes, begin).catch(() => {});
  }, PROGRESS_MS);
  context.defer(() => clearInterval(tell));
  context.progress(
    `${arrivals.length} sessions will arrive, from ${new Date(begin).toISOString()} on`,
  );
  // Long before: the processes wait themselves.
  await delay(Math.max(0, begin - Date.now() - HEAD_START_MS));
  const seen = await Promise.all(
    processes.map((one, index) =>
      one.ask<'run'>({
        op: 'run',
        beginUnixMs: begin,
        arrivals: arrivals.filter((_: Arrival, at) => at % processes.length === index),
      }),
    ),
  );
  const generator = { id: randomUUID(), name, from: begin / 1000, to: Date.now() / 1000 };
  return loadOutcome({ ...mergeLoads(seen), generators: [generator] }, options);
}

function startProcesses(context: Context, pid: number | undefined): LoadProcess[] {
  const cpus = spareCpus(pid);
  const prefix = cpus === undefined ? [] : ['taskset', '-c', cpus];
  return Array.from({ length: number(context.options, 'processes') }, () => {
    const one = new LoadProcess(prefix);
    context.defer(() => one.end());
    return one;
  });
}

async function progress(
  context: Context,
  processes: readonly LoadProcess[],
  begin: number,
): Promise<void> {
  const all = await Promise.all(processes.map((one) => one.ask<'progress'>({ op: 'progress' })));
  const sum = (value: (one: LoadAnswers['progress']) => number): number =>
    all.reduce((so, one) => so + value(one), 0);
  context.progress(
    `${((Date.now() - begin) / 1000).toFixed(0)} s of load: ${sum(({ live }) => live)} live, ` +
      `${sum(({ started }) => started)} started, ${sum(({ failed }) => failed)} failed`,
  );
}

export const load: Scenario = {
  name: 'load',
  about:
    'Sessions that arrive, speak and leave whatever the server answers (open loop), on one target ' +
    'or several; docs/load.md.',
  options: {
    rate: 0.5,
    arrival: 'poisson',
    seconds: 60,
    stay: '10-30',
    talkers: 100,
    utterance: '1-4',
    pause: '2-5',
    pace: 'burst',
    processes: 1,
    targets: '',
    at: '',
    name: '',
    seed: 1,
    span: 1,
    maxFailed: 1,
    maxSetUp: 1000,
    maxResponse: 250,
    kind: 'p2p',
    codec: 'vp8',
  },
  small: { rate: 1, seconds: 4, stay: '3-4', utterance: '0.5', pause: '0.8-1' },
  run,
};

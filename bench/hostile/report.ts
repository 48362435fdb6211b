// What a hostile run found: the line of each phase, the bounds, and the tables.
import { CATALOGUE } from '../../src/metrics/catalogue.ts';
import type { LiveMemory } from '../live-memory.ts';
import {
  type Bound,
  type Context,
  type Outcome,
  type Table,
  atLeast,
  atMost,
  number,
} from '../scenario.ts';
import type { Strike, Tallies } from './protocol.ts';
import type { Seen } from './watch.ts';

const MIB = 1024 * 1024;
/**
 * Objectives of the server (docs/operations.md): below them, twice as late is not seen by anybody.
 */
const OBJECTIVE_MS = { late: 15, speak: 120 };

export interface Phase {
  readonly name: string;
  readonly seen: Seen;
  readonly strikes: readonly Strike[];
  readonly tallies: Tallies;
  /** After the phase, all garbage collected. */
  readonly alive: LiveMemory;
}

/** A thread that is held up for tens of seconds answers nobody. */
export const UNKNOWN_MEMORY: LiveMemory = {
  heapBytes: Number.NaN,
  mallocBytes: Number.NaN,
  residentBytes: Number.NaN,
  threads: 0,
};

/** Milliseconds, or the text that stands for them. */
const short = (ms: number | string): string =>
  typeof ms === 'number' ? `${ms.toFixed(0)} ms` : ms;

/** One line for the live table. */
export function describe({ name, seen }: Phase): string {
  const parts = [
    name.padEnd(13),
    `${seen.leastFps.toFixed(1)} fps`,
    `late p99 ${seen.lateMs.toFixed(1)} ms`,
    `SPEAK p99 ${short(seen.speakMs)}`,
    `healthz p99 ${short(seen.healthMs)}`,
    `new session ${short(seen.newSession)}`,
    `body ${short(seen.body)}`,
    `skipped ${seen.skipped}`,
    `elsewhere ${(100 * seen.elsewhere).toFixed(0)} %`,
    `peak ${seen.peakResidentMb.toFixed(0)} MB`,
    ...(seen.lost.length === 0 ? [] : [`LOST ${[...new Set(seen.lost)].join(', ')}`]),
  ];
  return parts.join('  ');
}

const percent = (part: number, whole: number): string =>
  `${((100 * part) / whole).toFixed(part / whole < 0.1 ? 1 : 0)} %`;

/** The commonest answers first. */
function answersOf(answers: Readonly<Record<string, number>>): string {
  const total = Object.values(answers).reduce((sum, times) => sum + times, 0);
  return Object.entries(answers)
    .sort(([, a], [, b]) => b - a)
    .slice(0, 5)
    .map(([answer, times]) => `${answer} ${percent(times, total)}`)
    .join(', ');
}

const UDP_MEDIA = new Set(['junk', 'stun', 'media']);

/**
 * Attacked units that the server took up: datagrams that it read, else answers other than those of
 * its silence.
 */
function served(
  entryPoint: string,
  { seen, tallies }: Phase,
  calm: Phase,
  seconds: number,
): number {
  if (UDP_MEDIA.has(entryPoint)) {
    return (
      seen.interval.rate('mouthpiece_datagrams_received_total') -
      calm.seen.interval.rate('mouthpiece_datagrams_received_total')
    );
  }
  const unanswered = /^(no answer|nothing|withheld|held|not sent|E[A-Z]+$)/;
  return (
    Object.entries(tallies[entryPoint]?.answers ?? {})
      .filter(([answer]) => !unanswered.test(answer))
      .reduce((sum, [, times]) => sum + times, 0) / seconds
  );
}

function rejectedDatagrams({ seen: { interval } }: Phase): string {
  const reasons = CATALOGUE.mouthpiece_datagrams_rejected_total.labels.reason;
  const found = Object.fromEntries(
    reasons.map((reason) => [
      reason,
      interval.increase('mouthpiece_datagrams_rejected_total', { reason }),
    ]),
  );
  return answersOf(Object.fromEntries(Object.entries(found).filter(([, times]) => times > 0)));
}

function boundsOf(
  { options }: Context,
  phases: readonly Phase[],
  entryPoints: readonly Phase[],
  brokenBy: string | undefined,
): Bound[] {
  const calm = phases[0]!.seen;
  const limit = (name: 'late' | 'speak', calmMs: number): number =>
    Math.max(number(options, 'times') * calmMs, OBJECTIVE_MS[name] * number(options, 'slack'));
  const bounds = entryPoints.flatMap(({ name, seen }) => [
    atLeast(
      `${name}: frames a second of the honest session that got fewest`,
      seen.leastFps,
      number(options, 'fps'),
    ),
    atMost(`${name}: frame lateness, p99`, seen.lateMs, limit('late', calm.lateMs), 'ms'),
    // In a run of seconds it may be that nobody began to speak.
    ...(seen.utterances === 0
      ? []
      : [
          atMost(`${name}: speech to SPEAK, p99`, seen.speakMs, limit('speak', calm.speakMs), 'ms'),
        ]),
    ...(Number.isNaN(seen.lipsMs)
      ? []
      : [
          atMost(
            `${name}: speech to its first frame by the server's own statistics, p99`,
            seen.lipsMs,
            limit('speak', calm.lipsMs),
            'ms',
          ),
        ]),
    atMost(`${name}: /healthz, p99`, seen.healthMs, number(options, 'healthz'), 'ms'),
    atMost(
      `${name}: lost or unheard, new sessions or bodies refused, /healthz refused, ` +
        'workers replaced',
      harm(seen),
      0,
    ),
  ]);
  const [first, last] = [phases[0]!.alive, phases.at(-1)!.alive];
  return [
    ...bounds,
    atMost(
      'alive after collection, growth over all',
      (aliveBytes(last) - aliveBytes(first)) / MIB,
      number(options, 'alive'),
      'MB',
    ),
    atMost(
      'resident after collection, growth over all',
      (last.residentBytes - first.residentBytes) / MIB,
      number(options, 'resident'),
      'MB',
    ),
    atMost('entry points that ended the run', brokenBy === undefined ? 0 : 1, 0),
  ];
}

/** What must not happen to anybody who means no harm, however rarely. */
const harm = ({ lost, unheard, newSession, body, healthFailures, interval }: Seen): number =>
  lost.length +
  unheard +
  Number(typeof newSession === 'string') +
  Number(typeof body === 'string') +
  Object.values(healthFailures).reduce((sum, times) => sum + times, 0) +
  interval.increase('mouthpiece_worker_restarts_total');

const aliveBytes = ({ heapBytes, mallocBytes }: LiveMemory): number => heapBytes + mallocBytes;

const notesOf = (attackers: number, times: number, sessions: number): string[] => [
  `The attackers are ${attackers} processes on the same machine, at nice 10, on the cores that ` +
    'workers leave: they share them with the main thread of the server and the honest peers. ' +
    'What was attempted may therefore lie below what was asked.',
  'Where other work took much of the machine ("elsewhere"), a phase says little.',
  'They come from loopback addresses of their own and have a key of their own, ' +
    'under the limits that a key has by default. ' +
    `They have at most ${sessions} sessions at once: the worker has a place for a new one.`,
  `Lateness and time to SPEAK may be ${times} times those of the calm phase before. ` +
    `What stays within the objectives of the server (${OBJECTIVE_MS.late} ms late, ` +
    `${OBJECTIVE_MS.speak} ms to the lips) does no harm, whatever the ratio.`,
];

export function report(
  context: Context,
  phases: readonly Phase[],
  sessions: number,
  brokenBy: string | undefined,
): Outcome {
  const calm = phases[0]!;
  const seconds = number(context.options, 'seconds');
  const entryPoints = phases.filter(({ strikes }) => strikes.length > 0);
  const figures: Record<string, number> = {};
  for (const { name, seen, alive } of phases) {
    Object.assign(figures, {
      [`${name}: fps`]: seen.leastFps,
      [`${name}: late p99 ms`]: seen.lateMs,
      [`${name}: SPEAK p99 ms`]: seen.speakMs,
      [`${name}: healthz p99 ms`]: seen.healthMs,
      [`${name}: lost`]: seen.lost.length,
      [`${name}: alive MB`]: aliveBytes(alive) / MIB,
      [`${name}: resident MB`]: alive.residentBytes / MIB,
      [`${name}: peak MB`]: seen.peakResidentMb,
    });
  }
  const attackRows = entryPoints.flatMap((phase) =>
    phase.strikes.map(({ entryPoint, perSecond }): (string | number)[] => {
      const { attempted, answers } = phase.tallies[entryPoint]!;
      figures[
        `${phase.name}${phase.name === entryPoint ? '' : ` ${entryPoint}`}: attempted per second`
      ] = attempted / seconds;
      const saw = UDP_MEDIA.has(entryPoint)
        ? `rejected as ${rejectedDatagrams(phase)}`
        : answersOf(answers);
      return [
        phase.name === entryPoint ? entryPoint : `${phase.name}: ${entryPoint}`,
        perSecond,
        attempted / seconds,
        phase.name === entryPoint || !UDP_MEDIA.has(entryPoint)
          ? served(entryPoint, phase, calm, seconds)
          : Number.NaN,
        saw,
      ];
    }),
  );
  return {
    figures,
    bounds: boundsOf(context, phases, entryPoints, brokenBy),
    tables: [attackTable(attackRows), honestTable(context, phases), memoryTable(phases)],
    plots: [
      {
        kind: 'lines',
        title: 'Memory of the server, phase by phase',
        x: 'phase',
        y: 'MB',
        lines: [
          {
            name: 'resident, peak',
            points: phases.map(({ seen }, index) => [index, seen.peakResidentMb]),
          },
          {
            name: 'resident, collected',
            points: phases.map(({ alive }, index) => [index, alive.residentBytes / MIB]),
          },
          {
            name: 'alive',
            points: phases.map(({ alive }, index) => [index, aliveBytes(alive) / MIB]),
          },
        ],
      },
      {
        kind: 'lines',
        title: 'Frames a second of the honest session that got fewest, phase by phase',
        x: 'phase',
        y: 'fps',
        lines: [{ name: 'fps', points: phases.map(({ seen }, index) => [index, seen.leastFps]) }],
      },
    ],
    notes: [
      ...notesOf(number(context.options, 'attackers'), number(context.options, 'times'), sessions),
      `Phases in order: ${phases.map(({ name }) => name).join(', ')}.`,
      ...(brokenBy === undefined ? [] : [`The run was broken off. ${brokenBy}`]),
    ],
  };
}

const attackTable = (rows: Table['rows']): Table => ({
  title: 'what the attackers did and saw',
  columns: ['entry point', 'asked /s', 'attempted /s', 'served /s', 'what clients saw'],
  rows,
});

const HONEST_COLUMNS: Readonly<Record<string, (seen: Seen) => number | string>> = {
  'least fps': ({ leastFps }) => leastFps,
  'late p99 ms': ({ lateMs }) => lateMs,
  'outside p99 ms': ({ delayMs }) => delayMs,
  'SPEAK p99 ms': ({ speakMs }) => speakMs,
  'lips p99 ms': ({ lipsMs }) => lipsMs,
  utterances: ({ utterances }) => utterances,
  unheard: ({ unheard }) => unheard,
  lost: ({ lost }) => lost.length,
  'healthz p99 ms': ({ healthMs }) => healthMs,
  'new session ms': ({ newSession }) => newSession,
  'body of 300 kB ms': ({ body }) => body,
  skipped: ({ skipped }) => skipped,
  'elsewhere %': ({ elsewhere }) => 100 * elsewhere,
};

const honestTable = ({ options }: Context, phases: readonly Phase[]): Table => ({
  title: `what ${options['honest']} honest sessions saw, and others meanwhile`,
  columns: ['', ...Object.keys(HONEST_COLUMNS)],
  rows: phases.map(({ name, seen }) => [
    name,
    ...Object.values(HONEST_COLUMNS).map((cell) => cell(seen)),
  ]),
});

const memoryTable = (phases: readonly Phase[]): Table => ({
  title: 'memory of the server, MB',
  columns: ['', 'resident, peak', 'resident after', 'heaps after', 'malloc after'],
  rows: phases.map(({ name, seen, alive }) => [
    name,
    seen.peakResidentMb,
    alive.residentBytes / MIB,
    alive.heapBytes / MIB,
    alive.mallocBytes / MIB,
  ]),
});

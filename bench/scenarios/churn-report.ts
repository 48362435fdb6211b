// What the churn scenario tells of what it found.
import type { LiveMemory } from '../live-memory.ts';
import { quantile, slope, tailQuantile } from '../report/stats.ts';
import { type Bound, type Context, type Outcome, atMost, number } from '../scenario.ts';
import type { Scrape } from '../server-view.ts';
import { OUTSIDE_NOTE } from './setup.ts';

/** A peer that vanished must be noticed within ten seconds; a little is added for the scrape. */
export const FREED_WITHIN_MS = 12_000;
/** Below this many connects the slopes are noise. */
export const ENOUGH_FOR_SLOPES = 300;

/** What was seen of the server while clients came and went. */
export interface ChurnPoint {
  readonly connects: number;
  readonly rssMb: number;
  readonly descriptors: number;
}

/** What the scenario found. */
export interface ChurnFindings {
  readonly points: readonly ChurnPoint[];
  /** With nobody left, all garbage collected. */
  readonly settled: readonly ({ readonly connects: number } & LiveMemory)[];
  readonly pauses: number;
  /** Token to first frame, milliseconds. */
  readonly setUps: readonly number[];
  /** Why connects failed, and how often. */
  readonly errors: ReadonlyMap<string, number>;
  readonly opened: number;
  readonly turnedAway: number;
  readonly vanished: number;
  /** The longest wait for the last slot, milliseconds. */
  readonly freedMs: number;
  readonly before: Scrape | undefined;
  /** Undefined: a server elsewhere, whose figures are out of reach. */
  readonly after: Scrape | undefined;
  /** UDP sockets more than before; NaN: not known. */
  readonly socketsLeft: number;
}

type Figures = ReturnType<typeof figuresOf>;

export const sessionsIn = (one: Scrape | undefined): number =>
  one === undefined ? Number.NaN : one.sum('mouthpiece_worker_sessions');

export const failuresIn = (errors: ReadonlyMap<string, number>): number =>
  [...errors.values()].reduce((sum, count) => sum + count, 0);

function figuresOf(connects: number, found: ChurnFindings) {
  const { before, after, setUps, points, settled } = found;
  const later = settled.filter(({ connects: at }) => at >= connects / 2);
  const perConnect = (bytes: (memory: LiveMemory) => number): number =>
    slope(later.map((memory) => [memory.connects, bytes(memory) / 1024]));
  return {
    connects: found.opened,
    failures: failuresIn(found.errors),
    turnedAway: found.turnedAway,
    vanished: found.vanished,
    setUpP50Ms: quantile(setUps, 0.5),
    setUpP99Ms: tailQuantile(setUps, 0.99),
    freedMs: found.freedMs,
    heapKbPerConnect: perConnect(({ heapBytes }) => heapBytes),
    mallocKbPerConnect: perConnect(({ mallocBytes }) => mallocBytes),
    residentKbPerConnect: perConnect(({ residentBytes }) => residentBytes),
    descriptorsLeft:
      after === undefined || before === undefined
        ? Number.NaN
        : after.sum('process_open_fds') - before.sum('process_open_fds'),
    socketsLeft: found.socketsLeft,
    sessionsLeft: sessionsIn(after),
    rssMb: points.at(-1)?.rssMb ?? Number.NaN,
    startedNotEnded:
      after === undefined
        ? Number.NaN
        : after.sum('mouthpiece_sessions_started_total') -
          after.sum('mouthpiece_sessions_ended_total'),
  };
}

function boundsOf({ options }: Context, found: ChurnFindings, figures: Figures): Bound[] {
  const connects = number(options, 'connects');
  const bounds: Bound[] = [atMost('connects that failed', figures.failures, 0)];
  if (found.after !== undefined) {
    bounds.push(
      atMost('sessions left', figures.sessionsLeft, 0),
      atMost('sessions begun and never ended', figures.startedNotEnded, 0),
      atMost('time until the last slot is free', figures.freedMs, FREED_WITHIN_MS, 'ms'),
      atMost('descriptors left', figures.descriptorsLeft, 3),
    );
    if (!Number.isNaN(figures.socketsLeft)) {
      bounds.push(atMost('UDP sockets left', figures.socketsLeft, 0));
    }
    if (connects >= ENOUGH_FOR_SLOPES && found.settled.length > 0) {
      bounds.push(
        atMost(
          'heaps after collection, growth over the second half',
          (figures.heapKbPerConnect * connects) / 2,
          number(options, 'heap'),
          'kB',
        ),
        atMost(
          'malloc after collection, growth over the second half',
          (figures.mallocKbPerConnect * connects) / 2,
          number(options, 'malloc'),
          'kB',
        ),
        atMost(
          'resident after collection, slope over the second half',
          figures.residentKbPerConnect,
          number(options, 'slope'),
          'kB/connect',
        ),
      );
    }
  }
  return bounds;
}

const plotsOf = ({ points, settled, setUps }: ChurnFindings): Outcome['plots'] => [
  {
    kind: 'lines',
    title: 'Resident memory of the server',
    x: 'connects',
    y: 'MB',
    lines: [
      { name: 'resident', points: points.map((point) => [point.connects, point.rssMb]) },
      {
        name: 'resident, nobody left, collected',
        points: settled.map((memory) => [memory.connects, memory.residentBytes / 2 ** 20]),
      },
    ],
  },
  {
    kind: 'lines',
    title: 'Memory alive with nobody left, garbage collected',
    x: 'connects',
    y: 'MB',
    lines: [
      {
        name: 'heaps of all threads',
        points: settled.map((memory) => [memory.connects, memory.heapBytes / 2 ** 20]),
      },
      {
        name: 'malloc',
        points: settled.map((memory) => [memory.connects, memory.mallocBytes / 2 ** 20]),
      },
    ],
  },
  {
    kind: 'lines',
    title: 'File descriptors of the server',
    x: 'connects',
    y: '',
    lines: [{ name: 'open', points: points.map((point) => [point.connects, point.descriptors]) }],
  },
  {
    kind: 'distribution',
    title: 'Token to first frame (outside)',
    x: 'ms',
    samples: [{ name: 'set-up', values: setUps }],
  },
];

/** The figures, bounds and plots of what was found. */
export function churnReport(context: Context, found: ChurnFindings): Outcome {
  const { errors, settled, pauses } = found;
  const figures = figuresOf(number(context.options, 'connects'), found);
  return {
    figures,
    bounds: boundsOf(context, found, figures),
    tables: [
      { title: 'churn', columns: ['', ''], rows: Object.entries(figures) },
      ...(errors.size === 0
        ? []
        : [{ title: 'failures', columns: ['reason', 'times'], rows: [...errors] }]),
    ],
    plots: plotsOf(found),
    notes: [
      'Every tenth peer vanishes without a word; every third speaks half a second.',
      ...(settled.length === 0
        ? []
        : [
            `Memory: ${pauses} times in the run the churn waits until nobody is left, ` +
              `collects the garbage of all threads, and asks V8's heaps and malloc what is ` +
              'alive; slopes are least squares over the second half. The heaps grow by some ' +
              '250 kB more while V8 compiles what has become hot (two heap snapshots a ' +
              'thousand connects apart differ by code alone), however long the run; so it is ' +
              'the growth that is bounded, and what keeps one kilobyte a connect breaks that ' +
              'in any run of 1000.',
          ]),
      ...(found.after === undefined ? [OUTSIDE_NOTE] : []),
    ],
  };
}

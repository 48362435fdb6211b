// What the capacity scenario tells of what it found.
import type { BareEncode } from '../bare-encode.ts';
import { slope } from '../report/stats.ts';
import { type Bound, type Context, type Outcome, atLeast, atMost, number } from '../scenario.ts';
import type { RoomCost } from './room-cost.ts';
import { OUTSIDE_NOTE } from './setup.ts';

/** One level of load, held for a while. NaN: not to be known from outside. */
export interface Step {
  readonly sessions: number;
  readonly cores: number;
  readonly msPerFrame: number;
  readonly latenessP50Ms: number;
  readonly latenessP99Ms: number;
  readonly skippedShare: number;
  readonly lipsP99Ms: number;
  readonly framesPerSession: number;
  readonly delayP99Ms: number;
  readonly gapsOver300: number;
  readonly missedShare: number;
  readonly rssMb: number;
  readonly stages: Readonly<Record<string, number>>;
  readonly loadLoopP99Ms: number;
  readonly broken: string | undefined;
}

/** What the scenario found. */
export interface CapacityFound {
  readonly steps: readonly Step[];
  readonly best: Step | undefined;
  readonly bare: BareEncode | undefined;
  readonly refused: string | undefined;
  readonly emptyMb: number;
  /** Cost of sessions in rooms against p2p; undefined: not compared. */
  readonly roomCost: RoomCost | undefined;
}

/** The figures, bounds, tables and plots of what was found. */
export function capacityReport(
  { options }: Context,
  { steps, best, bare, refused, emptyMb, roomCost }: CapacityFound,
): Outcome {
  const workers = number(options, 'workers');
  const mbPerSession =
    steps.length >= 3
      ? slope(steps.map(({ sessions, rssMb }) => [sessions, rssMb]))
      : ((steps[0]?.rssMb ?? Number.NaN) - emptyMb) / (steps[0]?.sessions ?? 1);
  const ratio = (best ?? steps.at(-1))!.msPerFrame / (bare?.msPerFrame ?? Number.NaN);
  const isInside = Number.isFinite(steps[0]?.cores);
  const sessionsPerCore = (best?.sessions ?? 0) / workers;
  const figures = {
    sessionsPerCore,
    coresAtBest: best?.cores ?? Number.NaN,
    coresPerSession: (best ?? steps.at(-1))!.cores / (best ?? steps.at(-1))!.sessions,
    msPerFrame: (best ?? steps.at(-1))!.msPerFrame,
    bareEncodeMsPerFrame: bare?.msPerFrame ?? Number.NaN,
    ratioToBareEncode: ratio,
    mbPerSession,
    latenessP99Ms: best?.latenessP99Ms ?? Number.NaN,
    lipsP99Ms: best?.lipsP99Ms ?? Number.NaN,
    emptyMb,
    ...(roomCost === undefined ? {} : { roomAgainstP2p: roomCost.ratio }),
  };
  const bounds: Bound[] = [
    atLeast(
      `sessions on a core, ${options['speaking']} % speaking`,
      sessionsPerCore,
      number(options, 'expect'),
    ),
  ];
  if (bare !== undefined) {
    bounds.push(
      atMost(
        'whole session against the bare encode of its frames',
        ratio,
        number(options, 'ratio'),
        'x',
      ),
    );
  }
  if (isInside) {
    bounds.push(atMost('memory of a session', mbPerSession, 25, 'MB'));
  }
  if (roomCost !== undefined) {
    bounds.push(
      atMost(
        'CPU of a session in a room against p2p',
        roomCost.ratio,
        number(options, 'roomRatio'),
        'x',
      ),
    );
  }
  const line = (
    name: string,
    value: (step: Step) => number,
  ): { name: string; points: [number, number][] } => ({
    name,
    points: steps.map((step) => [step.sessions, value(step)]),
  });
  return {
    figures,
    bounds,
    tables: [
      {
        title:
          `${options['kind']}, ${options['codec']}, ${options['speaking']} % speaking, ` +
          `${workers} worker(s)`,
        columns: [
          'sessions',
          'cores',
          'ms/frame',
          'late p50 ms',
          'late p99 ms',
          'lips p99 ms',
          'fps',
          'delay p99 ms',
          'RSS MB',
          '',
        ],
        rows: steps.map((step) => [
          step.sessions,
          step.cores,
          step.msPerFrame,
          step.latenessP50Ms,
          step.latenessP99Ms,
          step.lipsP99Ms,
          step.framesPerSession,
          step.delayP99Ms,
          step.rssMb,
          step.broken ?? 'ok',
        ]),
      },
    ],
    plots: [
      {
        kind: 'lines',
        title: 'Frame lateness',
        x: 'sessions',
        y: 'ms',
        lines: [
          line('p50', (step) => step.latenessP50Ms),
          line('p99', (step) => step.latenessP99Ms),
          line('delay p99, outside', (step) => step.delayP99Ms),
        ],
        limits: [{ name: 'bound', y: number(options, 'lateness') }],
      },
      {
        kind: 'lines',
        title: 'CPU of the workers',
        x: 'sessions',
        y: 'cores',
        lines: [
          line('cores', (step) => step.cores),
          ...(bare === undefined
            ? []
            : [line('bare encode alone', (step) => (step.sessions * 30 * bare.msPerFrame) / 1000)]),
        ],
      },
      {
        kind: 'stack',
        title: 'CPU by stage',
        y: 'cores',
        bars: steps.map((step) => ({
          name: String(step.sessions),
          parts: {
            ...step.stages,
            other: Math.max(
              0,
              step.cores - Object.values(step.stages).reduce((sum, value) => sum + value, 0),
            ),
          },
        })),
      },
      {
        kind: 'lines',
        title: 'Memory of the server',
        x: 'sessions',
        y: 'MB',
        lines: [line('resident', (step) => step.rssMb)],
      },
    ],
    notes: [
      bare === undefined
        ? `The server is elsewhere: its sessions are counted for ${workers} core(s) as ` +
          '--workers says, it refuses by its own settings, and encoding is not compared, ' +
          'since the processor is another.'
        : 'Bare encode: the pictures one peer received, decoded and coded again ' +
          `by ${(best ?? steps[0]!).sessions} encoders in turn with the server's settings ` +
          `and mean bitrate, on the worker's core, after the load had gone; ${bare.frames} ` +
          'frames.',
      ...(refused === undefined ? [] : [`The ramp ended because the server refused: ${refused}`]),
      ...(Math.max(...steps.map(({ loadLoopP99Ms }) => loadLoopP99Ms)) > 20
        ? [
            'The load generator itself was late by over 20 ms at times: delays seen from ' +
              'outside are too large. Give it more cores.',
          ]
        : []),
      ...(isInside ? [] : [OUTSIDE_NOTE]),
      ...(roomCost === undefined ? [] : [noteOf(roomCost)]),
    ],
  };
}

const noteOf = ({ rounds, sessions }: RoomCost): string =>
  `CPU of the worker a session, ${sessions} sessions of each kind in turn on one server, in ` +
  `hundredths of a core, p2p and room: ` +
  `${rounds.map(({ p2p, room }) => `${(100 * p2p).toFixed(2)} ${(100 * room).toFixed(2)}`).join(', ')}.`;

// What a load has done to its targets: figures, bounds, and each figure over time.
import { type Plot, short } from '../report/plot.ts';
import {
  type Bound,
  type Options,
  type Outcome,
  type Table,
  atLeast,
  atMost,
  number,
} from '../scenario.ts';
import { type LoadData, type Span, type Time, course, total } from './load-data.ts';

/** A generator that is later than this measures itself. */
const MAX_LAG_MS = 100;
const MIN_FRAMES_PER_SECOND = 28;

const PERCENTILES = [
  ['p50', 0.5],
  ['p90', 0.9],
  ['p99', 0.99],
] as const;

const share = (part: number, whole: number): number => (whole === 0 ? Number.NaN : part / whole);

/** Milliseconds as text: an answer that never came is not a number. */
const ms = (value: number): string => (value === Number.POSITIVE_INFINITY ? 'never' : short(value));

const framesPerSecond = (span: Span): number => share(span.of('frames'), span.of('liveSeconds'));
const failedPercent = (span: Span): number =>
  100 * share(span.of('failed') + span.of('lost'), span.of('due'));

function figuresOf(span: Span): Record<string, number> {
  return {
    sessions: span.of('due'),
    failedPercent: failedPercent(span),
    utterances: span.of('utterances'),
    ...Object.fromEntries(
      (['setUp', 'response', 'lag'] as const).flatMap((name) =>
        PERCENTILES.map(([text, q]) => [`${name}${text.toUpperCase()}Ms`, span.quantile(name, q)]),
      ),
    ),
    framesPerSecond: framesPerSecond(span),
    gapsPerSessionMinute: 60 * share(span.of('gaps'), span.of('liveSeconds')),
    kbpsPerSession: share(span.of('kilobits'), span.of('liveSeconds')),
  };
}

function boundsOf(span: Span, options: Options): Bound[] {
  const bounds = [
    atMost('failed or lost sessions', failedPercent(span), number(options, 'maxFailed'), '%'),
    atMost(
      'arrival to first picture, p99',
      span.quantile('setUp', 0.99),
      number(options, 'maxSetUp'),
      'ms',
    ),
    atLeast('frames a second', framesPerSecond(span), MIN_FRAMES_PER_SECOND),
    atMost('lateness of the generator, p99', span.quantile('lag', 0.99), MAX_LAG_MS, 'ms'),
  ];
  return span.of('utterances') === 0
    ? bounds
    : [
        ...bounds,
        atMost(
          'speech due to SPEAK, p99',
          span.quantile('response', 0.99),
          number(options, 'maxResponse'),
          'ms',
        ),
      ];
}

function tablesOf(data: LoadData): Table[] {
  const names = Object.keys(data.targets);
  const row = (name: string, span: Span): (string | number)[] => [
    name,
    span.of('due'),
    span.of('failed'),
    span.of('lost'),
    ...PERCENTILES.map(([, q]) => ms(span.quantile('setUp', q))),
    ...PERCENTILES.map(([, q]) => ms(span.quantile('response', q))),
    framesPerSecond(span),
  ];
  const first = Math.min(...data.generators.map(({ from }) => from));
  return [
    {
      title: 'targets (times in ms)',
      columns: [
        '',
        'sessions',
        'failed',
        'lost',
        ...PERCENTILES.map(([text]) => `set-up ${text}`),
        ...PERCENTILES.map(([text]) => `answer ${text}`),
        'frames/s',
      ],
      rows: [
        ...names.map((name) => row(name, total(data, [name]))),
        ...(names.length > 1 ? [row('all', total(data))] : []),
      ],
    },
    {
      title: 'generators (seconds)',
      columns: ['', 'from', 'to'],
      rows: data.generators.map(({ name, from, to }) => [name, from - first, to - first]),
    },
    ...(Object.keys(data.reasons).length === 0
      ? []
      : [
          {
            title: 'sessions that failed or were lost',
            columns: ['', 'n'],
            rows: Object.entries(data.reasons),
          },
        ]),
  ];
}

function plotsOf(data: LoadData): Plot[] {
  const spans = course(data);
  const { spanSeconds } = data;
  const over = (value: (span: Span) => number): [number, number][] =>
    spans.map(({ seconds, span }) => [seconds, value(span)]);
  const lines = (
    title: string,
    y: string,
    values: Record<string, (span: Span) => number>,
  ): Plot => ({
    kind: 'lines',
    title,
    x: 's',
    y,
    lines: Object.entries(values).map(([name, value]) => ({ name, points: over(value) })),
  });
  const times = (title: string, name: Time): Plot =>
    lines(
      title,
      'ms',
      Object.fromEntries(
        PERCENTILES.map(([text, q]) => [text, (span: Span) => span.quantile(name, q)]),
      ),
    );
  const rate = (name: Parameters<Span['of']>[0]) => (span: Span) => span.of(name) / spanSeconds;
  return [
    lines('Sessions a second', '/s', {
      'were to arrive': rate('due'),
      'did not start': rate('failed'),
      'were lost': rate('lost'),
    }),
    lines('Live sessions', 'sessions', { '': rate('liveSeconds') }),
    times('From arrival to the first picture', 'setUp'),
    times('From speech due to SPEAK', 'response'),
    lines('Frames a second of a session', '/s', { '': framesPerSecond }),
    lines('Pauses of the picture over 300 ms', '/s', { '': rate('gaps') }),
    lines('Frames lost', '/s', { '': rate('framesLost') }),
    lines('Arrived for a session', 'kbit/s', {
      '': (span) => share(span.of('kilobits'), span.of('liveSeconds')),
    }),
    lines('Utterances', '/s', { '': rate('utterances') }),
    times('Lateness of the generator', 'lag'),
  ];
}

/** The report of one generator, or of many that were merged. */
export function loadOutcome(data: LoadData, options: Options): Outcome {
  const span = total(data);
  return {
    figures: figuresOf(span),
    bounds: boundsOf(span, options),
    tables: tablesOf(data),
    plots: plotsOf(data),
    notes: [
      'Arrivals and speech are drawn beforehand and do not wait for answers. Times count from the ' +
        'moment at which something was due, and what never came counts as longer than anything.',
      'Each process opens one session before the load, which is not counted.',
      'Speech that begins while the face still speaks gets no SPEAK of its own: it counts as never ' +
        'answered.',
    ],
    load: data,
  };
}

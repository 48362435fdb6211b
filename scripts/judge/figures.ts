// The figures of a judged face, beside those of people.
import { correlation, spread } from '../../bench/report/spectrum.ts';
import { quantile } from '../../bench/report/stats.ts';
import { FPS } from '../../src/media/timeline.ts';
import type { Clip } from './clip.ts';

/** What landmarks.py says of a frame. */
export type Marks = Readonly<
  Record<
    | 'yaw'
    | 'pitch'
    | 'roll'
    | 'noseX'
    | 'noseY'
    | 'brow'
    | 'gaze'
    | 'lids'
    | 'opening'
    | 'width'
    | 'chin',
    number
  >
>;

/** One figure: its name, what people have, and how it is computed. */
interface Figure {
  readonly name: string;
  /** Of seven clips of people who speak to a camera; blinks from the literature. */
  readonly people: string;
  readonly digits: number;
  readonly of: (track: Track) => number;
}

/** The landmarks of a clip as curves. */
interface Track {
  readonly spoken: (name: keyof Marks) => readonly number[];
  readonly silent: (name: keyof Marks) => readonly number[];
  readonly loudness: readonly number[];
}

/** Frames to either side over which landmarks are averaged: the tracker's noise. */
const SMOOTHING = 2;
/** Frames of the silence that belong to the end of the speech. */
const SETTLING = FPS;
/** The loudness may be up to half a second ahead of what follows it, or behind. */
const MAX_LAG = FPS / 2;

const FIGURES: readonly Figure[] = [
  ...(
    [
      ['yaw', '1-3.6°'],
      ['pitch', '1.3-2.3°'],
      ['roll', '1-1.3°'],
      ['noseX', '5-7.5 %'],
      ['noseY', '2.2-7.9 %'],
      ['brow', '.5-2.2 %'],
      ['gaze', '.8-1.6 %'],
    ] as const
  ).map(([name, people]): Figure => ({
    name: `${name} SD`,
    people,
    digits: 2,
    of: ({ spoken }) => spread(spoken(name)).sd,
  })),
  {
    name: 'noseX .5-2 Hz',
    people: '4.3 %',
    digits: 2,
    of: ({ spoken }) => Math.hypot(...spread(spoken('noseX')).bands.slice(1, 3)),
  },
  {
    name: 'noseY .5-2 Hz',
    people: '3 %',
    digits: 2,
    of: ({ spoken }) => Math.hypot(...spread(spoken('noseY')).bands.slice(1, 3)),
  },
  {
    name: 'noseX SD silent',
    people: 'a third',
    digits: 2,
    of: ({ silent }) => spread(silent('noseX')).sd,
  },
  {
    name: 'r loudness, head',
    people: '.25-.75',
    digits: 2,
    of: ({ spoken, loudness }) => strongest(loudness, spoken('noseY')),
  },
  {
    name: 'r loudness, brow',
    people: '.25-.75',
    digits: 2,
    of: ({ spoken, loudness }) => strongest(loudness, spoken('brow')),
  },
  ...([0.5, 0.95] as const).map((q): Figure => ({
    name: `opening p${100 * q}`,
    people: q === 0.5 ? '6-12 %' : '12-22 %',
    digits: 1,
    of: ({ spoken }) => quantile([...spoken('opening')], q),
  })),
  ...([0.05, 0.5, 0.95] as const).map((q): Figure => ({
    name: `width p${100 * q}`,
    people: { 0.05: '46-59 %', 0.5: '54-64 %', 0.95: '60-73 %' }[q],
    digits: 1,
    of: ({ spoken }) => quantile([...spoken('width')], q),
  })),
  {
    name: 'r opening, chin',
    people: '.26-.64',
    digits: 2,
    of: ({ spoken }) => correlation(spoken('opening'), spoken('chin')),
  },
  {
    name: 'blinks a minute',
    people: '26',
    digits: 0,
    of: ({ spoken }) => (blinks(spoken('lids')) * 60 * FPS) / spoken('lids').length,
  },
];

/** Names of the figures, and what people have. */
export const COLUMNS: readonly { readonly name: string; readonly people: string }[] = FIGURES;

/** @returns a text for each of COLUMNS; undefined when the tracker lost the face too often */
export function figuresOf(
  marks: readonly (Marks | null)[],
  { spoken, frames }: Clip,
): readonly string[] | undefined {
  if (marks.filter((one) => one === null).length > 0.1 * marks.length) {
    return undefined;
  }
  const curve = (name: keyof Marks, from: number, to: number): readonly number[] => {
    let last = marks.find((one) => one !== null)![name];
    const values = marks.slice(from, to).map((one) => (last = one?.[name] ?? last));
    return name === 'lids' ? values : smooth(values);
  };
  const track: Track = {
    spoken: (name) => curve(name, 0, spoken),
    silent: (name) => curve(name, spoken + SETTLING, marks.length),
    loudness: smooth(frames.slice(0, spoken).map(({ loudness }) => loudness)),
  };
  return FIGURES.map(({ digits, of }) => of(track).toFixed(digits));
}

const smooth = (values: readonly number[]): readonly number[] =>
  values.map((_, i) => {
    const around = values.slice(Math.max(0, i - SMOOTHING), i + SMOOTHING + 1);
    return around.reduce((sum, value) => sum + value, 0) / around.length;
  });

/** The strongest correlation at any lag, with its sign. */
function strongest(a: readonly number[], b: readonly number[]): number {
  let best = 0;
  for (let lag = -MAX_LAG; lag <= MAX_LAG; lag++) {
    const r = correlation(
      a.slice(Math.max(0, -lag), a.length - Math.max(0, lag)),
      b.slice(Math.max(0, lag), b.length - Math.max(0, -lag)),
    );
    best = Math.abs(r) > Math.abs(best) ? r : best;
  }
  return best;
}

function blinks(lids: readonly number[]): number {
  const open = quantile([...lids], 0.5);
  const shut = lids.map((value) => value < 0.6 * open);
  return shut.filter((is, i) => is && !shut[i - 1]).length;
}

// The articulation of a frame as one of fifteen visemes, for captions and rigs of clients.
import { ARTICULATOR_INDEX, type Articulator } from './articulation.ts';

/**
 * The visemes of Oculus Lipsync, which common rigs have, in its order. What the lips do not tell
 * apart is one viseme: p, b and m are PP.
 */
export const VISEMES = [
  'sil',
  'PP',
  'FF',
  'TH',
  'DD',
  'kk',
  'CH',
  'SS',
  'nn',
  'RR',
  'aa',
  'E',
  'I',
  'O',
  'U',
] as const;

/** Name of a viseme. */
export type Viseme = (typeof VISEMES)[number];

/**
 * What the speech model was trained to do for each: the targets of models/training/targets.py.
 * Articulators that are left out are 0.
 */
const TARGETS: readonly (readonly [Viseme, Readonly<Partial<Record<Articulator, number>>>])[] = [
  ['sil', {}],
  ['PP', { jaw: 0.06, press: 1 }],
  ['FF', { jaw: 0.12, open: 0.1, tuck: 1, upraise: 0.25, teeth: 0.3 }],
  ['TH', { jaw: 0.16, open: 0.28, ttip: 0.7, tout: 1, teeth: 0.4 }],
  ['DD', { jaw: 0.16, open: 0.28, ttip: 1, teeth: 0.4 }],
  ['kk', { jaw: 0.28, open: 0.36, tback: 1 }],
  ['CH', { jaw: 0.08, open: 0.32, teeth: 1, round: 0.65, upraise: 0.3 }],
  ['SS', { jaw: 0.06, open: 0.26, ttip: 0.5, teeth: 1, wide: 0.35 }],
  ['nn', { jaw: 0.26, open: 0.36, ttip: 1, teeth: 0.2 }],
  ['RR', { jaw: 0.22, open: 0.28, round: 0.5, ttip: 0.3 }],
  ['aa', { jaw: 0.75, open: 0.75, wide: 0.4, upraise: 0.2 }],
  ['aa', { jaw: 0.5, open: 0.52, round: 0.05, wide: 0.1 }],
  ['E', { jaw: 0.48, open: 0.55, wide: 0.45, upraise: 0.1 }],
  ['E', { jaw: 0.32, open: 0.36, round: 0.08, wide: 0.12 }],
  ['I', { jaw: 0.18, open: 0.3, wide: 0.85, tback: 0.2, upraise: 0.1 }],
  ['O', { jaw: 0.5, open: 0.53, round: 0.62, tback: 0.25 }],
  ['U', { jaw: 0.2, open: 0.24, round: 1, tback: 0.5 }],
];

const CHANNELS = [
  'jaw',
  'open',
  'press',
  'round',
  'wide',
  'tuck',
  'upraise',
  'ttip',
  'tout',
  'tback',
  'teeth',
] as const satisfies readonly Articulator[];
const INDICES = CHANNELS.map((name) => ARTICULATOR_INDEX[name]);
const POINTS = TARGETS.map(
  ([viseme, shape]) =>
    [
      viseme,
      Float32Array.from(
        CHANNELS,
        (name) => (shape as Partial<Record<Articulator, number>>)[name] ?? 0,
      ),
    ] as const,
);

/**
 * The viseme whose target is nearest.
 * @param articulation ARTICULATION_SIZE channels
 */
export function visemeOf(articulation: Float32Array): Viseme {
  let best: Viseme = 'sil';
  let least = Infinity;
  for (const [viseme, target] of POINTS) {
    let distance = 0;
    for (let i = 0; i < INDICES.length; i++) {
      const difference = articulation[INDICES[i]!]! - target[i]!;
      distance += difference * difference;
    }
    if (distance < least) {
      least = distance;
      best = viseme;
    }
  }
  return best;
}

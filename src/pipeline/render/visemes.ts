// Articulations of single speech sounds, and a sentence of them: input for contact sheets, tests
// and benches of the renderer.
import {
  ARTICULATION_SIZE,
  ARTICULATOR_INDEX,
  type Articulator,
} from '../../media/articulation.ts';

/** Articulators that differ from rest. */
export type Shape = Readonly<Partial<Record<Articulator, number>>>;

/**
 * Mouth shapes of the sounds that look most different (viseme classes of MPEG-4, ISO/IEC 14496-2).
 */
export const VISEMES = {
  rest: {},
  aa: { jaw: 0.75, open: 0.75, wide: 0.1 },
  ee: { jaw: 0.2, open: 0.34, wide: 0.9, upraise: 0.15 },
  eh: { jaw: 0.48, open: 0.55, wide: 0.45 },
  oo: { jaw: 0.2, open: 0.22, round: 1 },
  oh: { jaw: 0.42, open: 0.42, round: 0.8 },
  m: { press: 1 },
  f: { jaw: 0.12, open: 0.12, tuck: 1, upraise: 0.3 },
  th: { jaw: 0.18, open: 0.28, tout: 1 },
  l: { jaw: 0.26, open: 0.36, ttip: 1 },
  s: { jaw: 0.06, open: 0.28, teeth: 1, wide: 0.4, ttip: 0.4 },
  sh: { jaw: 0.08, open: 0.34, teeth: 1, round: 0.65, upraise: 0.35 },
  k: { jaw: 0.25, open: 0.32, tback: 1 },
} as const satisfies Record<string, Shape>;

/** Name of a mouth shape. */
export type Viseme = keyof typeof VISEMES;

/** @returns ARTICULATION_SIZE channels: `shape` times `amount` */
export function articulationOf(shape: Shape, amount = 1): Float32Array {
  const out = new Float32Array(ARTICULATION_SIZE);
  for (const [name, value] of Object.entries(shape)) {
    out[ARTICULATOR_INDEX[name as Articulator]] = value * amount;
  }
  return out;
}

/**
 * "Hello my friends, the sea was calm before the thunder." as visemes, each with its duration in
 * ms.
 */
export const SENTENCE: readonly (readonly [Viseme, number])[] = [
  ['rest', 200],
  ['eh', 90],
  ['l', 70],
  ['oh', 150],
  ['m', 80],
  ['aa', 130],
  ['ee', 60],
  ['f', 90],
  ['eh', 100],
  ['l', 50],
  ['s', 90],
  ['rest', 160],
  ['th', 60],
  ['eh', 60],
  ['s', 100],
  ['ee', 140],
  ['oo', 70],
  ['aa', 80],
  ['s', 70],
  ['k', 70],
  ['aa', 150],
  ['m', 100],
  ['m', 70],
  ['ee', 70],
  ['f', 80],
  ['oh', 140],
  ['th', 60],
  ['eh', 50],
  ['th', 90],
  ['aa', 110],
  ['l', 60],
  ['eh', 110],
  ['rest', 300],
];

/** Duration of SENTENCE. */
export const SENTENCE_MS = SENTENCE.reduce((sum, [, ms]) => sum + ms, 0);

/** How far a sound reaches into its neighbours, in ms: the speed of lips. */
const SPREAD_MS = 38;

/**
 * The articulation of SENTENCE at `timeMs`: sounds blended by their distance, as by dominance
 * functions.
 */
export function sentenceAt(timeMs: number): Float32Array {
  const out = new Float32Array(ARTICULATION_SIZE);
  let start = 0;
  let mass = 0;
  for (const [viseme, ms] of SENTENCE) {
    const outside = Math.max(0, start - timeMs, timeMs - start - ms);
    const weight =
      Math.exp(-((outside / SPREAD_MS) ** 2)) * (viseme === 'm' || viseme === 'f' ? 2 : 1);
    mass += weight;
    for (const [name, value] of Object.entries(VISEMES[viseme])) {
      out[ARTICULATOR_INDEX[name as Articulator]]! += value * weight;
    }
    start += ms;
  }
  for (let i = 0; i < out.length; i++) {
    out[i]! /= Math.max(mass, 1e-9);
  }
  out[ARTICULATOR_INDEX.speech] = timeMs > 100 && timeMs < SENTENCE_MS - 200 ? 1 : 0;
  return out;
}

// How far the proportions of a face are from those of people. FaceMesh finds the face of a monkey as
// surely as that of a person.
import {
  CHIN,
  type Landmarks,
  LEFT_EYE,
  LEFT_SIDE,
  NOSE_BASE,
  NOSE_BRIDGE,
  NOSE_TIP,
  NOSE_WINGS,
  px,
  py,
  pz,
  RIGHT_EYE,
  RIGHT_SIDE,
  UPPER_OUTER,
} from './landmarks.ts';

/** The middle of the upper lip's outer edge, and the middles of the lids. */
const LIP_TOP = UPPER_OUTER[5];
const LIDS = [LEFT_EYE, RIGHT_EYE].map(({ upper, lower }) => [upper[3]!, lower[3]!] as const);

/**
 * Each measure's mean in people, and its weight: a linear discriminant (Fisher 1936) between 2020 faces
 * of people, photographed, painted and rendered, and some 180 of monkeys, most of which passed for
 * people. Lengths and depths in distances between the eyes' outer corners; the score as
 * log10(1 - score).
 */
const MEASURES = {
  eyes: [0.309, 43.4],
  opening: [0.099, 22.4],
  width: [1.504, 5.4],
  nose: [0.558, -7.6],
  nostrils: [0.464, 7.6],
  philtrum: [0.146, 7.1],
  tip: [-0.202, 6.4],
  chin: [0.464, -4.3],
  doubt: [-7.41, 0.58],
} as const;

/**
 * Above this a face is not a person's. It tells 135 of 175 monkeys that passed before; people in noisy
 * pictures reach 2.05, others 1.75.
 */
export const UNLIKE_PEOPLE = 2.15;

/**
 * How little a face has the proportions of people: 0 in the mean, standard deviation about 0.6.
 * @param confidence score that there is a person's face, 0..1
 */
export function unlikePeople(points: Landmarks, confidence: number): number {
  const distance = (a: number, b: number): number =>
    Math.hypot(px(points, a) - px(points, b), py(points, a) - py(points, b));
  const unit = distance(LEFT_EYE.outer, RIGHT_EYE.outer);
  const depth = (a: number, b: number): number => (pz(points, b) - pz(points, a)) / unit;
  const length = (a: number, b: number): number => distance(a, b) / unit;
  const measured: Record<keyof typeof MEASURES, number> = {
    eyes: (length(LEFT_EYE.outer, LEFT_EYE.inner) + length(RIGHT_EYE.outer, RIGHT_EYE.inner)) / 2,
    opening: LIDS.reduce((sum, [upper, lower]) => sum + length(upper, lower), 0) / 2,
    width: length(LEFT_SIDE, RIGHT_SIDE),
    nose: length(NOSE_BRIDGE, NOSE_BASE),
    nostrils: length(...NOSE_WINGS),
    philtrum: length(NOSE_BASE, LIP_TOP),
    tip: depth(NOSE_BRIDGE, NOSE_TIP),
    chin: depth(NOSE_TIP, CHIN),
    doubt: Math.log10(Math.min(1 - confidence, 3e-5) + 3e-8),
  };
  return Object.entries(MEASURES).reduce(
    (sum, [name, [mean, weight]]) =>
      sum + weight * (measured[name as keyof typeof MEASURES] - mean),
    0,
  );
}

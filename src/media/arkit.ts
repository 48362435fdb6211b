// Articulation and pose as ARKit's 52 blend shapes (ARFaceAnchor.BlendShapeLocation), for clients
// that draw their own three-dimensional head.
import {
  ARTICULATION_SIZE,
  ARTICULATOR_INDEX,
  POSE_INDEX,
  POSE_SIZE,
  type Articulator,
  type PoseChannel,
} from './articulation.ts';

/**
 * Apple's names in the order of its documentation. "Left" and "right" are those of the face itself.
 */
export const ARKIT_BLEND_SHAPES = [
  'eyeBlinkLeft',
  'eyeLookDownLeft',
  'eyeLookInLeft',
  'eyeLookOutLeft',
  'eyeLookUpLeft',
  'eyeSquintLeft',
  'eyeWideLeft',
  'eyeBlinkRight',
  'eyeLookDownRight',
  'eyeLookInRight',
  'eyeLookOutRight',
  'eyeLookUpRight',
  'eyeSquintRight',
  'eyeWideRight',
  'jawForward',
  'jawLeft',
  'jawRight',
  'jawOpen',
  'mouthClose',
  'mouthFunnel',
  'mouthPucker',
  'mouthLeft',
  'mouthRight',
  'mouthSmileLeft',
  'mouthSmileRight',
  'mouthFrownLeft',
  'mouthFrownRight',
  'mouthDimpleLeft',
  'mouthDimpleRight',
  'mouthStretchLeft',
  'mouthStretchRight',
  'mouthRollLower',
  'mouthRollUpper',
  'mouthShrugLower',
  'mouthShrugUpper',
  'mouthPressLeft',
  'mouthPressRight',
  'mouthLowerDownLeft',
  'mouthLowerDownRight',
  'mouthUpperUpLeft',
  'mouthUpperUpRight',
  'browDownLeft',
  'browDownRight',
  'browInnerUp',
  'browOuterUpLeft',
  'browOuterUpRight',
  'cheekPuff',
  'cheekSquintLeft',
  'cheekSquintRight',
  'noseSneerLeft',
  'noseSneerRight',
  'tongueOut',
] as const;

/** Name of a blend shape. */
export type ArkitBlendShape = (typeof ARKIT_BLEND_SHAPES)[number];

/** Number of blend shapes: 52. */
export const ARKIT_SIZE = ARKIT_BLEND_SHAPES.length;

/** Index of each blend shape in ARKIT_BLEND_SHAPES. */
export const ARKIT_INDEX = Object.freeze(
  Object.fromEntries(ARKIT_BLEND_SHAPES.map((name, index) => [name, index])) as Record<
    ArkitBlendShape,
    number
  >,
);

/**
 * Weight of a blend shape per unit of an articulator; contributions add up. `toArkit` computes
 * mouthClose, which is not linear.
 */
const FROM_ARTICULATOR: readonly (readonly [Articulator, ArkitBlendShape, number])[] = [
  ['jaw', 'jawOpen', 0.65],
  ['open', 'mouthLowerDownLeft', 0.45],
  ['open', 'mouthLowerDownRight', 0.45],
  ['open', 'mouthUpperUpLeft', 0.15],
  ['open', 'mouthUpperUpRight', 0.15],
  ['press', 'mouthPressLeft', 0.45],
  ['press', 'mouthPressRight', 0.45],
  ['press', 'mouthRollLower', 0.3],
  ['press', 'mouthRollUpper', 0.25],
  ['round', 'mouthPucker', 0.7],
  ['round', 'mouthFunnel', 0.35],
  ['wide', 'mouthStretchLeft', 0.4],
  ['wide', 'mouthStretchRight', 0.4],
  ['wide', 'mouthSmileLeft', 0.2],
  ['wide', 'mouthSmileRight', 0.2],
  ['tuck', 'mouthRollLower', 0.8],
  ['tuck', 'mouthUpperUpLeft', 0.2],
  ['tuck', 'mouthUpperUpRight', 0.2],
  ['upraise', 'mouthUpperUpLeft', 0.45],
  ['upraise', 'mouthUpperUpRight', 0.45],
  ['upraise', 'noseSneerLeft', 0.1],
  ['upraise', 'noseSneerRight', 0.1],
  ['tout', 'tongueOut', 0.4],
  ['teeth', 'mouthLowerDownLeft', 0.2],
  ['teeth', 'mouthLowerDownRight', 0.2],
  ['teeth', 'mouthUpperUpLeft', 0.1],
  ['teeth', 'mouthUpperUpRight', 0.1],
  ['teeth', 'mouthDimpleLeft', 0.1],
  ['teeth', 'mouthDimpleRight', 0.1],
  ['brow', 'browInnerUp', 0.5],
  ['brow', 'browOuterUpLeft', 0.35],
  ['brow', 'browOuterUpRight', 0.35],
];

/**
 * "Left" is the viewer's in a pose and the face's own in ARKit: swapped here. The sign of a weight
 * selects one half of a signed channel.
 */
const FROM_POSE: readonly (readonly [PoseChannel, ArkitBlendShape, number])[] = [
  ['blinkLeft', 'eyeBlinkRight', 1],
  ['blinkRight', 'eyeBlinkLeft', 1],
  ['gazeX', 'eyeLookInRight', 0.6],
  ['gazeX', 'eyeLookOutLeft', 0.6],
  ['gazeX', 'eyeLookOutRight', -0.6],
  ['gazeX', 'eyeLookInLeft', -0.6],
  ['gazeY', 'eyeLookDownLeft', 0.6],
  ['gazeY', 'eyeLookDownRight', 0.6],
  ['gazeY', 'eyeLookUpLeft', -0.6],
  ['gazeY', 'eyeLookUpRight', -0.6],
  ['brow', 'browInnerUp', 0.5],
  ['brow', 'browOuterUpLeft', 0.35],
  ['brow', 'browOuterUpRight', 0.35],
];

const ARTICULATOR_WEIGHTS = FROM_ARTICULATOR.map(
  ([from, to, weight]) => [ARTICULATOR_INDEX[from], ARKIT_INDEX[to], weight] as const,
);
const POSE_WEIGHTS = FROM_POSE.map(
  ([from, to, weight]) => [POSE_INDEX[from], ARKIT_INDEX[to], weight] as const,
);

/**
 * Writes the 52 weights, each 0 to 1, to `out`. The rotation and shift of the head are not blend
 * shapes: take them from the pose.
 * @param articulation ARTICULATION_SIZE channels
 * @param pose POSE_SIZE channels, or undefined for the mouth alone
 * @param out ARKIT_SIZE values, overwritten
 * @throws RangeError for arrays of other sizes
 */
export function toArkit(
  articulation: Float32Array,
  pose: Float32Array | undefined,
  out: Float32Array,
): void {
  if (
    articulation.length !== ARTICULATION_SIZE ||
    (pose !== undefined && pose.length !== POSE_SIZE) ||
    out.length !== ARKIT_SIZE
  ) {
    throw new RangeError(
      `toArkit takes ${ARTICULATION_SIZE} articulators, ${POSE_SIZE} pose channels or undefined, ` +
        `and an array of ${ARKIT_SIZE}`,
    );
  }
  out.fill(0);
  for (const [from, to, weight] of ARTICULATOR_WEIGHTS) {
    out[to]! += articulation[from]! * weight;
  }
  if (pose !== undefined) {
    for (const [from, to, weight] of POSE_WEIGHTS) {
      out[to]! += Math.max(0, pose[from]! * weight);
    }
  }
  // mouthClose closes the lips over an open jaw: it is relative to jawOpen and must not exceed it.
  const closed = Math.max(
    articulation[ARTICULATOR_INDEX.press]!,
    articulation[ARTICULATOR_INDEX.tuck]! * 0.6,
  );
  out[ARKIT_INDEX.mouthClose] = closed * out[ARKIT_INDEX.jawOpen]!;
  for (let i = 0; i < ARKIT_SIZE; i++) {
    out[i] = Math.min(1, Math.max(0, out[i]!));
  }
}

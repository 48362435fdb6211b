// Faces that the edge of the picture cuts off: what of them must be seen.
import type { DetectedFace } from './face-landmarker.ts';
import type { RgbImage } from '../imaging/image.ts';
import {
  CHIN,
  FACE_OVAL,
  LEFT_EYE,
  MOUTH_CORNERS,
  NOSE_BASE,
  px,
  py,
  RIGHT_EYE,
} from './landmarks.ts';

type Size = Pick<RgbImage, 'width' | 'height'>;

/** What moves as a face speaks; of the lids, where they rise highest. */
const SPEAKING = [
  ...MOUTH_CORNERS,
  NOSE_BASE,
  ...[LEFT_EYE, RIGHT_EYE].flatMap(({ outer, inner, upper }) => [outer, inner, upper[3]!]),
];
/**
 * How far below the picture the chin may lie, share of the face's height. In pictures that are cropped
 * as for face recognition FaceMesh puts it there by up to 0.055 (22 pictures, chins at the lower edge).
 */
const CHIN_BEYOND = 0.06;
/** How much of the outline of a face may be cut off, share of its points. */
const CUT_SHARE = 0.3;
/** The same where the picture is continued beyond its edges. */
const CONTINUED_SHARE = 0.06;
/**
 * What an edge that cuts off more of the outline than CUT_A_LITTLE must not come near. FaceMesh fits
 * faces into the picture: an edge through the corner of an eye has it 0.02 of the face's width inside
 * (84 portraits, cut from the side).
 */
const OUTERMOST = [...MOUTH_CORNERS, LEFT_EYE.outer, RIGHT_EYE.outer];
const CUT_A_LITTLE = 0.1;
/** How near, share of the face's width. */
const NEAR = 0.05;
/** An edge that is nearer to the outline than this touches the face, share of the face's height. */
const TOUCHING = 0.05;

const isInside = (
  { points }: DetectedFace,
  { width, height }: Size,
  index: number,
  margin = 0,
): boolean =>
  px(points, index) >= margin &&
  py(points, index) >= margin &&
  px(points, index) <= width - margin &&
  py(points, index) <= height - margin;

/** The share of the points of the face's outline that lie outside the picture, 0..1. */
const outside = (face: DetectedFace, size: Size, margin = 0): number =>
  FACE_OVAL.filter((index) => !isInside(face, size, index, margin)).length / FACE_OVAL.length;

/** Whether too little of a face is in the picture to let it speak: a forehead may be missing. */
export const isCutOff = (face: DetectedFace, size: Size): boolean =>
  outside(face, size) > CUT_SHARE ||
  (outside(face, size) > CUT_A_LITTLE &&
    !OUTERMOST.every((index) => isInside(face, size, index, NEAR * face.width))) ||
  !SPEAKING.every((index) => isInside(face, size, index)) ||
  !isInside(face, size, CHIN, -CHIN_BEYOND * face.height);

/** Whether too much is cut off to continue the picture beyond its edges. */
export const isHeadCutOff = (face: DetectedFace, size: Size): boolean =>
  outside(face, size) > CONTINUED_SHARE;

/** Whether the edge of the picture cuts off the face, or touches it. */
export const isCloseUp = (face: DetectedFace, size: Size): boolean =>
  outside(face, size, TOUCHING * face.height) > 0;

// Checks a portrait: which face to use, whether it can be animated, and what could be better about
// it.
import { type Crop, CROP_ROOM, MAX_ROLL, pictureTurn } from './crop.ts';
import { isCutOff } from './cut-off.ts';
import type { DetectedFace } from './face-landmarker.ts';
import { edgeWidth, exposureOf, lit, outlineMask, sharpnessOf } from './exposure.ts';
import { FaceError, type FaceErrorCode, type FaceWarning } from '../face-error.ts';
import { labAt, lumaAt, mean, median } from '../imaging/colour.ts';
import type { RgbImage } from '../imaging/image.ts';
import { indicesAbove } from '../imaging/mask.ts';
import { lipEvidence } from './lip-evidence.ts';
import { CHIN, FACE_OVAL, FOREHEAD, LEFT_SIDE, px, py, pz, RIGHT_SIDE } from './landmarks.ts';
import { isLowerFaceCovered } from './lower-face.ts';
import { isMouthCovered, mouthHeight, mouthOpening } from './mouth-evidence.ts';
import { UNLIKE_PEOPLE, unlikePeople } from './proportions.ts';

/** The face to animate, and problems with the picture as a whole. */
export interface ChosenFace {
  readonly face: DetectedFace;
  readonly warnings: FaceWarning[];
}

/**
 * Least score that there is a person's face, 0..1. 312 people, photographed, painted or rendered,
 * reach 1 - 7e-6, most of them 1. Dogs, foxes and llamas stay below 1 - 1e-4.
 */
const MIN_CONFIDENCE = 1 - 3e-5;
/**
 * The same where the lower lip is redder than the skin: a man in the light of a screen reached
 * 1 - 3.7e-5; and where no lips are seen: a poodle reached 1 - 2.2e-5, statues 1 - 6e-7.
 */
const RED_CONFIDENCE = 1 - 5e-5;
const LIPLESS_CONFIDENCE = 1 - 1e-5;
/**
 * The same where the face is sharp, as red as skin in warm light, and smoother than fur: drawn
 * characters, whose eyes and noses are not those of people, reached 1 - 1e-4 and 1 - 2e-2. Redness
 * in a* (they have 16 and 21; 37 of 49 animals less than 14), roughness as a share of luma (they
 * have .005; sharp animals that are as red .03 and more, such as are blurred or enlarged .004).
 */
const DRAWN_CONFIDENCE = 1 - 3e-2;
const DRAWN_SKIN = { redness: 14, roughness: 0.008, sharpness: 0.75 } as const;
/** Least width of a face, pixels. Below 90 it looks soft and gets a warning. */
const MIN_FACE_WIDTH = 64;
/** Largest size of a second face, share of the first. Above it the choice is ambiguous. */
const MAX_SECOND_FACE = 0.6;

const DEGREE = Math.PI / 180;
/** Roll of a head in a picture that is turned, beyond the quarter turn. */
const MAX_TURNED_ROLL = 25 * DEGREE;
// Limits of the head pose, radians. FaceMesh measures yaw with an error: rendered heads at 40° give
// 28° to 38°, at 45° 33° to 44°. Faces of nine photographs at 28° to 37° moved well; at 44° half of
// the mouth is out of sight.
const MAX_YAW = 38 * DEGREE;
const WARN_YAW = 16 * DEGREE;
const MAX_PITCH = 30 * DEGREE;
/** Pitch that FaceMesh reports for a level head: the forehead lies behind the chin. */
const LEVEL_PITCH = 7 * DEGREE;

/**
 * Chooses the largest face of a person and checks its size and pose.
 * @param faces largest first
 * @throws FaceError when there is no face, when there are several of similar size, or when the face
 * is too small, turned, tilted or cut off
 */
export function chooseFace(faces: readonly DetectedFace[], image: RgbImage): ChosenFace {
  const [face, ambiguous] = largestFaces(faces);
  if (!face) {
    throw new FaceError('NO_FACE');
  }
  if (ambiguous) {
    throw new FaceError('SEVERAL_FACES');
  }
  const warnings: FaceWarning[] = faces.length > 1 ? ['OTHER_FACES'] : [];
  const turn = pictureTurn(face.roll);
  if (Math.abs(face.roll - turn) > (turn === 0 ? MAX_ROLL : MAX_TURNED_ROLL)) {
    throw new FaceError('FACE_TILTED');
  }
  if (turn !== 0) {
    warnings.push('ROTATED');
  }
  const { yaw, pitch } = poseOf(face);
  if (Math.abs(yaw) > MAX_YAW || Math.abs(pitch) > MAX_PITCH) {
    throw new FaceError('FACE_TURNED_AWAY');
  }
  if (Math.abs(yaw) > WARN_YAW) {
    warnings.push('TURNED');
  }
  if (face.width < MIN_FACE_WIDTH) {
    throw new FaceError('FACE_TOO_SMALL');
  }
  if (isCutOff(face, image)) {
    throw new FaceError('FACE_CUT_OFF');
  }
  return { face, warnings };
}

/**
 * The faces about as large as the largest one. Beside a face that is surely a person's, one that is
 * not does not count: the dog in somebody's arms (1 - 1.7e-4 and 1 - 2.4e-2, their owners 1).
 */
function largestFaces(faces: readonly DetectedFace[]): readonly DetectedFace[] {
  const [largest] = faces;
  const similar = faces.filter(
    ({ width, height }) =>
      Math.max(height / largest!.height, width / largest!.width) > MAX_SECOND_FACE,
  );
  const people = similar.filter(({ confidence }) => confidence >= LIPLESS_CONFIDENCE);
  return people.length > 0 ? people : similar;
}

/**
 * Refuses what looks like a face but is not surely a person's, such as the face of an animal. To be
 * called after checkCrop, because a face behind a mask is not sure either.
 * @throws FaceError FACE_UNCLEAR
 */
export function checkPerson({ confidence }: DetectedFace, crop: Crop): void {
  const least = leastConfidence(confidence, crop);
  const isDrawn = least === DRAWN_CONFIDENCE;
  if (confidence < least || (!isDrawn && unlikePeople(crop.points, confidence) > UNLIKE_PEOPLE)) {
    throw new FaceError('FACE_UNCLEAR');
  }
}

/** Looks at skin and lips only where they decide. */
function leastConfidence(confidence: number, crop: Crop): number {
  if (confidence < RED_CONFIDENCE) {
    return confidence >= DRAWN_CONFIDENCE && isDrawnSkin(crop) ? DRAWN_CONFIDENCE : MIN_CONFIDENCE;
  }
  if (confidence >= LIPLESS_CONFIDENCE) {
    return MIN_CONFIDENCE;
  }
  const { none, red } = lipEvidence(lit(crop, exposureOf(crop)), mouthOpening(crop.points));
  return none ? LIPLESS_CONFIDENCE : red ? RED_CONFIDENCE : MIN_CONFIDENCE;
}

/** Whether most of the face is as red as skin, and as smooth as it is in drawings. */
function isDrawnSkin(crop: Crop): boolean {
  const { image, points } = crop;
  const inside = indicesAbove(outlineMask(image, points, FACE_OVAL), 0.5);
  const across = 2;
  const down = across * image.width;
  const luma = (i: number): number => lumaAt(image, i);
  const roughness = median(
    inside.map((i) =>
      Math.abs(
        luma(i) - mean([luma(i - across), luma(i + across), luma(i - down), luma(i + down)]),
      ),
    ),
  );
  return (
    sharpnessOf(crop) > DRAWN_SKIN.sharpness &&
    median(inside.map((i) => labAt(image, i).a)) > DRAWN_SKIN.redness &&
    roughness < DRAWN_SKIN.roughness * median(inside.map(luma))
  );
}

/**
 * Head pose from the depth of the outline landmarks, radians. Both are 0 when the head faces the
 * camera.
 */
export function poseOf({ points, roll }: DetectedFace): { yaw: number; pitch: number } {
  const along = (a: number, b: number): number =>
    Math.cos(roll) * (px(points, b) - px(points, a)) +
    Math.sin(roll) * (py(points, b) - py(points, a));
  const down = (a: number, b: number): number =>
    -Math.sin(roll) * (px(points, b) - px(points, a)) +
    Math.cos(roll) * (py(points, b) - py(points, a));
  const yaw = Math.atan2(
    pz(points, RIGHT_SIDE) - pz(points, LEFT_SIDE),
    along(LEFT_SIDE, RIGHT_SIDE),
  );
  const pitch =
    Math.atan2(pz(points, CHIN) - pz(points, FOREHEAD), down(FOREHEAD, CHIN)) - LEVEL_PITCH;
  return { yaw, pitch };
}

/** Below this `bright` (luma, 0..255) noise is all that is left of a face. */
const TOO_DARK = 24;
const DARK = 85;
/** Shares of clipped pixels, 0..1: features are lost; parts are. */
const TOO_BRIGHT = 0.9;
const MUCH_CLIPPED = 0.12;
const CLIPPED = 0.06;
/** Width of the sharpest edges, pixels of the crop or of the source if these are fewer. */
const BLURRED = 2.4;
/** Opening of a mouth that screams, share of its width. What covers a mouth stays below. */
const WIDE_OPEN = 0.45;
/**
 * The same in distances between the eyes' outer corners: what is inside such a mouth cannot be
 * hidden. Laughter and speech reach 0.26; six people who scream or pull a face had 0.30 to 0.39.
 */
const SCREAM = 0.285;

/**
 * Checks the cropped head: whether the mouth can be seen, and resolution, space, exposure and
 * sharpness.
 * @param isDrawn whether it is line art
 * @returns warnings
 * @throws FaceError FACE_TOO_DARK, FACE_OVEREXPOSED, FACE_BLURRED, MOUTH_WIDE_OPEN, MOUTH_COVERED:
 * the first that explains why the mouth cannot be seen
 */
export function checkCrop(crop: Crop, isDrawn: boolean): FaceWarning[] {
  const exposure = exposureOf(crop);
  const { bright } = exposure;
  // Paper is white, and between lines nothing covers a mouth.
  const clipped = isDrawn ? 0 : exposure.clipped;
  if (bright < TOO_DARK) {
    throw new FaceError('FACE_TOO_DARK');
  }
  if (clipped > TOO_BRIGHT) {
    throw new FaceError('FACE_OVEREXPOSED');
  }
  if (!isDrawn && isLowerFaceCovered(crop)) {
    throw new FaceError('MOUTH_COVERED');
  }
  const blur = edgeWidth(crop) * Math.min(1, crop.scale);
  const { covered, chin, tongue } = isMouthCovered(lit(crop, exposure));
  if (covered && !isDrawn) {
    const reasons: readonly [boolean, FaceErrorCode][] = [
      [clipped > MUCH_CLIPPED, 'FACE_OVEREXPOSED'],
      [mouthOpening(crop.points) > WIDE_OPEN, 'MOUTH_WIDE_OPEN'],
      [blur > BLURRED, 'FACE_BLURRED'],
      [bright < DARK, 'FACE_TOO_DARK'],
    ];
    throw new FaceError(reasons.find(([applies]) => applies)?.[1] ?? 'MOUTH_COVERED');
  }
  if (tongue || mouthHeight(crop.points) > SCREAM) {
    throw new FaceError('MOUTH_WIDE_OPEN');
  }
  const warnings: FaceWarning[] = chin ? ['CHIN_COVERED'] : [];
  if (crop.scale < 0.6) {
    warnings.push('LOW_RESOLUTION');
  }
  if (crop.room < 0.85 * CROP_ROOM || crop.inpaintedShare > 0.08) {
    warnings.push('CROPPED');
  }
  if (bright < DARK) {
    warnings.push('DARK');
  }
  if (clipped > CLIPPED) {
    warnings.push('OVEREXPOSED');
  }
  if (blur > BLURRED) {
    warnings.push('BLURRED');
  }
  return warnings;
}

// Judges a portrait: which face is meant, whether it can be animated, and what could be better about it.
import type { Crop } from './crop.ts';
import type { FoundFace } from './detect.ts';
import { FaceError, type FaceWarning } from './errors.ts';
import type { RgbImage } from './image.ts';

export interface ChosenFace { readonly face: FoundFace; readonly warnings: FaceWarning[] }

/** Of two faces the smaller must be clearly so, or nobody knows which one is meant. */
const LIKE_SIZE = .6;
const MIN_FACE_WIDTH = 90;
const MAX_ROLL = 40 * Math.PI / 180;

/** @throws FaceError when there is none, or several, or it is too small, turned or tilted */
export function chooseFace(faces: readonly FoundFace[], _image: RgbImage): ChosenFace {
  const [face, second] = faces;
  if (!face) throw new FaceError('NO_FACE');
  const warnings: FaceWarning[] = [];
  if (second) {
    if (second.height > LIKE_SIZE * face.height) throw new FaceError('SEVERAL_FACES');
    warnings.push('OTHER_FACES');
  }
  if (face.width < MIN_FACE_WIDTH) throw new FaceError('FACE_TOO_SMALL');
  if (Math.abs(face.roll) > MAX_ROLL) throw new FaceError('FACE_TILTED');
  return { face, warnings };
}

export function judgeCrop(_crop: Crop): FaceWarning[] { return []; }

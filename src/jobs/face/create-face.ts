// Makes a face asset from one portrait: detect, crop, check, close the mouth, then cut out the
// patches that the renderer needs. Read createFace from top to bottom.
import sharp from 'sharp';
import { encodeFaceAsset, type FacePatch } from '../../media/face-asset.ts';
import { DEFAULT_LOOK, type FaceLook, sizeOf } from '../../media/face-look.ts';
import { native } from '../../native/addon.ts';
import { PICTURE_SIZE } from '../../media/picture.ts';
import { type ComposedPicture, composePicture } from './compose-picture.ts';
import { type Crop, CROP_ROOM, cropFace, TALL_HAIR_ROOM } from './detect/crop.ts';
import { isHeadCutOff } from './detect/cut-off.ts';
import { decodeImage } from './imaging/decode.ts';
import { withoutBars } from './imaging/letterbox.ts';
import { exposureOf, lit, sharpnessOf } from './detect/exposure.ts';
import { FaceLandmarker, type DetectedFace } from './detect/face-landmarker.ts';
import { isLineArt } from './detect/line-art.ts';
import { BrightPortrait } from './detect/low-light.ts';
import type { PersonSegmenter } from './detect/person-segmenter.ts';
import { mouthHeight } from './detect/mouth-evidence.ts';
import { FaceError, type FaceWarning } from './face-error.ts';
import { closedEye } from './regions/closed-eye.ts';
import { isEyeClosed, isEyeHidden } from './regions/eye-state.ts';
import { type Plane, Pyramid, type RgbImage } from './imaging/image.ts';
import { wearsGlasses } from './regions/glasses.ts';
import { type EyeIndices, LEFT_EYE, type Landmarks, RIGHT_EYE } from './detect/landmarks.ts';
import { headMatte } from './regions/head-matte.ts';
import { restMouth } from './regions/resting-mouth.ts';
import { lowerCheeks } from './regions/smile-eyes.ts';
import { chooseFace, checkCrop, checkPerson } from './detect/portrait-quality.ts';
import { measureLighting } from './regions/lighting.ts';
import { toI420 } from './imaging/patch.ts';
import { mouthTints, teethColour } from './regions/mouth-interior.ts';
import { lowerLip } from './regions/upper-lip.ts';

/**
 * Range of the brow movement of a face with glasses, share of the usual range: small enough that
 * the frame bends by less than a pixel.
 */
const BROWS_UNDER_GLASSES = 0.15;

/** Rows of the probability of a person in which hair at the upper edge is looked for. */
const TOP_ROWS = 2;
/** A picture of which more than this share lies outside the portrait is warned of. */
const NOTED_SHARE = 0.05;

/** A face that a portrait became. */
export interface CreatedFace {
  /** Format: src/media/face-asset.ts. */
  readonly asset: Uint8Array;
  readonly warnings: readonly FaceWarning[];
  /** JPEG in the size of the picture: the face at rest. */
  readonly preview: Uint8Array;
}

/** How a face is made. */
export interface CreateFaceOptions {
  readonly name: string;
  /** Size, framing and background of the picture; default: DEFAULT_LOOK. */
  readonly look?: FaceLook | undefined;
  /** Load it once per thread. Without it the call loads the models that set-up made. */
  readonly landmarker?: FaceLandmarker;
  /** Called between two steps; what it throws ends the call. */
  readonly check?: () => void;
}

/**
 * Makes a face asset from a portrait (JPEG, PNG or WebP). A pure function: the same bytes and name
 * give the same asset, byte for byte.
 * @throws FaceError when the portrait cannot be used; its message says what to change
 */
export async function createFace(
  imageBytes: Uint8Array,
  { name, look = DEFAULT_LOOK, landmarker, check = () => {} }: CreateFaceOptions,
): Promise<CreatedFace> {
  const source = new Pyramid(withoutBars(await decodeImage(imageBytes)));
  check();
  const networks = landmarker ?? (await FaceLandmarker.load());
  const { segmenter } = networks;
  const faces = await networks.find(source);
  check();
  const { face, warnings: faceWarnings } = chooseFace(faces, source.image);

  if (!isSquare(look) && isHeadCutOff(face, source.image)) {
    throw new FaceError('FACE_CUT_OFF');
  }
  const { crop, person } = await cropWithHair(source, face, isSquare(look), segmenter);
  const isDrawn = isLineArt(crop.image, crop.points);
  const warnings = [...faceWarnings, ...checkCrop(crop, isDrawn)];
  checkPerson(face, crop);
  const bright = new BrightPortrait(crop.image, exposureOf(crop).bright);
  const closed = restMouth(bright.image, crop.points, sharpnessOf(crop), isDrawn);
  if (closed.opening) {
    warnings.push('MOUTH_OPEN');
  }
  const glasses = wearsGlasses(closed.image, closed.points);
  const eyes = eyeStates(closed.image, closed.points, warnings);
  // Frames would bend with the skin behind them.
  const lowered = glasses || !eyes.areOpen ? 0 : closed.raised;
  const rest = { ...closed, ...lowerCheeks(closed.image, closed.points, lowered) };
  const lighting = measureLighting(bright.image, crop.points);
  const teeth = rest.opening
    ? teethColour(bright.image, rest.opening, lighting.skin, rest.contour)
    : undefined;
  const lip = lowerLip(rest.image, rest.points);
  const tints = mouthTints(lighting, teeth, lip, mouthHeight(crop.points));
  const lid = (eye: EyeIndices, seed: number): FacePatch =>
    eyes.canBlink
      ? bright.darkenPatch(closedEye(rest.image, rest.points, eye, lighting, seed, glasses))
      : emptyLid(rest.points, eye);
  const [lidLeft, lidRight] = [lid(LEFT_EYE, 1), lid(RIGHT_EYE, 2)];
  const neutral = bright.darken(rest.image);

  check();
  const shown = isDefault(look)
    ? undefined
    : await composePicture(source, crop, { ...rest, image: neutral }, look, segmenter);
  if (shown?.isReplaced === false && look.background !== 'keep') {
    warnings.push('BACKGROUND_KEPT');
  }
  if (shown !== undefined && shown.inpaintedShare > NOTED_SHARE) {
    warnings.push('EXTENDED');
  }
  // The outline of the head is the same: where colours hardly differ, any change moves the mask.
  const outlined = bright.darken(closed.image);
  const matte = headMatte(outlined, closed.points, person, shown?.isReplaced);
  const picture = shown?.image ?? neutral;
  const moved = (patch: FacePatch | undefined): FacePatch | undefined =>
    patch && (shown?.patch(patch) ?? patch);

  const { luma, u, v } = toI420(picture, 0, 0, picture.width, picture.height);
  const asset = encodeFaceAsset({
    width: picture.width,
    height: picture.height,
    meta: {
      name,
      warnings,
      details: {
        confidence: round(face.confidence),
        sourcePixelsPerPixel: round(crop.scale),
        room: round(crop.room),
        gap: round(rest.gap),
      },
    },
    neutral: Buffer.concat([luma, u, v]),
    landmarks: pixelCentres(shown?.points(rest.points) ?? rest.points),
    matte: shown?.matte(matte.weight) ?? matte.weight,
    shoulders: shown?.shoulders(matte.shoulders) ?? matte.shoulders,
    tints: bright.darkenTints(tints),
    limits: {
      round: 1 - 0.1 * rest.smile,
      open: 1 - 0.2 * rest.smile,
      yaw: 0.1 * matte.motionScale,
      pitch: 0.09 * matte.motionScale,
      roll: 0.09 * matte.motionScale,
      shift: 12 * matte.motionScale * shrinkOf(shown),
      brow: glasses ? BROWS_UNDER_GLASSES : 1,
    },
    lidLeft: moved(lidLeft),
    lidRight: moved(lidRight),
  });
  assertDrawable(asset);
  check();
  return { asset, warnings, preview: await previewOf(picture) };
}

/** @throws FaceError FACE_UNCLEAR when the renderer refuses the face, whose landmarks make none */
export function assertDrawable(asset: Uint8Array): void {
  try {
    void new native.FaceAsset(asset);
  } catch (error) {
    throw new FaceError('FACE_UNCLEAR', undefined, { cause: error });
  }
}

const isDefault = ({ size, framing, background }: FaceLook): boolean =>
  size === DEFAULT_LOOK.size &&
  framing === DEFAULT_LOOK.framing &&
  background === DEFAULT_LOOK.background;

const isSquare = ({ size }: FaceLook): boolean => sizeOf(size).width === sizeOf(size).height;

/** How large a head is in its picture, in units of the head in a crop. */
const shrinkOf = (shown: ComposedPicture | undefined): number =>
  shown === undefined
    ? 1
    : (shown.scale * PICTURE_SIZE) / Math.min(shown.image.width, shown.image.height);

/**
 * Crops the head. When hair covers a tenth of the topmost rows of the crop, crops again with more
 * room. Also gives the probability of a person in the crop.
 */
async function cropWithHair(
  source: Pyramid,
  face: DetectedFace,
  mayBeClose: boolean,
  segmenter: PersonSegmenter,
): Promise<{ crop: Crop; person: Plane }> {
  const crop = cropFace(source, face, CROP_ROOM, mayBeClose);
  const person = await segmenter.segment(crop.image);
  const top = person.data.subarray(0, TOP_ROWS * person.width);
  if (top.filter((probability) => probability > 0.5).length <= 0.1 * top.length) {
    return { crop, person };
  }
  const wider = cropFace(source, face, TALL_HAIR_ROOM, mayBeClose);
  return { crop: wider, person: await segmenter.segment(wider.image) };
}

/**
 * Whether both eyes are seen and open, and whether they can blink: a wink can. Adds EYES_HIDDEN or
 * EYES_CLOSED to `warnings` where they apply.
 */
function eyeStates(
  image: RgbImage,
  points: Landmarks,
  warnings: FaceWarning[],
): { readonly areOpen: boolean; readonly canBlink: boolean } {
  const { image: bright } = lit({ image, points }, exposureOf({ image, points }));
  if ([LEFT_EYE, RIGHT_EYE].some((eye) => isEyeHidden(bright, points, eye))) {
    warnings.push('EYES_HIDDEN');
    return { areOpen: false, canBlink: false };
  }
  const closed = [LEFT_EYE, RIGHT_EYE].filter((eye) => isEyeClosed(bright, points, eye)).length;
  if (closed === 2) {
    warnings.push('EYES_CLOSED');
  }
  return { areOpen: closed === 0, canBlink: closed < 2 };
}

/**
 * A transparent patch of 2x2 pixels, for eyes that are hidden or closed: a blink must not change
 * the picture.
 */
function emptyLid(points: Landmarks, { outer }: EyeIndices): FacePatch {
  const even = (value: number): number =>
    Math.min(PICTURE_SIZE - 2, Math.max(0, Math.round(value / 2) * 2));
  return {
    x: even(points[outer * 3]!),
    y: even(points[outer * 3 + 1]!),
    width: 2,
    height: 2,
    luma: new Uint8Array(4).fill(128),
    u: Uint8Array.of(128),
    v: Uint8Array.of(128),
    alpha: new Uint8Array(4),
  };
}

/**
 * Converts coordinates: pixel centres are integers in an asset, and at half pixels in face
 * creation.
 */
const pixelCentres = (points: Landmarks): Landmarks =>
  points.map((value, i) => (i % 3 === 2 ? value : value - 0.5));

const round = (value: number): number => Math.round(value * 1000) / 1000;

const previewOf = async ({ width, height, data }: RgbImage): Promise<Uint8Array> =>
  sharp(data, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 88 })
    .toBuffer();

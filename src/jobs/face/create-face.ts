// One portrait in, one face asset out: the whole way of face creation, read top-down.
import sharp from 'sharp';
import { encodeFaceAsset, type FacePatch } from '../../media/face-asset.ts';
import { PICTURE_SIZE } from '../../media/picture.ts';
import { type Crop, cropFace, TALL_HAIR_ROOM } from './detect/crop.ts';
import { decodeImage } from './imaging/decode.ts';
import { FaceLandmarker, type DetectedFace } from './detect/face-landmarker.ts';
import type { FaceWarning } from './face-error.ts';
import { closedEye } from './regions/closed-eye.ts';
import { isEyeClosed, isEyeHidden } from './regions/eye-state.ts';
import { Pyramid, type RgbImage } from './imaging/image.ts';
import { wearsGlasses } from './regions/glasses.ts';
import { type EyeIndices, LEFT_EYE, type Landmarks, RIGHT_EYE } from './detect/landmarks.ts';
import { segmentHead } from './regions/head-mask.ts';
import { headMatte } from './regions/head-matte.ts';
import { restMouth } from './regions/resting-mouth.ts';
import { chooseFace, checkCrop } from './detect/portrait-quality.ts';
import { measureLighting } from './regions/lighting.ts';
import { toI420 } from './imaging/patch.ts';
import { mouthTints, ownTeeth } from './regions/mouth-interior.ts';

/** A frame that bends by a pixel is not seen to. */
const BROWS_UNDER_GLASSES = 0.15;

export interface CreatedFace {
  /** In the format of media/face-asset.ts. */
  readonly asset: Uint8Array;
  readonly warnings: readonly FaceWarning[];
  /** JPEG, 512x512: the face at rest. */
  readonly preview: Uint8Array;
}

export interface CreateFaceOptions {
  readonly name: string;
  /** Loaded once per thread; by default a new one from the models that set-up made. */
  readonly landmarker?: FaceLandmarker;
}

/**
 * Turns a portrait (JPEG, PNG or WebP) into a face asset. A pure function of its input: the same bytes and name give the same asset.
 * @throws FaceError when the picture cannot be used, with what to do about it
 */
export async function createFace(
  imageBytes: Uint8Array,
  { name, landmarker: finder }: CreateFaceOptions,
): Promise<CreatedFace> {
  const source = new Pyramid(await decodeImage(imageBytes));
  const faces = await (finder ?? (await FaceLandmarker.load())).find(source);
  const { face, warnings: faceWarnings } = chooseFace(faces, source.image);

  const crop = cropWithHair(source, face);
  const warnings = [...faceWarnings, ...checkCrop(crop)];
  const rest = restMouth(crop.image, crop.points, crop.scale);
  if (rest.opening) {
    warnings.push('MOUTH_OPEN');
  }
  const light = measureLighting(crop.image, crop.points);
  const teeth = rest.opening ? ownTeeth(crop.image, rest.opening) : undefined;
  const framed = wearsGlasses(rest.image, rest.points);
  const [lidLeft, lidRight] = closedEyes(rest.image, rest.points, light, framed, warnings);
  const matte = headMatte(rest.image, rest.points);

  const { luma, u, v } = toI420(rest.image, 0, 0, PICTURE_SIZE, PICTURE_SIZE);
  const asset = encodeFaceAsset({
    width: PICTURE_SIZE,
    height: PICTURE_SIZE,
    meta: {
      name,
      warnings,
      details: {
        confidence: round(face.confidence),
        sourcePixelsPerPixel: round(crop.scale),
        room: round(crop.room),
        gap: round(rest.gap),
        ownTeeth: teeth !== undefined,
      },
    },
    neutral: Buffer.concat([luma, u, v]),
    landmarks: pixelCentres(rest.points),
    matte: matte.weight,
    tints: mouthTints(light, teeth?.colour ?? undefined),
    limits: {
      round: 1 - 0.4 * rest.smile,
      open: 1,
      yaw: 0.06 * matte.motionScale,
      pitch: 0.05 * matte.motionScale,
      roll: 0.05 * matte.motionScale,
      shift: 6 * matte.motionScale,
      brow: framed ? BROWS_UNDER_GLASSES : 1,
    },
    teethUpper: teeth?.patch ?? undefined,
    teethLower: undefined,
    lidLeft,
    lidRight,
  });
  return { asset, warnings, preview: await previewOf(rest.image) };
}

/** As usual, or with more room when hair reaches the upper border and the picture goes on there. */
function cropWithHair(source: Pyramid, face: DetectedFace): Crop {
  const crop = cropFace(source, face);
  const mask = segmentHead(crop.image, crop.points)?.mask.data.subarray(0, 4 * PICTURE_SIZE);
  const touching = mask?.reduce((sum, value) => sum + value, 0) ?? 0;
  return touching > 0.1 * 4 * PICTURE_SIZE ? cropFace(source, face, TALL_HAIR_ROOM) : crop;
}

function closedEyes(
  image: RgbImage,
  points: Landmarks,
  light: Parameters<typeof closedEye>[3],
  framed: boolean,
  warnings: FaceWarning[],
): [FacePatch | undefined, FacePatch | undefined] {
  const hidden = isEyeHidden(image, points, LEFT_EYE) || isEyeHidden(image, points, RIGHT_EYE);
  const closed =
    !hidden && isEyeClosed(image, points, LEFT_EYE) && isEyeClosed(image, points, RIGHT_EYE);
  if (hidden) {
    warnings.push('EYES_HIDDEN');
  }
  if (closed) {
    warnings.push('EYES_CLOSED');
  }
  const lid = (eye: EyeIndices, seed: number): FacePatch =>
    hidden || closed ? emptyLid(points, eye) : closedEye(image, points, eye, light, seed, framed);
  return [lid(LEFT_EYE, 1), lid(RIGHT_EYE, 2)];
}

/** Behind dark glasses, and where the lids are shut already, a blink must show nothing: a patch that is transparent throughout. */
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

/** The asset counts pixels from their centres, face creation from their corners. */
const pixelCentres = (points: Landmarks): Landmarks =>
  points.map((value, i) => (i % 3 === 2 ? value : value - 0.5));

const round = (value: number): number => Math.round(value * 1000) / 1000;

const previewOf = async ({ width, height, data }: RgbImage): Promise<Uint8Array> =>
  sharp(data, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 88 })
    .toBuffer();

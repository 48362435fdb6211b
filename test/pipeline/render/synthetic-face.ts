// A drawn, exactly symmetric face. The inside of its mouth has a colour of its own, so that tests
// can measure the opening from the pixels.
import assert from 'node:assert/strict';
import {
  encodeFaceAsset,
  type FaceAssetParts,
  LANDMARK_COUNT,
} from '../../../src/media/face-asset.ts';
import { articulationOf, type Shape } from '../../../src/pipeline/render/visemes.ts';
import { POSE_INDEX, POSE_SIZE, type PoseChannel } from '../../../src/media/articulation.ts';
import { i420Bytes, macroblocks } from '../../../src/media/picture.ts';
import { type FaceAsset, type FaceRenderer, native } from '../../../src/native/addon.ts';

export const SIZE = 512;
/** The axis of symmetry lies between two pixels. */
export const AXIS = (SIZE - 1) / 2;
const MOUTH_Y = 320;
const MOUTH_HALF = 44;
const INNER_HALF = 40;
export const EYE_Y = 220;
/** Distance of an eye's corners from the axis, and its lids' distance from the line between them. */
const EYE_CORNERS = [28, 68] as const;
const LIDS = [8, 7] as const;
/** An iris is darker than the white beside it and than skin. */
export const IRIS = { x: 48, radius: 8, luma: 40 } as const;
const WHITE_LUMA = 200;

/** V of everything inside the mouth; that of skin and background is far lower. */
export const INSIDE = 230;
const LIP_V = 150;
const SEEN_V = 180;

// Indices of the FaceMesh topology from the left corner to the right one (as the viewer sees them).
const UPPER_INNER = [78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308];
const LOWER_INNER = [78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308];
const UPPER_OUTER = [61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291];
const LOWER_OUTER = [61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291];
const JAW = [58, 172, 136, 150, 149, 176, 148, 152, 377, 400, 378, 379, 365, 397, 288];
const OVAL_UPPER = [
  132, 93, 234, 127, 162, 21, 54, 103, 67, 109, 10, 338, 297, 332, 284, 251, 389, 356, 454, 323,
  361,
];
const EYES = [
  {
    corner: 33,
    sign: -1,
    ring: [246, 161, 160, 159, 158, 157, 173],
    lower: [7, 163, 144, 145, 153, 154, 155],
    inner: 133,
  },
  {
    corner: 263,
    sign: 1,
    ring: [466, 388, 387, 386, 385, 384, 398],
    lower: [249, 390, 373, 374, 380, 381, 382],
    inner: 362,
  },
];
const BROWS = [
  { sign: -1, upper: [70, 63, 105, 66, 107], lower: [46, 53, 52, 65, 55] },
  { sign: 1, upper: [300, 293, 334, 296, 336], lower: [276, 283, 282, 295, 285] },
];

function landmarks(): Float32Array {
  const points = new Float32Array(LANDMARK_COUNT * 3);
  const put = (index: number, x: number, y: number, z = -20): void => {
    points.set([AXIS + x, y, z], index * 3);
  };
  for (let i = 0; i < LANDMARK_COUNT; i++) {
    put(i, 0, 270, -30);
  }
  const arc = (indices: readonly number[], half: number, y: number, height: number): void =>
    indices.forEach((index, i) => {
      const t = (i / (indices.length - 1)) * 2 - 1;
      put(index, t * half, y - height * (1 - t * t), -40);
    });
  arc(UPPER_INNER, INNER_HALF, MOUTH_Y, 0);
  arc(LOWER_INNER, INNER_HALF, MOUTH_Y, 0);
  arc(UPPER_OUTER, MOUTH_HALF, MOUTH_Y, 11);
  arc(LOWER_OUTER, MOUTH_HALF, MOUTH_Y, -14);
  arc(JAW, 105, 330, -60);
  arc(OVAL_UPPER, 110, 280, 160);
  for (const { corner, sign, ring, lower, inner } of EYES) {
    put(corner, sign * EYE_CORNERS[1], EYE_Y);
    put(inner, sign * EYE_CORNERS[0], EYE_Y);
    ring.forEach((index, i) => {
      const t = (i + 1) / 8;
      put(index, sign * (68 - 40 * t), EYE_Y - LIDS[0] * Math.sin(Math.PI * t));
    });
    lower.forEach((index, i) => {
      const t = (i + 1) / 8;
      put(index, sign * (68 - 40 * t), EYE_Y + LIDS[1] * Math.sin(Math.PI * t));
    });
  }
  for (const { sign, upper, lower } of BROWS) {
    upper.forEach((index, i) => {
      put(index, sign * (78 - 14 * i), 192 - 3 * Math.min(i, 4 - i));
    });
    lower.forEach((index, i) => {
      put(index, sign * (78 - 14 * i), 199 - 3 * Math.min(i, 4 - i));
    });
  }
  put(168, 0, 215, -45); // bridge of the nose
  put(2, 0, 285, -60); // its base
  put(1, 0, 275, -75);
  return points;
}

/** Between the lids: an iris on the white. */
function eyeball(x: number, y: number): number | undefined {
  const u = Math.abs(x - AXIS);
  const t = (u - EYE_CORNERS[0]) / (EYE_CORNERS[1] - EYE_CORNERS[0]);
  const open = Math.sin(Math.PI * Math.min(1, Math.max(0, t)));
  if (y <= EYE_Y - LIDS[0] * open || y >= EYE_Y + LIDS[1] * open) {
    return undefined;
  }
  const outside = Math.hypot(u - IRIS.x, y - EYE_Y) - IRIS.radius;
  return IRIS.luma + (WHITE_LUMA - IRIS.luma) * Math.min(1, Math.max(0, outside + 0.5));
}

/** Black pupils in a picture: without anything dark a face counts as faded. */
export function drawPupils(neutral: Uint8Array): Uint8Array {
  for (const x of [AXIS - IRIS.x, AXIS + IRIS.x]) {
    for (let y = EYE_Y - 7; y <= EYE_Y + 7; y++) {
      neutral.fill(16, y * SIZE + Math.round(x) - 7, y * SIZE + Math.round(x) + 8);
    }
  }
  return neutral;
}

/** Smooth symmetric texture, so that every displacement is visible. */
const texture = (x: number, y: number): number => {
  const u = Math.abs(x - AXIS);
  return 130 + 40 * Math.sin(u * 0.21) * Math.cos(y * 0.17) + 25 * Math.sin(u * 0.05 + y * 0.09);
};

export function syntheticParts(changes: Partial<FaceAssetParts> = {}): FaceAssetParts {
  const neutral = new Uint8Array(i420Bytes(SIZE, SIZE)).fill(128);
  const matte = new Uint8Array(SIZE * SIZE);
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      neutral[y * SIZE + x] = eyeball(x, y) ?? texture(x, y);
      const r = Math.hypot((x - AXIS) / 150, (y - 265) / 200);
      matte[y * SIZE + x] = Math.max(0, Math.min(255, Math.round(((1.15 - r) / 0.25) * 255)));
    }
  }
  // Dark eyes on pale whites, lips redder than skin.
  for (let y = 0; y < SIZE / 2; y++) {
    for (let x = 0; x < SIZE / 2; x++) {
      const lip =
        ((2 * x + 0.5 - AXIS) / MOUTH_HALF) ** 2 + ((2 * y + 0.5 - MOUTH_Y) / 14) ** 2 < 1;
      neutral[SIZE * SIZE * 1.25 + (y * SIZE) / 2 + x] = lip ? LIP_V : 138;
    }
  }
  const inside = [60, 110, INSIDE] as const;
  return {
    width: SIZE,
    height: SIZE,
    meta: { name: 'synthetic', warnings: [], details: {} },
    neutral,
    landmarks: landmarks(),
    matte,
    shoulders: undefined,
    tints: { cavity: inside, gums: inside, tongue: inside, teeth: [130, 110, INSIDE] },
    limits: { round: 1, open: 1, yaw: 0.06, pitch: 0.05, roll: 0.05, shift: 8, brow: 1 },
    lidLeft: undefined,
    lidRight: undefined,
    ...changes,
  };
}

export const syntheticAsset = (changes: Partial<FaceAssetParts> = {}): Uint8Array =>
  encodeFaceAsset(syntheticParts(changes));

export const poseOf = (channels: Partial<Record<PoseChannel, number>> = {}): Float32Array => {
  const pose = new Float32Array(POSE_SIZE);
  for (const [name, value] of Object.entries(channels)) {
    pose[POSE_INDEX[name as PoseChannel]] = value;
  }
  return pose;
};

/** Fails at the first pixel that differs: a deepEqual of pictures takes minutes and gigabytes. */
export function assertSamePicture(actual: Uint8Array, expected: Uint8Array, message = ''): void {
  assert.equal(actual.length, expected.length, message);
  const at = actual.findIndex((value, i) => value !== expected[i]);
  assert.ok(at < 0, `${message} byte ${at}: ${actual[at]} for ${expected[at]}`);
}

/** A renderer with its buffers. */
export class Canvas {
  readonly picture = new Uint8Array(i420Bytes(SIZE, SIZE));
  readonly dirty = new Uint8Array(macroblocks(SIZE, SIZE));
  readonly renderer: FaceRenderer;

  constructor(asset: FaceAsset) {
    this.renderer = new native.FaceRenderer(asset);
  }

  draw(articulation: Float32Array, pose: Float32Array = poseOf()): this {
    this.renderer.render(articulation, pose, this.picture, this.dirty);
    return this;
  }

  show(shape: Shape, amount = 1, pose: Float32Array = poseOf()): this {
    return this.draw(articulationOf(shape, amount), pose);
  }

  /**
   * Area of the opening in chroma pixels (a quarter of the luma pixels); pixels at its edge count
   * in part.
   */
  opening(): number {
    let area = 0;
    for (const v of this.picture.subarray(SIZE * SIZE * 1.25)) {
      area += Math.max(0, Math.min(1, (v - LIP_V) / (SEEN_V - LIP_V)));
    }
    return area;
  }
}

/** Index of the V sample at a pixel of a picture. */
export const chroma = (x: number, y: number): number =>
  SIZE * SIZE * 1.25 + ((y >> 1) * SIZE) / 2 + (x >> 1);

/** A picture of stripes of a width, whose edges take so many pixels. */
export function stripes(edge: number, width = 24): Uint8Array {
  const { neutral } = syntheticParts();
  for (let i = 0; i < SIZE * SIZE; i++) {
    const from = Math.abs(((i % SIZE) % (2 * width)) - width) - width / 2;
    neutral[i] = 150 + 60 * Math.max(-0.5, Math.min(0.5, from / edge));
  }
  return neutral;
}

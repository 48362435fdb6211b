// Gaze, measured from the renderer's pixels.
import assert from 'node:assert/strict';
import { expect, test } from 'vitest';
import { EMOTIONS } from '../../../src/media/articulation.ts';
import { native } from '../../../src/native/addon.ts';
import {
  AXIS,
  Canvas,
  EYE_Y,
  IRIS,
  poseOf,
  SIZE,
  syntheticAsset,
  syntheticParts,
  assertSamePicture,
} from './synthetic-face.ts';

const asset = new native.FaceAsset(syntheticAsset());

/** Margins of the lids, without their corners: vertices of FaceMesh. */
const EYELIDS = [
  [246, 161, 160, 159, 158, 157, 173, 7, 163, 144, 145, 153, 154, 155],
  [466, 388, 387, 386, 385, 384, 398, 249, 390, 373, 374, 380, 381, 382],
].flat();
const SKIN = 130;

/** Pixels of the opening are darker than this where the iris is. */
const DARK = 90;

interface Seen {
  /** Centre of the iris, pixels from where the portrait shows it. */
  readonly x: number;
  readonly y: number;
  readonly area: number;
}

/** The iris of one eye. @param sign -1 for the eye on the left of the picture */
function irisOf(picture: Uint8Array, sign: -1 | 1): Seen {
  const middle = AXIS + sign * IRIS.x;
  let [x, y, area] = [0, 0, 0];
  for (let row = EYE_Y - 14; row <= EYE_Y + 12; row++) {
    for (let column = Math.round(middle - 18); column <= middle + 18; column++) {
      if (picture[row * SIZE + column]! < DARK) {
        x += column - middle;
        y += row - EYE_Y;
        area++;
      }
    }
  }
  return { x: x / area, y: y / area, area };
}

const looking = (
  gazeX: number,
  gazeY: number,
): { left: Seen; right: Seen; picture: Uint8Array } => {
  const { picture } = new Canvas(asset).show({}, 1, poseOf({ gazeX, gazeY }));
  return { left: irisOf(picture, -1), right: irisOf(picture, 1), picture };
};

test.for([-1, -0.5, 0.5, 1])('both irises move by the same way with gaze x %s', (gazeX) => {
  const { left, right } = looking(gazeX, 0);
  assert.ok(Math.abs(left.x - right.x) < 0.5, `${left.x} and ${right.x}`);
  expect(left.x / gazeX).toBeGreaterThan(0.4 * IRIS.radius);
  expect(left.x / gazeX).toBeLessThan(0.8 * IRIS.radius);
});

test('an iris stays a whole disc, and leaves white where it was', () => {
  const rest = looking(0, 0);
  const { left, right, picture } = looking(1, 0);
  for (const [now, before] of [
    [left, rest.left],
    [right, rest.right],
  ] as const) {
    // Lids cover more of it towards the corners.
    expect(now.area / before.area).toBeGreaterThan(0.75);
    expect(now.area / before.area).toBeLessThan(1.1);
  }
  const bared = Math.round(AXIS + IRIS.x - 0.8 * IRIS.radius);
  expect(syntheticParts().neutral[EYE_Y * SIZE + bared]).toBeLessThan(DARK);
  expect(picture[EYE_Y * SIZE + bared]).toBeGreaterThan(150);
});

test('a gleam beside an iris is not drawn over the white where the iris was', () => {
  const { neutral } = syntheticParts();
  const gleam = Math.round(AXIS + IRIS.x + 1.1 * IRIS.radius);
  const dim = neutral.map((luma, i) => {
    const [x, y] = [i % SIZE, Math.floor(i / SIZE)];
    const isWhite = luma > 150 && Math.abs(x - AXIS - IRIS.x) < 20 && Math.abs(y - EYE_Y) < 6;
    return isWhite ? (x >= gleam && x < gleam + 3 ? 255 : 140) : luma;
  });
  const gleaming = new native.FaceAsset(syntheticAsset({ neutral: dim }));
  const { picture } = new Canvas(gleaming).show({}, 1, poseOf({ gazeX: -1, gazeY: 0 }));
  const bared = picture[EYE_Y * SIZE + Math.round(AXIS + IRIS.x + 0.8 * IRIS.radius)]!;
  expect(bared).toBeGreaterThan(DARK);
  expect(bared).toBeLessThan(185);
});

test('the upper lid follows an iris down and up, by nearly its way', () => {
  // The first row from the brow down that shows the eyeball, at the middle of an iris.
  const lidOf = (picture: Uint8Array): number => {
    const column = Math.round(AXIS - IRIS.x);
    for (let row = EYE_Y - 14; ; row++) {
      const [above, here] = [picture[(row - 1) * SIZE + column]!, picture[row * SIZE + column]!];
      if (here < DARK) {
        return row - (DARK - here) / (above - here);
      }
    }
  };
  const rest = lidOf(looking(0, 0).picture);
  const down = lidOf(looking(0, 1).picture) - rest;
  const up = lidOf(looking(0, -1).picture) - rest;
  expect(down).toBeGreaterThan(1);
  expect(up).toBeLessThan(-1);
});

test('heavy lids lower calm eyes, and do not close eyes that are narrow', () => {
  /** Share of the eyeballs' pixels that still is seen when the face is calm. */
  const seen = (squint: number): number => {
    const { landmarks, neutral } = syntheticParts();
    const isOpen = (row: number): boolean => Math.abs(row - EYE_Y) < squint * 8;
    const narrowed = neutral.map((luma, i) => {
      const row = Math.floor(i / SIZE);
      return i < SIZE * SIZE && Math.abs(row - EYE_Y) < 10 && !isOpen(row) ? SKIN : luma;
    });
    for (const index of EYELIDS) {
      landmarks[index * 3 + 1] = EYE_Y + squint * (landmarks[index * 3 + 1]! - EYE_Y);
    }
    const canvas = new Canvas(
      new native.FaceAsset(syntheticAsset({ landmarks, neutral: narrowed })),
    );
    const dark = (): number => irisOf(canvas.show({}).picture, 1).area;
    const before = dark();
    canvas.renderer.setEmotion(EMOTIONS.indexOf('calm'), 1);
    for (let frame = 0; frame < 60; frame++) {
      canvas.show({});
    }
    return dark() / before;
  };
  const [wide, narrow] = [seen(1), seen(0.45)];
  expect(wide).toBeLessThan(0.85);
  expect(narrow).toBeGreaterThan(0.8);
});

test('eyes without an iris that can be told from the white do not move', () => {
  const parts = syntheticParts();
  const plain = parts.neutral.map((luma, i) => (i < SIZE * SIZE ? Math.max(luma, 195) : luma));
  const still = new native.FaceAsset(syntheticAsset({ neutral: plain }));
  const { picture } = new Canvas(still).show({}, 1, poseOf({ gazeX: 1, gazeY: 1 }));
  assertSamePicture(picture, plain);
});

test('an iris that touches a corner in the portrait stays there: no white is known beside it', () => {
  const { neutral } = syntheticParts();
  const aside = 12;
  const glancing = neutral.slice();
  for (let i = 0; i < SIZE * SIZE; i++) {
    const [x, y] = [(i % SIZE) - AXIS, Math.floor(i / SIZE) - EYE_Y];
    const fromCorner = (Math.abs(x) - 28) / 40;
    if (fromCorner > 0 && fromCorner < 1 && Math.abs(y) < 7.5 * Math.sin(Math.PI * fromCorner)) {
      // Both irises look to the right.
      const outside = Math.hypot(x - Math.sign(x) * IRIS.x - aside, y) - IRIS.radius;
      glancing[i] = IRIS.luma + 160 * Math.min(1, Math.max(0, outside + 0.5));
    }
  }
  const face = new native.FaceAsset(syntheticAsset({ neutral: glancing }));
  const at = (gazeX: number): number =>
    irisOf(new Canvas(face).show({}, 1, poseOf({ gazeX, gazeY: 0 })).picture, 1).x;
  expect(at(0)).toBeGreaterThan(0.6 * aside);
  expect(Math.abs(at(-1) - at(0))).toBeLessThan(1);
  expect(Math.abs(at(1) - at(0))).toBeLessThan(1);
});

test('what a closing lid leaves of the white is in its shade', () => {
  /** The light of the white that is seen last, beside the iris. */
  const light = (blink: number): number => {
    const pose = poseOf({ blinkLeft: blink, blinkRight: blink });
    const { picture } = new Canvas(asset).show({}, 1, pose);
    const column = Math.round(AXIS + IRIS.x - IRIS.radius - 4);
    let most = 0;
    for (let row = EYE_Y + 3; row < EYE_Y + 6; row++) {
      most = Math.max(most, picture[row * SIZE + column]!);
    }
    return most;
  };
  const [open, third, narrow] = [light(0), light(0.3), light(0.65)];
  assert.ok(third > 0.9 * open, `${third} of ${open} when a third is shut`);
  assert.ok(narrow < 0.85 * open, `${narrow} of ${open} when two thirds are`);
});

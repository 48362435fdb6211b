// A head that turns as far as it may: the picture is stretched, and is nowhere torn or folded. And
// shoulders that rise with the breath, before a background that stays.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { native } from '../../../src/native/addon.ts';
import { BREATH_CELL, LANDMARK_COUNT } from '../../../src/media/face-asset.ts';
import { POSE_INDEX } from '../../../src/media/articulation.ts';
import { FaceMotion } from '../../../src/pipeline/render/motion/face-motion.ts';
import { VISEMES } from '../../../src/pipeline/render/visemes.ts';
import {
  AXIS,
  Canvas,
  poseOf,
  SIZE,
  syntheticAsset,
  syntheticParts,
  assertSamePicture,
} from './synthetic-face.ts';

/** Grey levels between two neighbouring pixels of the ramp at rest. */
const SLOPE = 0.45;
/** Pixels over which a fold is seen. */
const SPAN = 8;
/** A face's limit, radians. An angle beyond it is eased down to it. */
const LIMIT = 0.1;
const TURN = 3 * LIMIT;

/** A picture that brightens evenly to the right, or downwards: its steps are the warp's. */
function ramp(isDown: boolean): Canvas {
  const { neutral, limits } = syntheticParts();
  for (let i = 0; i < SIZE * SIZE; i++) {
    neutral[i] = 10 + Math.round(SLOPE * (isDown ? Math.floor(i / SIZE) : i % SIZE));
  }
  return new Canvas(
    new native.FaceAsset(
      syntheticAsset({
        neutral,
        landmarks: solid(),
        limits: { ...limits, yaw: LIMIT, pitch: LIMIT, roll: LIMIT },
      }),
    ),
  );
}

/**
 * Landmarks with depth: on half an ellipsoid, evenly spread where the synthetic face has no place
 * for them.
 */
function solid(): Float32Array {
  const { landmarks } = syntheticParts();
  const middle = { x: AXIS, y: 270 };
  const radius = { x: 115, y: 170, z: 80 };
  for (let i = 0; i < LANDMARK_COUNT; i++) {
    let [x, y] = [landmarks[3 * i]! - middle.x, landmarks[3 * i + 1]! - middle.y];
    if (x === 0 && y === 0) {
      const [r, turn] = [Math.sqrt(i / LANDMARK_COUNT), i * 2.4];
      [x, y] = [radius.x * r * Math.cos(turn), radius.y * r * Math.sin(turn)];
    }
    const depth = Math.sqrt(Math.max(0, 1 - (x / radius.x) ** 2 - (y / radius.y) ** 2));
    landmarks.set([middle.x + x, middle.y + y, -radius.z * depth], 3 * i);
  }
  return landmarks;
}

for (const isDown of [false, true]) {
  test(`turned by 0.1 rad the face is not torn ${isDown ? 'up and down' : 'sideways'}`, () => {
    const canvas = ramp(isDown);
    const beside = isDown ? SIZE : 1;
    for (const yaw of [-TURN, 0, TURN]) {
      for (const pitch of [-TURN, 0, TURN]) {
        for (const roll of [-TURN, 0, TURN]) {
          const pose = poseOf({ yaw, pitch, roll, shiftX: 6, shiftY: -6 });
          const { picture } = canvas.show(VISEMES.rest, 1, pose);
          let [least, most, rise] = [0, 0, 0];
          for (let i = 0; i < SIZE * (SIZE - SPAN); i++) {
            if (!isDown && i % SIZE >= SIZE - SPAN) {
              continue;
            }
            const step = picture[i + beside]! - picture[i]!;
            const span = picture[i + SPAN * beside]! - picture[i]!;
            most = Math.max(most, step);
            least = Math.min(least, span);
            rise = Math.max(rise, span);
          }
          // Three at once are seven times the slope: a tear. A fold brightens backwards.
          assert.ok(
            most <= 2 && least >= 0 && rise <= 2 * SPAN * SLOPE,
            `${[yaw, pitch, roll].join(' ')}: steps to ${most}, spans from ${least} to ${rise}`,
          );
        }
      }
    }
  });
}

test('a head that the upper edge cuts off moves sideways as a whole, and not out of the picture', () => {
  const [SHIFT, MIDDLE] = [4, Math.floor(AXIS)];
  const { matte } = syntheticParts();
  for (let i = 0; i < 265 * SIZE; i++) {
    matte[i] = matte[265 * SIZE + (i % SIZE)]!; // what is beside the eyes, up to the edge
  }
  for (const isDown of [false, true]) {
    const { neutral } = syntheticParts();
    for (let i = 0; i < SIZE * SIZE; i++) {
      neutral[i] = 10 + Math.round(SLOPE * (isDown ? Math.floor(i / SIZE) : i % SIZE));
    }
    const canvas = new Canvas(new native.FaceAsset(syntheticAsset({ neutral, matte })));
    const pose = poseOf(isDown ? { shiftY: -SHIFT } : { shiftX: SHIFT });
    const { picture } = canvas.show(VISEMES.rest, 1, pose);
    const from = (y: number): number => (isDown ? y * SIZE + MIDDLE : y * SIZE + MIDDLE - SHIFT);
    for (const y of [0, 1, 100]) {
      const expected = neutral[isDown && y === 100 ? from(y + SHIFT) : from(y)]!;
      const found = picture[y * SIZE + MIDDLE]!;
      assert.ok(Math.abs(found - expected) <= 1, `row ${y}: ${found} for ${expected}`);
    }
  }
});

/** Shoulders below this row, of this half width; beside them is background. */
const SHOULDER_Y = 440;
const SHOULDER_HALF = 180;
const CELLS = SIZE / BREATH_CELL;

/** Soft shoulders, on a picture that brightens downwards. */
function breathing(): { canvas: Canvas; shoulders: Uint8Array; matte: Uint8Array } {
  const shoulders = Uint8Array.from({ length: CELLS * CELLS }, (_, i) => {
    const [x, y] = [(i % CELLS) * BREATH_CELL, Math.floor(i / CELLS) * BREATH_CELL];
    const inside = Math.min(SHOULDER_HALF - Math.abs(x - SIZE / 2), y - SHOULDER_Y);
    return Math.min(255, Math.max(0, inside * 12));
  });
  const { neutral, matte, limits } = syntheticParts();
  for (let i = 0; i < SIZE * SIZE; i++) {
    neutral[i] = 10 + Math.round(SLOPE * Math.floor(i / SIZE));
  }
  const bytes = syntheticAsset({ neutral, matte, limits, shoulders });
  return { canvas: new Canvas(new native.FaceAsset(bytes)), shoulders, matte };
}

test('the shoulders breathe by about a pixel, and nothing beside them moves', () => {
  const { canvas, shoulders, matte } = breathing();
  const rest = canvas.show(VISEMES.rest).picture.slice();
  const motion = new FaceMotion(1);
  const mean = (): number => {
    let [sum, count] = [0, 0];
    for (let y = 480; y < 500; y++) {
      for (let x = 200; x < 312; x++) {
        sum += canvas.picture[y * SIZE + x]!;
        count++;
      }
    }
    return sum / count;
  };
  let [low, high] = [Infinity, -Infinity];
  for (let frame = 0; frame < 150; frame++) {
    const breath = motion.step(frame, false, 0)[POSE_INDEX.breath]!;
    canvas.show(VISEMES.rest, 1, poseOf({ breath, shiftX: 4, yaw: 0.03 }));
    const rows = mean() / SLOPE;
    [low, high] = [Math.min(low, rows), Math.max(high, rows)];
    for (let i = 0; i < SIZE * SIZE; i++) {
      const cell =
        Math.floor(i / SIZE / BREATH_CELL) * CELLS + Math.floor((i % SIZE) / BREATH_CELL);
      if (canvas.picture[i] !== rest[i] && matte[i] === 0 && shoulders[cell] === 0) {
        assert.fail(`frame ${frame} moved the background at ${i % SIZE},${Math.floor(i / SIZE)}`);
      }
    }
  }
  assert.ok(high - low > 0.6 && high - low < 1.2, `the shoulders move by ${high - low} px`);
  assertSamePicture(canvas.show(VISEMES.rest).picture, rest, 'rest is exact');
});

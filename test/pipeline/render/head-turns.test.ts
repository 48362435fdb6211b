// A head that turns as far as it may: the picture is stretched, and is nowhere torn or folded.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { native } from '../../../src/native/addon.ts';
import { VISEMES } from '../../../src/pipeline/render/visemes.ts';
import { Canvas, poseOf, SIZE, syntheticAsset, syntheticParts } from './synthetic-face.ts';

/** Grey levels between two neighbouring pixels of the ramp at rest. */
const SLOPE = 0.45;
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
      syntheticAsset({ neutral, limits: { ...limits, yaw: LIMIT, pitch: LIMIT, roll: LIMIT } }),
    ),
  );
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
          let [least, most] = [0, 0];
          for (let i = 0; i < SIZE * (SIZE - 1); i++) {
            if (!isDown && i % SIZE === SIZE - 1) {
              continue;
            }
            const step = picture[i + beside]! - picture[i]!;
            least = Math.min(least, step);
            most = Math.max(most, step);
          }
          // One back is rounding, more is a fold. Three at once are seven times the slope: a tear.
          assert.ok(
            least >= -1 && most <= 2,
            `${[yaw, pitch, roll].join(' ')}: steps from ${least} to ${most}`,
          );
        }
      }
    }
  });
}

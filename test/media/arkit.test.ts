// The mapping to ARKit's blend shapes: names, bounds, and the shapes that each articulator moves.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import * as fc from 'fast-check';
import {
  ARKIT_BLEND_SHAPES,
  ARKIT_INDEX,
  ARKIT_SIZE,
  toArkit,
  type ArkitBlendShape,
} from '../../src/media/arkit.ts';
import {
  ARTICULATION_SIZE,
  ARTICULATOR_INDEX,
  POSE_INDEX,
  POSE_SIZE,
  type Articulator,
} from '../../src/media/articulation.ts';

function shapesOf(
  articulators: Partial<Record<Articulator, number>>,
  pose?: Float32Array,
): (name: ArkitBlendShape) => number {
  const articulation = new Float32Array(ARTICULATION_SIZE);
  for (const [name, value] of Object.entries(articulators)) {
    articulation[ARTICULATOR_INDEX[name as Articulator]] = value;
  }
  const out = new Float32Array(ARKIT_SIZE).fill(9);
  toArkit(articulation, pose, out);
  return (name) => out[ARKIT_INDEX[name]]!;
}

test('there are 52 distinct names, and left and right come in pairs', () => {
  assert.equal(ARKIT_SIZE, 52);
  assert.equal(new Set(ARKIT_BLEND_SHAPES).size, 52);
  for (const name of ARKIT_BLEND_SHAPES) {
    if (name.endsWith('Left') && name !== 'jawLeft') {
      assert.ok(
        (ARKIT_BLEND_SHAPES as readonly string[]).includes(name.replace(/Left$/, 'Right')),
        name,
      );
    }
  }
});

test('rest is all zeros, whatever was in the output before', () => {
  const shape = shapesOf({});
  for (const name of ARKIT_BLEND_SHAPES) {
    assert.equal(shape(name), 0, name);
  }
});

test('each sound moves its own shapes', () => {
  assert.ok(shapesOf({ jaw: 1, open: 1 })('jawOpen') > 0.6);
  assert.ok(shapesOf({ round: 1 })('mouthPucker') > 0.6);
  assert.ok(shapesOf({ wide: 1 })('mouthStretchLeft') > 0.3);
  assert.ok(shapesOf({ tuck: 1 })('mouthRollLower') > 0.7);
  assert.ok(shapesOf({ tout: 1 })('tongueOut') > 0.3);
  assert.ok(shapesOf({ brow: 1 })('browInnerUp') > 0.4);
});

test('pressed lips close over an open jaw, and never by more than the jaw is open', () => {
  const shape = shapesOf({ press: 1, jaw: 0.5 });
  assert.equal(shape('mouthClose'), shape('jawOpen'));
  assert.equal(shapesOf({ press: 1 })('mouthClose'), 0);
});

test("the viewer's left eye is the face's right one, and gaze moves both eyes the same way", () => {
  const pose = new Float32Array(POSE_SIZE);
  pose[POSE_INDEX.blinkLeft] = 1;
  pose[POSE_INDEX.gazeX] = 1;
  const shape = shapesOf({}, pose);
  assert.equal(shape('eyeBlinkRight'), 1);
  assert.equal(shape('eyeBlinkLeft'), 0);
  assert.ok(shape('eyeLookOutLeft') > 0 && shape('eyeLookInRight') > 0);
  assert.equal(shape('eyeLookInLeft'), 0);
});

test('weights stay within 0 and 1, and speech moves both sides alike', () => {
  const unit = fc.float({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(unit, { minLength: ARTICULATION_SIZE, maxLength: ARTICULATION_SIZE }),
      (values) => {
        const out = new Float32Array(ARKIT_SIZE);
        toArkit(Float32Array.from(values), undefined, out);
        for (const name of ARKIT_BLEND_SHAPES) {
          const value = out[ARKIT_INDEX[name]]!;
          assert.ok(value >= 0 && value <= 1, name);
          const twin = name.replace(/Left$/, 'Right') as ArkitBlendShape;
          if (!name.startsWith('jaw')) {
            assert.equal(value, out[ARKIT_INDEX[twin]], name);
          }
        }
      },
    ),
  );
});

test('wrong sizes are refused', () => {
  assert.throws(
    () => toArkit(new Float32Array(3), undefined, new Float32Array(ARKIT_SIZE)),
    RangeError,
  );
  assert.throws(
    () =>
      toArkit(
        new Float32Array(ARTICULATION_SIZE),
        new Float32Array(2),
        new Float32Array(ARKIT_SIZE),
      ),
    RangeError,
  );
});

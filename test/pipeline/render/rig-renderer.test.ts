// The rig renderer: the gate of the mouth, and what is drawn of a face that does not speak.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ARTICULATION_SIZE } from '../../../src/media/articulation.ts';
import { native } from '../../../src/native/addon.ts';
import { stretchRange } from '../../../src/pipeline/render/articulation-range.ts';
import { RigRenderer } from '../../../src/pipeline/render/rig-renderer.ts';
import { articulationOf, VISEMES } from '../../../src/pipeline/render/visemes.ts';
import { SIZE, syntheticAsset, assertSamePicture } from './synthetic-face.ts';

const asset = new native.FaceAsset(syntheticAsset());
const rig = (): RigRenderer => new RigRenderer(asset, { seed: 9, emotion: 0, startFrame: 0 });

test('noise of the model in silence does not move the mouth', () => {
  const [quiet, murmuring] = [rig(), rig()];
  const murmur = articulationOf({ ...VISEMES.eh, speech: 0.15 }, 1);
  for (let frame = 0; frame < 30; frame++) {
    quiet.draw(frame, new Float32Array(ARTICULATION_SIZE), false);
    murmuring.draw(frame, murmur, false);
    assertSamePicture(murmuring.picture, quiet.picture);
  }
});

test('speech opens the mouth at once, and silence closes it', () => {
  const [silent, speaking] = [rig(), rig()];
  const vowel = articulationOf({ ...VISEMES.aa, speech: 1 });
  const silence = new Float32Array(ARTICULATION_SIZE);
  const opening = (): number => {
    let area = 0;
    for (const v of speaking.picture.subarray(SIZE * SIZE * 1.25)) {
      if (v > 180) {
        area++;
      }
    }
    return area;
  };
  speaking.draw(0, vowel, false);
  speaking.draw(1, vowel, false);
  assert.ok(opening() > 100, `open after two frames (${opening()})`);
  for (let frame = 2; frame < 8; frame++) {
    speaking.draw(frame, silence, false);
  }
  assert.equal(opening(), 0);
  for (let frame = 0; frame < 26; frame++) {
    silent.draw(frame, silence, false);
  }
  for (let frame = 8; frame < 26; frame++) {
    speaking.draw(frame, silence, false);
  }
  const difference =
    speaking.picture.reduce((sum, value, i) => sum + Math.abs(value - silent.picture[i]!), 0) /
    silent.picture.length;
  assert.ok(difference < 0.15, `as if nothing had been said: ${difference}`);
});

test('hold marks nothing as changed', () => {
  const held = rig();
  held.draw(0, new Float32Array(ARTICULATION_SIZE), false);
  held.hold();
  assert.ok(held.dirty.every((d) => d === 0));
});

test('a silent face moves in nearly every frame, and little of it is drawn again', () => {
  const idle = rig();
  let [same, blocks] = [0, 0];
  for (let frame = 0; frame < 600; frame++) {
    idle.draw(frame, new Float32Array(ARTICULATION_SIZE), false);
    const drawn = idle.dirty.reduce((sum, block) => sum + block, 0);
    same += drawn === 0 ? 1 : 0;
    blocks += drawn;
  }
  assert.ok(same < 0.3 * 600, `${same} of 600 frames show nothing new`);
  const share = blocks / 600 / idle.dirty.length;
  assert.ok(share > 0.01 && share < 0.25, `${share} of the picture a frame`);
});

test('the upper face of one who speaks is hardly ever the same in two frames', () => {
  const speaking = rig();
  const upper = speaking.dirty.length / 2;
  let same = 0;
  for (let frame = 0; frame < 600; frame++) {
    const loud = Math.max(0, Math.sin(frame / 2)) * 0.4;
    speaking.draw(frame, articulationOf({ jaw: loud, nod: loud, speech: 1 }), true);
    const drawn = speaking.dirty.subarray(0, upper).reduce((sum, block) => sum + block, 0);
    same += drawn < 0.05 * upper ? 1 : 0;
  }
  assert.ok(same <= 0.12 * 600, `${same} of 600 frames are the same`);
});

test('between two frames the mouth moves, and nothing else does', () => {
  const renderer = rig();
  const silence = new Float32Array(ARTICULATION_SIZE);
  for (let frame = 0; frame <= 20; frame++) {
    renderer.draw(frame, silence, false);
  }
  renderer.draw(20.25, silence, false);
  assert.ok(
    renderer.dirty.every((d) => d === 0),
    'a silent face stands still',
  );
  renderer.draw(20.5, articulationOf({ ...VISEMES.aa, speech: 1 }), true);
  assert.ok(renderer.dirty.some((d) => d !== 0));
});

test('the state of a conversation changes what is drawn, by the same renderer', () => {
  const [plain, thinking] = [rig(), rig()];
  const rest = new Float32Array(ARTICULATION_SIZE);
  thinking.setConversation('thinking');
  let differs = 0;
  for (let frame = 0; frame < 15; frame++) {
    plain.draw(frame, rest, false);
    thinking.draw(frame, rest, false);
    differs += Buffer.compare(plain.picture, thinking.picture) === 0 ? 0 : 1;
  }
  assert.ok(differs > 10, `${differs} of 15 pictures`);
});

test('the skin of the chin follows the jaw; the lips do not wait for it', () => {
  const still = { seed: 9, emotion: 0, motion: 'none', startFrame: 0 } as const;
  const [speaking, silent] = [new RigRenderer(asset, still), new RigRenderer(asset, still)];
  const vowel = articulationOf({ ...VISEMES.aa, speech: 1 });
  const silence = new Float32Array(ARTICULATION_SIZE);
  /** How much of rows of the picture differs from the silent face's. */
  const moved = (from: number, to: number): number => {
    let sum = 0;
    for (let i = from * SIZE; i < to * SIZE; i++) {
      sum += Math.abs(speaking.picture[i]! - silent.picture[i]!);
    }
    return sum;
  };
  const draw = (frame: number, articulation: Float32Array): { lips: number; chin: number } => {
    speaking.draw(frame, articulation, true);
    silent.draw(frame, silence, true);
    return { lips: moved(300, 335), chin: moved(372, 395) };
  };
  const opened = Array.from({ length: 40 }, (_, frame) => draw(frame, vowel));
  const [second, last] = [opened[1]!, opened.at(-1)!];
  assert.ok(second.lips > 0.75 * last.lips, `lips ${second.lips} of ${last.lips}`);
  assert.ok(second.chin < 0.9 * last.chin, `chin ${second.chin} of ${last.chin}`);
  const shut = Array.from({ length: 60 }, (_, n) => draw(40 + n, silence));
  assert.ok(shut[6]!.lips < 0.2 * last.lips, `lips ${shut[6]!.lips}`);
  // A block of a breathing face may be drawn a tenth of a pixel late.
  const rest = shut.at(-1)!;
  assert.ok(rest.lips < 0.05 * last.lips && rest.chin < 0.05 * last.chin, JSON.stringify(rest));
});

test.each(['aa', 'oo', 'f', 'ee'] as const)('in speech "%s" has the range of a face', (viseme) => {
  const shape = articulationOf({ ...VISEMES[viseme], speech: 1 });
  const { picture, pose, dirty, motion } = spoken(shape);
  /** Mean difference to the picture of `shape` as it is. */
  const apart = (): number => {
    const other = new Uint8Array(picture.length);
    const [marks, vectors] = [dirty.slice(), motion.slice()];
    new native.FaceRenderer(asset).render(shape, pose, other, marks, vectors, false);
    return picture.reduce((sum, value, i) => sum + Math.abs(value - other[i]!), 0) / picture.length;
  };
  const given = apart();
  stretchRange(shape);
  const stretched = apart();
  assert.ok(stretched < 0.6 * given, `${stretched}, and ${given} with what the model gave`);
});

/** A renderer that has drawn an articulation until nothing changes. */
function spoken(said: Float32Array): RigRenderer {
  const renderer = new RigRenderer(asset, {
    seed: 9,
    emotion: 0,
    motion: 'none',
    startFrame: 0,
  });
  for (let frame = 0; frame < 60; frame++) {
    renderer.draw(frame, said, true);
  }
  return renderer;
}

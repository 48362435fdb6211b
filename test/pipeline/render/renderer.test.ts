// Properties of the renderer's pictures, measured from their pixels. Those of the mouth:
// renderer-mouth.test.ts.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ARTICULATION_SIZE, EMOTIONS, POSE_SIZE } from '../../../src/media/articulation.ts';
import { native } from '../../../src/native/addon.ts';
import {
  articulationOf,
  SENTENCE_MS,
  sentenceAt,
  VISEMES,
} from '../../../src/pipeline/render/visemes.ts';
import {
  AXIS,
  Canvas,
  poseOf,
  SIZE,
  syntheticAsset,
  syntheticParts,
  assertSamePicture,
} from './synthetic-face.ts';

const parts = syntheticParts();
const bytes = syntheticAsset();
const asset = new native.FaceAsset(bytes);
const PIXELS = SIZE * SIZE;

/** A random number generator with a fixed seed (xorshift32). */
function randoms(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

function randomFrame(random: () => number): [Float32Array, Float32Array] {
  const articulation = Float32Array.from({ length: ARTICULATION_SIZE }, () =>
    random() < 0.4 ? 0 : random(),
  );
  const pose = poseOf({
    blinkLeft: random() < 0.6 ? 0 : random(),
    blinkRight: random() < 0.6 ? 0 : random(),
    gazeX: random() * 2 - 1,
    gazeY: random() * 2 - 1,
    yaw: 0.12 * random() - 0.06,
    pitch: 0.1 * random() - 0.05,
    roll: 0.1 * random() - 0.05,
    shiftX: 12 * random() - 6,
    shiftY: 12 * random() - 6,
    breath: random(),
    brow: random(),
  });
  return [articulation, pose];
}

const meanDifference = (a: Uint8Array, b: Uint8Array, from = 0, to = a.length): number => {
  let sum = 0;
  for (let i = from; i < to; i++) {
    sum += Math.abs(a[i]! - b[i]!);
  }
  return sum / (to - from);
};

describe('rest', () => {
  test('is the neutral picture, bit for bit, at first and after moving', () => {
    const canvas = new Canvas(asset).show({});
    assertSamePicture(canvas.picture, parts.neutral);
    assert.ok(
      canvas.dirty.every((d) => d === 1),
      'the first frame is new everywhere',
    );
    canvas.show(
      VISEMES.aa,
      1,
      poseOf({ yaw: 0.05, blinkLeft: 0.7, blinkRight: 1, gazeX: 1, shiftY: 3, brow: 1 }),
    );
    assert.notDeepEqual(canvas.picture, parts.neutral);
    canvas.show({});
    assertSamePicture(canvas.picture, parts.neutral);
  });

  test('unchanged input draws nothing', () => {
    const canvas = new Canvas(asset).show(VISEMES.aa);
    const before = canvas.picture.slice();
    canvas.show(VISEMES.aa);
    assert.ok(canvas.dirty.every((d) => d === 0));
    assertSamePicture(canvas.picture, before);
  });

  test('speech and nod channels move nothing by themselves', () => {
    const canvas = new Canvas(asset).show({ speech: 1, nod: 1 });
    assertSamePicture(canvas.picture, parts.neutral);
  });
});

test('raised brows do not draw the eyes open', () => {
  const { picture } = new Canvas(asset).show({}, 1, poseOf({ brow: 1 }));
  let [brow, eye] = [0, 0];
  for (let x = Math.round(AXIS + 36); x < AXIS + 60; x++) {
    for (let y = 185; y < 200; y++) {
      brow = Math.max(brow, Math.abs(picture[y * SIZE + x]! - parts.neutral[y * SIZE + x]!));
    }
    for (let y = 213; y < 228; y++) {
      eye = Math.max(eye, Math.abs(picture[y * SIZE + x]! - parts.neutral[y * SIZE + x]!));
    }
  }
  assert.ok(brow > 15 && eye <= 2, `brow ${brow}, eye ${eye}`);
});

test('a face that allows less of its brows moves them less', () => {
  const limited = new native.FaceAsset(syntheticAsset({ limits: { ...parts.limits, brow: 0.25 } }));
  assert.deepEqual(
    new Canvas(limited).show({}, 1, poseOf({ brow: 0.8 })).picture,
    new Canvas(asset).show({}, 1, poseOf({ brow: 0.2 })).picture,
  );
});

describe('every frame', () => {
  test('leaves the background as it is, and marks all that it changes', () => {
    const random = randoms(7);
    const canvas = new Canvas(asset);
    let before = canvas.show({}).picture.slice();
    for (let frame = 0; frame < 60; frame++) {
      canvas.draw(...randomFrame(random));
      for (let i = 0; i < PIXELS; i++) {
        const [x, y] = [i % SIZE, Math.floor(i / SIZE)];
        if (parts.matte[i] === 0 && canvas.picture[i] !== parts.neutral[i]) {
          assert.fail(`frame ${frame} moved the background at ${x},${y}`);
        }
        if (
          canvas.picture[i] !== before[i] &&
          canvas.dirty[(y >> 4) * (SIZE / 16) + (x >> 4)] !== 1
        ) {
          assert.fail(`frame ${frame} changed ${x},${y} without saying so`);
        }
      }
      for (let i = 0; i < PIXELS / 2; i++) {
        const at = i % (PIXELS / 4);
        const [x, y] = [at % (SIZE / 2), Math.floor(at / (SIZE / 2))];
        if (
          canvas.picture[PIXELS + i] !== before[PIXELS + i] &&
          canvas.dirty[(y >> 3) * (SIZE / 16) + (x >> 3)] !== 1
        ) {
          assert.fail(`frame ${frame} changed chroma ${x},${y} without saying so`);
        }
      }
      before = canvas.picture.slice();
    }
  });

  test('depends on its input alone, but for an invisible tenth of a pixel', () => {
    const random = randoms(11);
    const old = new Canvas(asset);
    for (let frame = 0; frame < 40; frame++) {
      const input = randomFrame(random);
      old.draw(...input);
      if (frame % 4 !== 3) {
        continue;
      }
      const difference = meanDifference(old.picture, new Canvas(asset).draw(...input).picture);
      assert.ok(difference < 0.15, `frame ${frame}: ${difference}`);
    }
  });

  test('draws a slow head block by block, each when it could be seen to have moved', () => {
    const canvas = new Canvas(asset).show({});
    const at = (shift: number): Uint8Array =>
      new Canvas(asset).show({}, 1, poseOf({ shiftX: shift })).picture;
    const blocksOf = ({ dirty }: Canvas): number => dirty.reduce((sum, block) => sum + block, 0);
    const seen = meanDifference(at(1), at(1.5));
    let blocks = 0;
    for (let frame = 1; frame <= 60; frame++) {
      const shift = frame * 0.05;
      canvas.show({}, 1, poseOf({ shiftX: shift }));
      blocks += blocksOf(canvas);
      assert.ok(meanDifference(canvas.picture, at(shift)) < seen, `frame ${frame} lags`);
    }
    const all = blocksOf(new Canvas(asset).show({}).show({}, 1, poseOf({ shiftX: 9 })));
    assert.ok(blocks > 60 && blocks < 0.25 * 60 * all, `${blocks} blocks of ${60 * all}`);
    assertSamePicture(canvas.show({}).picture, parts.neutral, 'rest is exact');
  });

  test('of a moving mouth in a still head leaves most of the picture and the eyes unchanged', () => {
    const canvas = new Canvas(asset);
    const pose = poseOf({ yaw: 0.02, gazeX: 0.7, gazeY: 0.2 });
    canvas.show({}, 1, pose);
    const eyes = (): boolean =>
      canvas.dirty.subarray((12 * SIZE) / 16, (15 * SIZE) / 16).some((d) => d === 1);
    let most = 0;
    for (const shape of Object.values(VISEMES)) {
      canvas.show(shape, 1, pose);
      most = Math.max(most, canvas.dirty.reduce((sum, d) => sum + d, 0) / canvas.dirty.length);
      assert.equal(eyes(), false);
    }
    assert.ok(most > 0.02 && most < 0.3, `${most} of the picture`);
    canvas.show({}, 1, poseOf({ yaw: 0.02, gazeX: -0.7, gazeY: 0.2 }));
    assert.equal(eyes(), true);
  });

  test('draws everything again after invalidate', () => {
    const canvas = new Canvas(asset).show(VISEMES.aa, 1, poseOf({ yaw: 0.03 }));
    const expected = canvas.picture.slice();
    canvas.picture.fill(0);
    canvas.renderer.invalidate();
    canvas.show(VISEMES.aa, 1, poseOf({ yaw: 0.03 }));
    assertSamePicture(canvas.picture, expected);
    assert.ok(canvas.dirty.every((d) => d === 1));
  });

  test("takes invalid numbers as rest and keeps angles within the face's limits", () => {
    const canvas = new Canvas(asset).draw(
      new Float32Array(ARTICULATION_SIZE).fill(Number.NaN),
      new Float32Array(POSE_SIZE).fill(Number.NaN),
    );
    assertSamePicture(canvas.picture, parts.neutral);
    canvas.draw(
      new Float32Array(ARTICULATION_SIZE).fill(Number.POSITIVE_INFINITY),
      new Float32Array(POSE_SIZE).fill(Number.NEGATIVE_INFINITY),
    );
    assert.deepEqual(
      new Canvas(asset).show({}, 1, poseOf({ yaw: 3 })).picture,
      new Canvas(asset).show({}, 1, poseOf({ yaw: 0.6 })).picture,
    );
  });

  test('of a symmetric face with symmetric input is symmetric', () => {
    for (const shape of [VISEMES.aa, VISEMES.oo, VISEMES.f, VISEMES.m, VISEMES.s]) {
      const { picture } = new Canvas(asset).show(
        shape,
        1,
        poseOf({ blinkLeft: 0.5, blinkRight: 0.5, brow: 1, shiftY: 2 }),
      );
      let sum = 0;
      let worst = 0;
      for (let y = 0; y < SIZE; y++) {
        for (let x = 0; x < SIZE / 2; x++) {
          const difference = Math.abs(picture[y * SIZE + x]! - picture[y * SIZE + 2 * AXIS - x]!);
          sum += difference;
          worst = Math.max(worst, difference);
        }
      }
      // Weights of 1/64 pixel and one-sided rounding leave small differences.
      assert.ok(
        sum / (PIXELS / 2) < 0.25 && worst <= 24,
        `${JSON.stringify(shape)}: mean ${sum / (PIXELS / 2)}, worst ${worst}`,
      );
    }
  });
});

describe('motion', () => {
  test('keeps fine texture sharp between pixels', () => {
    const random = randoms(3);
    const neutral = parts.neutral.map((value, i) =>
      i < PIXELS ? value / 2 + 64 * random() : value,
    );
    const hairy = new native.FaceAsset(syntheticAsset({ neutral }));
    const detail = (shift: number): number => {
      const { picture } = new Canvas(hairy).show({}, 1, poseOf({ shiftX: shift, shiftY: shift }));
      let sum = 0;
      for (let y = 200; y < 260; y++) {
        for (let x = 200; x < 300; x++) {
          sum += Math.abs(
            picture[y * SIZE + x]! * 2 - picture[y * SIZE + x - 1]! - picture[y * SIZE + x + 1]!,
          );
        }
      }
      return sum;
    };
    const still = detail(0);
    // White noise is the hardest case: half-way between pixels, plain bilinear sampling leaves 0.29
    // of its second differences.
    for (const shift of [0.25, 0.5, 0.75, 1]) {
      assert.ok(
        detail(shift) > 0.48 * still && detail(shift) < 1.2 * still,
        `shift ${shift}: ${detail(shift) / still}`,
      );
    }
  });

  test('of a sentence never jumps: steps ten times smaller make changes ten times smaller', () => {
    const mouth = [SIZE * 280, SIZE * 400] as const;
    const largest = (stepMs: number): number => {
      const canvas = new Canvas(asset);
      let before = canvas.draw(sentenceAt(0)).picture.slice();
      let most = 0;
      for (let ms = stepMs; ms < SENTENCE_MS; ms += stepMs) {
        canvas.draw(
          sentenceAt(ms),
          poseOf({
            yaw: 0.03 * Math.sin(ms / 300),
            blinkLeft: Math.max(0, Math.sin(ms / 200)),
            blinkRight: Math.max(0, Math.sin(ms / 200)),
          }),
        );
        most = Math.max(most, meanDifference(canvas.picture, before, ...mouth));
        before = canvas.picture.slice();
      }
      return most;
    };
    const [frame, tenth] = [largest(1000 / 30), largest(100 / 30)];
    assert.ok(frame < 14, `a frame's step changes ${frame} on average`);
    assert.ok(
      tenth < 0.2 * frame,
      `a tenth of a frame's step changes ${tenth}, a whole one ${frame}`,
    );
  });

  test('blinks cover the eye and leave the rest of the face', () => {
    const open = new Canvas(asset).show({}).picture;
    const shut = new Canvas(asset).show({}, 1, poseOf({ blinkLeft: 1, blinkRight: 1 })).picture;
    const rows = (y0: number, y1: number): number =>
      meanDifference(open, shut, SIZE * y0, SIZE * y1);
    assert.ok(rows(208, 232) > 1);
    assert.equal(rows(0, 190), 0);
    assert.equal(rows(250, SIZE), 0);
    const left = new Canvas(asset).show({}, 1, poseOf({ blinkLeft: 1 })).picture;
    for (let y = 200; y < 240; y++) {
      assert.deepEqual(
        left.subarray(y * SIZE + SIZE / 2, (y + 1) * SIZE),
        open.subarray(y * SIZE + SIZE / 2, (y + 1) * SIZE),
        'the right eye stays open',
      );
    }
  });

  test('emotions ease in over about ten frames, rest still, and go away', () => {
    const canvas = new Canvas(asset).show({});
    const silence = articulationOf({});
    for (const [index, emotion] of EMOTIONS.entries()) {
      if (index === 0) {
        continue;
      }
      canvas.renderer.setEmotion(index, 1);
      let before = canvas.picture.slice();
      const steps: number[] = [];
      for (let frame = 0; frame < 60; frame++) {
        canvas.draw(silence);
        steps.push(meanDifference(canvas.picture, before));
        before = canvas.picture.slice();
      }
      const total = meanDifference(canvas.picture, parts.neutral);
      assert.ok(total > 0.05, `${emotion} shows (${total})`);
      assert.ok(Math.max(...steps) < 0.6 * total + 0.05, `${emotion} comes gradually`);
      assert.equal(steps.at(-1), 0, `${emotion} comes to rest`);
      canvas.renderer.setEmotion(0, 1);
      for (let frame = 0; frame < 60; frame++) {
        canvas.draw(silence);
      }
      assertSamePicture(canvas.picture, parts.neutral, `${emotion} goes`);
    }
  });
});

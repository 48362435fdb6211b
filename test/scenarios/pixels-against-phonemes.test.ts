// End to end without a network: a sentence of a voice the model was never trained on, through the
// real stages, judged by the pixels of the mouth against the times of the phonemes. Shuffled speech
// must score clearly worse, or the measure means nothing. With a head that is still, and with one
// that moves: there the mouth is compared with a closed one in the same pose.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, test } from 'vitest';
import {
  ARTICULATION_SIZE,
  ARTICULATOR_INDEX,
  type Motion,
  POSE_INDEX,
} from '../../src/media/articulation.ts';
import { decodeFaceAsset } from '../../src/media/face-asset.ts';
import { i420Bytes, macroblocks } from '../../src/media/picture.ts';
import { FRAME_MS, SPEECH_RATE, speechSamplesInStep } from '../../src/media/timeline.ts';
import { type FaceRenderer, native } from '../../src/native/addon.ts';
import { SpeechModel } from '../../src/pipeline/inference/speech-model.ts';
import { FaceMotion } from '../../src/pipeline/render/motion/face-motion.ts';
import { type Speech, closures, synthesize } from '../harness/speech.ts';

const SENTENCES = [
  'Bob and Pam made a map of the big moon.',
  'My papa may bring purple bubbles to the amber pool.',
  'Open the window, please, before mama comes back home.',
];
/** Lower inner lip and upper inner lip, and the mouth's corners, of the FaceMesh topology. */
const [UPPER, LOWER, LEFT, RIGHT] = [13, 14, 78, 308];

let model: SpeechModel;
const faceBytes = readFileSync(path.join(import.meta.dirname, '../../models/build/faces/ava.face'));
const { landmarks, width } = decodeFaceAsset(faceBytes);
const point = (index: number): { x: number; y: number } => ({
  x: landmarks[index * 3]!,
  y: landmarks[index * 3 + 1]!,
});

beforeAll(async () => {
  model = await SpeechModel.load();
});

/** Depth of the lips, by which they move as the head turns, pixels. */
const LIP_DEPTH = 35;

/**
 * Pixels of the mouth's middle that are not what a closed mouth shows in the same pose: grows with
 * the opening, whatever the teeth do.
 */
function aperture(picture: Uint8Array, closed: Uint8Array, pose: Float32Array): number {
  const mouthWidth = point(RIGHT).x - point(LEFT).x;
  const middle =
    (point(UPPER).x + point(LOWER).x) / 2 +
    pose[POSE_INDEX.shiftX]! +
    LIP_DEPTH * pose[POSE_INDEX.yaw]!;
  const line =
    (point(UPPER).y + point(LOWER).y) / 2 +
    pose[POSE_INDEX.shiftY]! +
    LIP_DEPTH * pose[POSE_INDEX.pitch]!;
  let changed = 0;
  for (let y = Math.round(line - 0.12 * mouthWidth); y < line + 0.45 * mouthWidth; y++) {
    for (let x = Math.round(middle - 0.15 * mouthWidth); x < middle + 0.15 * mouthWidth; x++) {
      if (Math.abs(picture[y * width + x]! - closed[y * width + x]!) > 28) {
        changed++;
      }
    }
  }
  return changed;
}

interface Drawn {
  readonly renderer: FaceRenderer;
  readonly picture: Uint8Array;
}

/** The aperture of every frame of the sentence; frame n shows the middle of its interval. */
async function mouthOf(speech: Speech, motion: Motion): Promise<number[]> {
  const mel = new native.MelFrontEnd();
  const slot = model.createState();
  const asset = new native.FaceAsset(faceBytes);
  const [speaking, closed] = [0, 1].map(() => ({
    renderer: new native.FaceRenderer(asset),
    picture: new Uint8Array(i420Bytes(width, width)),
  })) as [Drawn, Drawn];
  const dirty = new Uint8Array(macroblocks(width, width));
  const face = new FaceMotion(1, motion);
  const mouth = new Float32Array(ARTICULATION_SIZE);
  const rest = new Float32Array(ARTICULATION_SIZE);
  const frames = Math.ceil(((speech.pcm.length / SPEECH_RATE) * 1000) / FRAME_MS);
  // Step k describes (k + 1) frames minus the look-ahead: with this much silence in front, that is
  // the middle of frame k - 2.
  const padding = Math.round(((2.5 * FRAME_MS - model.lookaheadMs) * SPEECH_RATE) / 1000);
  const padded = new Int16Array(speech.pcm.length + padding + SPEECH_RATE);
  padded.set(speech.pcm, padding);
  const apertures: number[] = [];
  let at = 0;
  for (let step = 0; step < frames + 2; step++) {
    const count = speechSamplesInStep(step);
    mel.step(padded.subarray(at, at + count), count, slot.mel, 0);
    at += count;
    await model.run([slot]);
    if (step < 2) {
      continue;
    }
    const gate = Math.min(
      1,
      Math.max(0, (slot.articulation[ARTICULATOR_INDEX.speech]! - 0.2) / 0.3),
    );
    for (let i = 0; i < ARTICULATION_SIZE; i++) {
      mouth[i] = slot.articulation[i]! * gate;
    }
    const pose = face.step(step - 2, true, mouth[ARTICULATOR_INDEX.nod]!);
    speaking.renderer.render(mouth, pose, speaking.picture, dirty);
    closed.renderer.render(rest, pose, closed.picture, dirty);
    apertures.push(aperture(speaking.picture, closed.picture, pose));
  }
  return apertures;
}

const VOWELS = /^(aa|ae|ah|ao|aw|ax|ay|eh|er|ey|ih|iy|ow|oy|uh|uw)/;
/** How open the phoneme at each frame should be, roughly. */
const expected = (speech: Speech, frames: number): number[] =>
  Array.from({ length: frames }, (_, n) => {
    const ms = (n + 0.5) * FRAME_MS;
    const phone =
      speech.segments.find(({ startMs, endMs }) => ms >= startMs && ms < endMs)?.phone ?? 'pau';
    return /^(p|b|m|pau|h#)$/.test(phone) ? 0 : VOWELS.test(phone) ? 1 : 0.4;
  });

function correlation(a: readonly number[], b: readonly number[]): number {
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanA, meanB] = [mean(a), mean(b)];
  let [ab, aa, bb] = [0, 0, 0];
  a.forEach((value, i) => {
    const [x, y] = [value - meanA, b[i]! - meanB];
    ab += x * y;
    aa += x * x;
    bb += y * y;
  });
  return ab / Math.sqrt(aa * bb);
}

const shifted = (values: readonly number[], frames: number): number[] =>
  values.map((_, i) => values[Math.min(values.length - 1, Math.max(0, i + frames))]!);

test.for(['none', 'natural'] as const)(
  'motion %s: closures show within a frame of p, b and m; lips and phonemes are in step; ' +
    'shuffled speech is not',
  async (motion) => {
    const own = { seen: 0, all: 0 };
    const vowels = { seen: 0, all: 0 };
    const offsets: number[] = [];
    const matched: number[] = [];
    const mismatched: number[] = [];
    const runs = [];
    for (const text of SENTENCES) {
      const speech = await synthesize(text, 'awb');
      runs.push({ speech, apertures: await mouthOf(speech, motion) });
    }
    for (const [index, { speech, apertures }] of runs.entries()) {
      const open = apertures.toSorted((a, b) => a - b)[Math.floor(apertures.length * 0.9)]!;
      assert.ok(open > 100, `the mouth opens: ${open} pixels`);
      const stranger = runs[(index + 1) % runs.length]!.speech;
      const isShut = (frame: number): boolean => (apertures[frame] ?? 0) < 0.2 * open;
      for (const { startMs, endMs } of closures(speech)) {
        if (endMs > apertures.length * FRAME_MS) {
          continue;
        }
        const [first, last] = [
          Math.floor(startMs / FRAME_MS) - 1,
          Math.floor(endMs / FRAME_MS) + 1,
        ];
        own.all++;
        if (Array.from({ length: last - first + 1 }, (_, i) => first + i).some(isShut)) {
          own.seen++;
        }
      }
      // A mouth that were shut all the time would pass the test above: in the middle of a long
      // vowel it must not be.
      for (const { phone, startMs, endMs } of speech.segments) {
        if (!VOWELS.test(phone) || endMs - startMs < 90) {
          continue;
        }
        vowels.all++;
        if (isShut(Math.floor((startMs + endMs) / 2 / FRAME_MS))) {
          vowels.seen++;
        }
      }
      const wanted = expected(speech, apertures.length);
      const scores = [-4, -3, -2, -1, 0, 1, 2, 3, 4].map((shift) => ({
        shift,
        r: correlation(shifted(apertures, shift), wanted),
      }));
      offsets.push(scores.reduce((best, score) => (score.r > best.r ? score : best)).shift);
      matched.push(correlation(apertures, wanted));
      mismatched.push(
        correlation(apertures, expected(stranger, apertures.length)),
        correlation(apertures, wanted.toReversed()),
      );
    }
    const mean = (values: readonly number[]): number =>
      values.reduce((sum, value) => sum + value, 0) / values.length;
    console.log(
      `closures visible ${own.seen} of ${own.all}, shut in long vowels ${vowels.seen} ` +
        `of ${vowels.all}; best offsets ${offsets.join(' ')} frames; ` +
        `r ${mean(matched).toFixed(2)} matched, ${mean(mismatched).toFixed(2)} shuffled`,
    );
    assert.ok(
      own.all - own.seen <= 1,
      `closures visible within a frame: ${own.seen} of ${own.all}`,
    );
    assert.ok(
      vowels.seen / vowels.all <= 0.25,
      `shut in the middle of long vowels: ${vowels.seen} of ${vowels.all}`,
    );
    for (const offset of offsets) {
      assert.ok(Math.abs(offset) <= 1, `lips against phonemes: ${offset} frames`);
    }
    assert.ok(
      mean(matched) > mean(mismatched) + 0.25,
      `matched ${mean(matched)}, shuffled ${mean(mismatched)}`,
    );
  },
);

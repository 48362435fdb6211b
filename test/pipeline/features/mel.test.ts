// The log-mel front end through the addon: its values, its causality, and its level normaliser.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  FEATURES_PER_FRAME,
  MEL_BANDS,
  SPEECH_RATE,
  speechSampleOfFrame,
  speechSamplesInStep,
} from '../../../src/media/timeline.ts';
import { native } from '../../../src/native/addon.ts';

const STEP = FEATURES_PER_FRAME * MEL_BANDS;

/** Features of a whole recording, [steps * 120]. */
function features(pcm: Int16Array, frontEnd = new native.MelFrontEnd()): Float32Array {
  const steps = Math.floor((pcm.length * 30) / SPEECH_RATE);
  const out = new Float32Array(steps * STEP);
  for (let k = 0; k < steps; k++) {
    frontEnd.step(pcm.subarray(speechSampleOfFrame(k)), speechSamplesInStep(k), out, k * STEP);
  }
  return out;
}

const tone = (hz: number, amplitude: number, seconds = 1): Int16Array =>
  Int16Array.from({ length: seconds * SPEECH_RATE }, (_, i) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * hz * i) / SPEECH_RATE)),
  );

/**
 * Four syllables a second: amplitude-modulated harmonics with a quiet hiss, so that every band has
 * energy.
 */
function babble(amplitude: number, seconds: number): Int16Array {
  let seed = 1;
  return Int16Array.from({ length: seconds * SPEECH_RATE }, (_, i) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const t = i / SPEECH_RATE;
    let sum = (seed / 2 ** 32 - 0.5) * 0.2;
    for (let h = 1; h < 30; h++) {
      sum += Math.sin(2 * Math.PI * 130 * h * t + h * h) / h;
    }
    return Math.round((amplitude * sum * (0.5 + 0.5 * Math.sin(2 * Math.PI * 4 * t))) / 3);
  });
}

test('digital silence is exactly zero', () => {
  assert.ok(features(new Int16Array(SPEECH_RATE)).every((value) => value === 0));
});

test('a tone peaks in its band; the windows end after 1/3, 2/3 and all of the step', () => {
  const out = features(tone(1000, 8000));
  const frame = out.subarray(10 * STEP, 10 * STEP + MEL_BANDS);
  // 42 points evenly spaced on the mel scale from 60 to 7600 Hz: 1000 Hz is in band 13, since
  // mel(1000) = 1000 and the points are 93.6 + 66.8 per band.
  assert.equal(frame.indexOf(Math.max(...frame)), 13);

  const click = new Int16Array(SPEECH_RATE);
  // In the second third of step 9.
  click.fill(12000, speechSampleOfFrame(9) + 200, speechSampleOfFrame(9) + 210);
  const heard = features(click);
  const energy = (step: number, j: number): number =>
    heard
      .subarray(step * STEP + j * MEL_BANDS, step * STEP + (j + 1) * MEL_BANDS)
      .reduce((a, b) => a + b, 0);
  assert.equal(energy(9, 0), 0, 'not yet heard');
  assert.ok(energy(9, 1) > 0, 'in the first window that contains it');
  assert.equal(energy(10, 1), 0, 'forgotten 25 ms later');
});

test('later samples do not change earlier features', () => {
  const a = babble(9000, 2);
  const b = a.slice();
  b.fill(0, SPEECH_RATE);
  const steps = 29 * STEP;
  assert.deepEqual(features(a).subarray(0, steps), features(b).subarray(0, steps));
});

test('a voice 10 or 20 dB softer gives nearly the same features once the level has settled', () => {
  const from = 6 * 30 * STEP;
  const [loud, ordinary, soft] = [20_000, 6300, 2000].map((amplitude) =>
    features(babble(amplitude, 8)).subarray(from),
  );
  const distance = (x: Float32Array): number =>
    Math.sqrt(x.reduce((sum, value, i) => sum + (value - loud![i]!) ** 2, 0) / x.length);
  const scale = Math.sqrt(loud!.reduce((sum, value) => sum + value * value, 0) / loud!.length);
  assert.ok(
    distance(ordinary!) < 0.03 * scale,
    `10 dB softer differs by ${distance(ordinary!)} of ${scale}`,
  );
  assert.ok(
    distance(soft!) < 0.06 * scale,
    `20 dB softer differs by ${distance(soft!)} of ${scale}`,
  );
});

test('a voice at -39 dBFS has the features of a loud one after half a second', () => {
  const [loud, soft] = [20_000, 2000].map((amplitude) =>
    features(babble(amplitude, 3)).subarray(15 * STEP),
  );
  const square = (x: Float32Array): number => x.reduce((sum, value) => sum + value * value, 0);
  const apart = Math.sqrt(square(loud!.map((value, i) => value - soft![i]!)) / square(loud!));
  assert.ok(apart < 0.05, `differs by ${apart}`);
});

test('features are those of the training: after a change here the model must be trained again', () => {
  let seed = 7;
  const pcm = Int16Array.from({ length: SPEECH_RATE }, (_, i) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32 - 0.5) * 4000 * (1 + (Math.floor(i / 2000) % 3)));
  });
  const out = features(pcm);
  // From models/training/frontend.py: [step, third, values of bands 0 7 13 22 39].
  const trained: [number, number, number[]][] = [
    [
      0,
      0,
      [
        1.3009004592895508, 1.7533130645751953, 1.5028767585754395, 1.9212394952774048,
        2.1302623748779297,
      ],
    ],
    [
      0,
      2,
      [
        1.4864757061004639, 1.8261091709136963, 1.7329940795898438, 1.8323196172714233,
        2.208561420440674,
      ],
    ],
    [
      11,
      1,
      [
        1.2826725244522095, 1.293510913848877, 1.7841663360595703, 1.7265113592147827,
        1.9218205213546753,
      ],
    ],
    [
      29,
      2,
      [
        1.442330241203308, 1.4492627382278442, 1.63979971408844, 1.8129132986068726,
        2.0468358993530273,
      ],
    ],
  ];
  for (const [step, third, expected] of trained) {
    const got = [0, 7, 13, 22, 39].map((band) => out[step * STEP + third * MEL_BANDS + band]!);
    for (const [i, value] of expected.entries()) {
      assert.ok(Math.abs(got[i]! - value) < 1e-5, `step ${step}, third ${third}: ${got.join(' ')}`);
    }
  }
});

test('after reset a used front end gives what a new one gives', () => {
  const used = new native.MelFrontEnd();
  features(babble(20_000, 1), used);
  used.reset();
  assert.deepEqual(features(babble(500, 1), used), features(babble(500, 1)));
});

test('wrong arguments are refused', () => {
  const frontEnd = new native.MelFrontEnd();
  assert.throws(
    () => frontEnd.step(new Int16Array(100), 533, new Float32Array(STEP), 0),
    RangeError,
  );
  assert.throws(
    () => frontEnd.step(new Int16Array(1000), 900, new Float32Array(STEP), 0),
    RangeError,
  );
  assert.throws(
    () => frontEnd.step(new Int16Array(534), 534, new Float32Array(STEP - 1), 0),
    RangeError,
  );
  assert.throws(
    () => frontEnd.step(new Int16Array(534), 534, new Float32Array(STEP), 1),
    RangeError,
  );
  assert.throws(
    () =>
      frontEnd.step(new Float32Array(534) as unknown as Int16Array, 534, new Float32Array(STEP), 0),
    TypeError,
  );
});

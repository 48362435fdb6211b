// Idle motion: deterministic, bounded, smooth, with blinks and gazes like a person's. And the rig
// renderer's gate of the mouth.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ARTICULATION_SIZE, POSE_CHANNELS, POSE_INDEX } from '../../../src/media/articulation.ts';
import { native } from '../../../src/native/addon.ts';
import { RigRenderer } from '../../../src/pipeline/render/rig-renderer.ts';
import { IdleMotion } from '../../../src/pipeline/render/idle-motion.ts';
import { articulationOf, VISEMES } from '../../../src/pipeline/render/visemes.ts';
import { SIZE, syntheticAsset } from './synthetic-face.ts';

const MINUTES = 10;
const FRAMES = MINUTES * 60 * 30;
/** Speech during ten of every twenty seconds. */
const isSpeaking = (frame: number): boolean => frame % 600 >= 300;

function record(seed: number): Float32Array[] {
  const motion = new IdleMotion(seed);
  return Array.from({ length: FRAMES }, (_, frame) =>
    motion.step(frame, isSpeaking(frame), isSpeaking(frame) && frame % 40 < 6 ? 1 : 0).slice(),
  );
}

test('the same seed gives the same motion, another seed another', () => {
  const [a, b, c] = [record(1), record(1), record(2)];
  assert.deepEqual(a, b);
  assert.notDeepEqual(a, c);
});

test('stays within the range of every channel and never jumps', () => {
  const poses = record(3);
  const bound: Record<string, number> = {
    yaw: 0.05,
    pitch: 0.06,
    roll: 0.03,
    shiftX: 4,
    shiftY: 3,
  };
  const step: Record<string, number> = {
    yaw: 0.004,
    pitch: 0.009,
    roll: 0.004,
    shiftX: 0.2,
    shiftY: 0.2,
    breath: 0.08,
    blinkLeft: 0.8,
    blinkRight: 0.8,
    gazeX: 0.8,
    gazeY: 0.5,
    brow: 0.2,
  };
  for (const [k, name] of POSE_CHANNELS.entries()) {
    let most = 0;
    let jump = 0;
    for (const [frame, pose] of poses.entries()) {
      most = Math.max(most, Math.abs(pose[k]!));
      if (frame > 0) {
        jump = Math.max(jump, Math.abs(pose[k]! - poses[frame - 1]![k]!));
      }
    }
    assert.ok(most <= (bound[name] ?? 1), `${name} reaches ${most}`);
    assert.ok(jump <= step[name]!, `${name} jumps by ${jump}`);
  }
});

test('blinks as often and as long as people do', () => {
  for (const seed of [1, 2, 3]) {
    const lengths: number[] = [];
    let run = 0;
    for (const pose of record(seed)) {
      if (pose[POSE_INDEX.blinkLeft]! > 0.05) {
        run++;
      } else if (run > 0) {
        lengths.push(run);
        run = 0;
      }
    }
    const perMinute = lengths.length / MINUTES;
    assert.ok(perMinute > 10 && perMinute < 35, `${perMinute} blinks a minute`);
    const mean = lengths.reduce((sum, n) => sum + n, 0) / lengths.length / 30;
    assert.ok(mean > 0.12 && mean < 0.26, `${mean} s a blink`);
    assert.ok(Math.max(...lengths) < 15, 'no eye stays shut');
  }
});

test('skipped frames do not leave the eyes shut', () => {
  const motion = new IdleMotion(5);
  let shut = 0;
  for (let frame = 0; frame < 20_000; frame += 1 + ((frame * 7919) % 23)) {
    shut += motion.step(frame, false, 0)[POSE_INDEX.blinkLeft]! > 0.5 ? 1 : 0;
  }
  assert.ok(shut < 250, `${shut} frames shut`);
});

const asset = new native.FaceAsset(syntheticAsset());
const rig = (): RigRenderer => new RigRenderer(asset, { seed: 9, emotion: 0, startFrame: 0 });

test('noise of the model in silence does not move the mouth', () => {
  const [quiet, murmuring] = [rig(), rig()];
  const murmur = articulationOf({ ...VISEMES.eh, speech: 0.15 }, 1);
  for (let frame = 0; frame < 30; frame++) {
    quiet.draw(frame, new Float32Array(ARTICULATION_SIZE), false);
    murmuring.draw(frame, murmur, false);
    assert.deepEqual(murmuring.picture, quiet.picture);
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

test('most frames of a silent face change nothing', () => {
  const idle = rig();
  let quiet = 0;
  for (let frame = 0; frame < 600; frame++) {
    idle.draw(frame, new Float32Array(ARTICULATION_SIZE), false);
    if (idle.dirty.every((d) => d === 0)) {
      quiet++;
    }
  }
  assert.ok(quiet > 360 && quiet < 560, `${quiet} of 600`);
});

test('gazes at the viewer most of the time, and a saccade takes a few frames', () => {
  const motion = new IdleMotion(7);
  const count = 3000;
  let [atViewer, resting, saccades, length] = [0, 0, 0, 0];
  let [lastX, lastY] = [0, 0];
  for (let frame = 0; frame < count; frame++) {
    const pose = motion.step(frame, false, 0);
    const [x, y] = [pose[POSE_INDEX.gazeX]!, pose[POSE_INDEX.gazeY]!];
    const isResting = x === lastX && y === lastY;
    if (isResting) {
      resting++;
      atViewer += x === 0 && y === 0 ? 1 : 0;
      saccades += length > 0 ? 1 : 0;
      length = 0;
    } else {
      length++;
      assert.ok(length <= 6, 'the gaze arrives, and exactly');
    }
    assert.ok(Math.abs(x) <= 0.55 && Math.abs(y) <= 0.3);
    [lastX, lastY] = [x, y];
  }
  assert.ok(saccades > 20, `${saccades} saccades in 100 s`);
  assert.ok(resting > 0.85 * count, `at rest in ${resting} of ${count} frames`);
  assert.ok(atViewer > 0.45 * resting && atViewer < 0.8 * resting, `${atViewer} of ${resting}`);
});

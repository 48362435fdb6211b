// Articulation of a session between the model and the renderer: closing, and the release of lips.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ARTICULATION_SIZE, ARTICULATOR_INDEX } from '../../../src/media/articulation.ts';
import { ArticulationTrack } from '../../../src/pipeline/features/articulation-track.ts';

/** What a track shows of these values of `press`, one a frame. */
function pressed(values: readonly number[]): number[] {
  const track = new ArticulationTrack();
  return values.map((press) => {
    const model = new Float32Array(ARTICULATION_SIZE);
    model[ARTICULATOR_INDEX.press] = press;
    track.update(model);
    return track.values[ARTICULATOR_INDEX.press]!;
  });
}

test('lips that were pressed part in the frame in which the model begins to part them', () => {
  const [shut, parted, shutAgain] = pressed([1, 0.5, 1]);
  assert.equal(shut, 1);
  assert.ok(parted! <= 0.25, `still ${parted} pressed`);
  assert.equal(shutAgain, 1);
});

test('a closure begins and lasts as the model says', () => {
  const model = [0, 0.5, 0.75, 1, 1];
  assert.deepEqual(pressed(model), model);
});

test('a release never turns negative, and one that ends in rest leaves nothing behind', () => {
  assert.ok(pressed([1, 0.125, 0]).every((press) => press >= 0));
  const track = new ArticulationTrack();
  track.update(new Float32Array(ARTICULATION_SIZE).fill(1));
  track.update(undefined);
  track.update(undefined);
  const model = new Float32Array(ARTICULATION_SIZE).fill(0.5);
  track.update(model);
  assert.deepEqual(track.values, model);
});

test('an interruption closes the mouth within two frames until speech begins anew', () => {
  const track = new ArticulationTrack();
  const open = new Float32Array(ARTICULATION_SIZE).fill(0.75);
  track.update(open);
  track.close();
  track.update(open);
  track.update(open);
  assert.ok(track.values.every((value) => value === 0));
  track.reopen();
  track.update(open);
  assert.deepEqual(track.values, open);
});

// When a session counts as idle: neither the face nor the person of a conversation speaks.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { SpeechState } from '../../src/worker/speech-state.ts';

const SPEECH = { isActive: true, inaudibleMs: 0, gapMs: 0 };
const SILENCE = { isActive: false, inaudibleMs: 0, gapMs: 0 };

test('the idle time counts from the last speech of the face', () => {
  const state = new SpeechState(0);
  assert.equal(state.idleMs(1000), 1000);
  assert.equal(state.update(SPEECH, 1000), 'speak');
  state.update(SPEECH, 1500);
  assert.equal(state.update(SILENCE, 1600), 'silent');
  assert.equal(state.idleMs(1700), 200);
});

test('a person who speaks, and a reply that is awaited, are no idle time', () => {
  const state = new SpeechState(0);
  state.conversation = 'hearing';
  assert.equal(state.idleMs(60_000), 0);
  state.conversation = 'thinking';
  assert.equal(state.idleMs(70_000), 0);
  state.conversation = 'listening';
  assert.equal(state.idleMs(75_000), 5000, 'it counts from then');
});

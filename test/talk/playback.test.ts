// What a listener heard of a reply, with the ring of a media worker and no library.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  SpeechRingReader,
  SpeechRingWriter,
  createSpeechRing,
} from '../../src/link/speech-ring.ts';
import { Playback } from '../../src/talk/playback.ts';
import { newClause } from '../../src/talk/spoken-text.ts';

test('a reply is cut where it was paused, whatever of its sound came later', () => {
  const memory = createSpeechRing();
  const reader = new SpeechRingReader(memory);
  const finished: string[] = [];
  const playback = new Playback(new SpeechRingWriter(memory), {
    onStarted: () => {},
    onSpoken: () => {},
    onFinished: (_seconds, _isInterrupted, text) => {
      finished.push(text);
    },
  });
  const clause = newClause('It is a fine day in the mountains.');
  const second = new Int16Array(16_000);
  clause.samples = second.length;
  playback.write(second, clause, 0);
  reader.read(new Int16Array(16_000), 0, 16_000);
  reader.setHeard(0);
  playback.pause(1000);
  const told = playback.heardText;
  assert.ok(told.length > 0 && told.length < clause.text.length, told);
  // Then the voice is done: the clause is shorter than its letters promised.
  playback.write(new Int16Array(1600), clause, 1001);
  clause.samples += 1600;
  clause.isComplete = true;
  playback.resume(1002);
  playback.clear(1003);
  assert.deepEqual(finished, [told]);
});

import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  createSpeechRing,
  SpeechRingReader,
  SpeechRingWriter,
} from '../../../src/link/speech-ring.ts';
import { SessionSpeech } from '../../../src/pipeline/speech/speech-source.ts';

const LEVEL = 16_000;
/** 30 ms, some of it beyond any fade. */
const PIECE = 480;

/** A session whose client has sent a second of a constant level. */
function speaking(): { speech: SessionSpeech; read: (count?: number) => Int16Array } {
  const ring = createSpeechRing();
  const speech = new SessionSpeech(new SpeechRingReader(ring));
  new SpeechRingWriter(ring).write(new Int16Array(16_000).fill(LEVEL), 0, 0, 16_000);
  const read = (count = PIECE): Int16Array => {
    const out = new Int16Array(count);
    assert.equal(speech.read(out, 0, count), Math.min(count, 16_000));
    return out;
  };
  return { speech, read };
}

const steps = (pcm: Int16Array): number[] =>
  [...pcm].map((value, i) => Math.abs(value - (pcm[i - 1] ?? value)));

test('speech that is muted within a word fades out, and in again', () => {
  const { speech, read } = speaking();
  assert.ok(read().every((value) => value === LEVEL));
  speech.isMuted = true;
  const out = read();
  speech.isMuted = false;
  const back = read();
  for (const [pcm, last] of [
    [out, 0],
    [back, LEVEL],
  ] as const) {
    assert.ok(Math.max(...steps(pcm)) < 0.02 * LEVEL, 'a click');
    assert.ok(
      pcm.subarray(80).every((value) => value === last),
      'the fade is longer than 5 ms',
    );
  }
  assert.ok(Math.abs(out[0]! - LEVEL) < 0.02 * LEVEL && back[0]! < 0.02 * LEVEL);
});

test('speech that begins while the face is muted is silent from its first sample', () => {
  const { speech, read } = speaking();
  speech.isMuted = true;
  assert.ok(read().every((value) => value === 0));
  // The mute ends in the pause after the speech: the next utterance is heard from its first sample.
  const short = new Int16Array(20_000);
  assert.equal(speech.read(short, 0, 20_000), 16_000 - PIECE);
  speech.isMuted = false;
  speech.pushMicrophone(new Int16Array(PIECE).fill(LEVEL), PIECE, 0);
  assert.ok(read().every((value) => value === LEVEL));
});

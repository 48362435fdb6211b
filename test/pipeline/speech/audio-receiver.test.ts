// The peer's microphone: packets out of order, lost, doubled and broken, as they come off a
// network.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { SpeechRingReader, createSpeechRing } from '../../../src/link/speech-ring.ts';
import { native } from '../../../src/native/addon.ts';
import { AudioReceiver } from '../../../src/pipeline/speech/audio-receiver.ts';
import { SessionSpeech } from '../../../src/pipeline/speech/speech-source.ts';

const PACKET = 320;

/** Packets of 20 ms; packet `n` is a tone whose loudness grows with `n`. */
function packets(count: number): Uint8Array[] {
  const encoder = new native.OpusEncoder({ sampleRate: 16_000, channels: 1, bitrate: 32_000 });
  const out = new Uint8Array(1500);
  return Array.from({ length: count }, (_, n) => {
    const pcm = Int16Array.from({ length: PACKET }, (_unused, i) =>
      Math.round((n + 1) * 1000 * Math.sin((n * PACKET + i) * 0.2)),
    );
    return out.slice(0, encoder.encode(pcm, out));
  });
}

function receiver(): { speech: SessionSpeech; take: (packet: Uint8Array, n: number) => void } {
  const speech = new SessionSpeech(new SpeechRingReader(createSpeechRing()));
  const audio = new AudioReceiver(speech);
  return {
    speech,
    take: (packet, n) => {
      audio.receive(packet, n & 0xffff, 0);
    },
  };
}

/** All samples that have come out. */
function read(speech: SessionSpeech): Int16Array {
  const pcm = new Int16Array(speech.available);
  speech.read(pcm, 0, pcm.length);
  return pcm;
}

test('packets out of order give the same samples, over the wrap of the numbers too', () => {
  const sent = packets(8);
  const [inOrder, mixed] = [receiver(), receiver()];
  const first = 0xfffc;
  for (let n = 0; n < 8; n++) {
    inOrder.take(sent[n]!, first + n);
  }
  for (const n of [0, 2, 1, 4, 3, 5, 7, 6]) {
    mixed.take(sent[n]!, first + n);
  }
  const expected = read(inOrder.speech);
  assert.equal(expected.length, 8 * PACKET);
  assert.deepEqual(read(mixed.speech), expected);
  assert.equal(mixed.speech.input, 'track');
});

test('a lost packet is concealed after three later ones, a doubled one ignored', () => {
  const sent = packets(6);
  const { speech, take } = receiver();
  take(sent[0]!, 0);
  take(sent[0]!, 0);
  take(sent[2]!, 2);
  take(sent[3]!, 3);
  assert.equal(speech.available, PACKET, 'packet 1 may still come');
  take(sent[4]!, 4);
  assert.equal(speech.available, 5 * PACKET, 'one concealed, three decoded');
  take(sent[1]!, 1);
  assert.equal(speech.available, 5 * PACKET, 'too late');
});

test('five lost packets at most are concealed, and none after a new start', () => {
  const sent = packets(4);
  const { speech, take } = receiver();
  take(sent[0]!, 0);
  take(sent[1]!, 21);
  take(sent[2]!, 22);
  take(sent[3]!, 23);
  assert.equal(speech.available, (1 + 5 + 3) * PACKET);
  const restarted = receiver();
  restarted.take(sent[0]!, 0);
  restarted.take(sent[1]!, 1000);
  assert.equal(restarted.speech.available, 2 * PACKET);
});

test('a packet that is not Opus is left out, and the next one is decoded', () => {
  const sent = packets(2);
  const { speech, take } = receiver();
  take(sent[0]!, 0);
  take(new Uint8Array(0), 1);
  take(Uint8Array.of(0xff, 0xff, 0xff), 2);
  take(sent[1]!, 3);
  assert.equal(speech.available, 2 * PACKET);
});

test('one second is kept, the oldest goes first', () => {
  const sent = packets(1);
  const { speech, take } = receiver();
  for (let n = 0; n < 60; n++) {
    take(sent[0]!, n);
  }
  assert.equal(speech.available, 16_000);
});

import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  SPEECH_RING_SAMPLES,
  SpeechRingReader,
  SpeechRingWriter,
  createSpeechRing,
} from '../../src/link/speech-ring.ts';

test('what is written is read, across the wrap of the ring', () => {
  const memory = createSpeechRing();
  const writer = new SpeechRingWriter(memory);
  const reader = new SpeechRingReader(memory);
  const out = new Int16Array(70_000);
  let sent = 0;
  let received = 0;
  while (sent < SPEECH_RING_SAMPLES * 2.5) {
    const chunk = Int16Array.from({ length: 63_000 }, (_, i) => (sent + i) % 30_000);
    sent += writer.write(chunk, 1);
    const count = reader.read(out, 5, 63_000);
    for (let i = 0; i < count; i++) {
      assert.equal(out[5 + i], (received + i) % 30_000);
    }
    received += count;
  }
  assert.equal(sent, received);
});

test('a full ring takes what fits and no more', () => {
  const writer = new SpeechRingWriter(createSpeechRing());
  assert.equal(writer.write(new Int16Array(SPEECH_RING_SAMPLES - 10), 0), SPEECH_RING_SAMPLES - 10);
  assert.equal(writer.write(new Int16Array(100), 0), 10);
  assert.equal(writer.write(new Int16Array(100), 0), 0);
});

test('speech after a flush has an arrival time of its own, though the ring is not empty yet', () => {
  const memory = createSpeechRing();
  const writer = new SpeechRingWriter(memory);
  const reader = new SpeechRingReader(memory);
  writer.write(new Int16Array(500), 100);
  writer.write(new Int16Array(500), 120);
  assert.equal(reader.arrivalMs, 100);
  writer.flush(200);
  writer.write(new Int16Array(500), 200);
  writer.write(new Int16Array(500), 220);
  assert.equal(reader.arrivalMs, 200);
});

test('a flush drops what was written before it, and nothing after it', () => {
  const memory = createSpeechRing();
  const writer = new SpeechRingWriter(memory);
  const reader = new SpeechRingReader(memory);
  writer.write(new Int16Array(500).fill(1), 0);
  writer.flush(42);
  writer.write(new Int16Array(300).fill(2), 0);
  assert.equal(reader.takeFlush(), true);
  assert.equal(reader.flushMs, 42);
  assert.equal(reader.length, 300);
  const out = new Int16Array(300);
  assert.equal(reader.read(out, 0, 400), 300);
  assert.ok(out.every((value) => value === 2));
  assert.equal(reader.takeFlush(), false);
});

test('the reader sees done and the arrival time', () => {
  const memory = createSpeechRing();
  const writer = new SpeechRingWriter(memory);
  const reader = new SpeechRingReader(memory);
  writer.write(new Int16Array(10), 123.5);
  writer.write(new Int16Array(10), 200);
  assert.equal(reader.arrivalMs, 123.5);
  assert.equal(reader.isDone, false);
  writer.done();
  assert.equal(reader.isDone, true);
});

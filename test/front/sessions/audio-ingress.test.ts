// Waiting speech: kept in order in blocks, bounded for one session and for all, and decoded no
// faster than needed.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { MAX_BACKLOG_SECONDS } from '../../../src/front/sessions/audio-ingress.ts';
import { PcmIngress } from '../../../src/front/sessions/pcm-ingress.ts';
import { BlockPool, ByteQueue } from '../../../src/front/sessions/byte-queue.ts';
import {
  OpusIngress,
  samplesInPacket,
  sharedDecoding,
} from '../../../src/front/sessions/opus-ingress.ts';
import { SPEECH_RING_SAMPLES, SpeechRingReader } from '../../../src/link/speech-ring.ts';
import { native } from '../../../src/native/addon.ts';
import { isWithin } from '../../harness/machine.ts';
import { tonePackets } from '../../harness/opus-packets.ts';

const BLOCK = 65_536;

test('bytes leave the queue as they entered, in pieces of any size, and every block is returned', () => {
  const pool = new BlockPool(64 * BLOCK);
  const queue = new ByteQueue(pool);
  const out = new Uint8Array(100_000);
  let [written, read] = [0, 0];
  for (let round = 0; round < 400; round++) {
    const piece = Uint8Array.from(
      { length: [1, 2, 7, 640, 6000, 70_000][round % 6]! },
      (_byte, i) => (written + i) % 251,
    );
    written += queue.push(piece);
    const count = queue.peek(out, [3, 100_000, 12_000, 64][round % 4]);
    for (let i = 0; i < count; i++) {
      assert.equal(out[i], (read + i) % 251);
    }
    queue.drop(count);
    read += count;
    assert.equal(queue.length, written - read);
  }
  assert.ok(read > 1_000_000);
  queue.clear();
  assert.deepEqual([queue.length, pool.usedBytes], [0, 0]);
  queue.push(new Uint8Array(3 * BLOCK));
  queue.drop(2 * BLOCK + 1);
  assert.equal(pool.usedBytes, BLOCK, 'blocks that are read are free before the queue is empty');
});

test('a million small pieces take no more memory than their bytes, and little time', () => {
  const pool = new BlockPool(1 << 28);
  const ingress = new PcmIngress(pool);
  ingress.push(new Uint8Array(SPEECH_RING_SAMPLES * 2), 0); // the lane is full
  const piece = Uint8Array.of(1, 0);
  const startMs = native.threadCpuMs();
  for (let i = 0; i < 1_000_000; i++) {
    assert.equal(ingress.push(piece, 0), 0);
  }
  const tookMs = native.threadCpuMs() - startMs;
  assert.ok(isWithin(tookMs, 2000), `${tookMs.toFixed(0)} ms`);
  assert.ok(pool.usedBytes <= 2_000_000 + BLOCK, `${pool.usedBytes} bytes`);
  const reader = new SpeechRingReader(ingress.memory);
  const out = new Int16Array(SPEECH_RING_SAMPLES);
  reader.read(out, 0, out.length);
  const pumpMs = native.threadCpuMs();
  ingress.pump(0);
  assert.ok(isWithin(native.threadCpuMs() - pumpMs, 200), 'the backlog is moved in blocks');
  assert.equal(reader.read(out, 0, out.length), 1_000_000);
  assert.ok(out.subarray(0, 1_000_000).every((sample) => sample === 1));
  ingress.close();
  assert.equal(pool.usedBytes, 0);
});

test('waiting speech of all sessions has one limit; excess is dropped and counted; memory is reused', () => {
  const pool = new BlockPool(4 * BLOCK);
  const [one, two] = [new PcmIngress(pool), new PcmIngress(pool)];
  for (const ingress of [one, two]) {
    ingress.push(new Uint8Array(SPEECH_RING_SAMPLES * 2), 0);
  }
  assert.equal(one.push(new Uint8Array(3 * BLOCK), 0), 0);
  assert.equal(two.push(new Uint8Array(3 * BLOCK), 0), BLOCK, 'two blocks of samples');
  one.flush(0);
  assert.equal(two.push(new Uint8Array(3 * BLOCK), 0), 0);
  two.close();
  assert.equal(pool.usedBytes, 0);
});

test('audio at an odd offset in its buffer, or split within a sample, is the same audio', () => {
  const pcm = Int16Array.from({ length: 3000 }, (_sample, i) => i - 1500);
  const bytes = new Uint8Array(pcm.buffer);
  const shifted = new Uint8Array(bytes.length + 1);
  shifted.set(bytes, 1);
  const ingress = new PcmIngress();
  ingress.push(shifted.subarray(1, 2002), 0);
  ingress.push(shifted.subarray(2002, 4003), 0);
  ingress.push(shifted.subarray(4003), 0);
  const out = new Int16Array(4000);
  assert.equal(new SpeechRingReader(ingress.memory).read(out, 0, 4000), 3000);
  assert.deepEqual(out.subarray(0, 3000), pcm);
});

test('the length of an Opus packet is read from its first bytes (RFC 6716 section 3.1)', () => {
  for (const [bytes, samples] of [
    [[0x00], 160],
    [[0x08], 320],
    [[0x18], 960],
    [[0x60], 160],
    [[0x68], 320],
    [[0x80], 40],
    [[0x98], 320],
    [[0x99, 0], 640],
    [[0x1a, 0], 1920],
    [[0x9b, 6], 1920],
    [[0x9b, 7], 0],
    [[0x9b, 0], 0],
    [[0x1b, 3], 0],
    [[], 0],
  ] as const) {
    assert.equal(samplesInPacket(Uint8Array.from(bytes)), samples, `0x${bytes[0]?.toString(16)}`);
  }
  assert.equal(samplesInPacket(tonePackets(1)[0]!), 320);
});

test('a minute of Opus at once is decoded as it is played, and all of it is played', () => {
  const ingress = new OpusIngress(0);
  const reader = new SpeechRingReader(ingress.memory);
  for (const packet of tonePackets(3000)) {
    assert.equal(ingress.push(packet, 0), 0);
  }
  assert.ok(reader.length <= 2.2 * 16_000, `${reader.length / 16_000} s were decoded at once`);
  ingress.done();
  let heard = 0;
  let audible = 0;
  const out = new Int16Array(1600);
  for (let nowMs = 0; nowMs < 61_000; nowMs += 100) {
    const count = reader.read(out, 0, 1600);
    if (nowMs < 59_000) {
      assert.equal(count, 1600, `dry after ${nowMs} ms`);
    }
    if (out.subarray(0, count).some((sample) => sample > 3000)) {
      audible++;
    }
    heard += count;
    ingress.pump(nowMs);
  }
  assert.deepEqual([heard, ingress.hasBacklog, reader.isDone], [60 * 16_000, false, true]);
  assert.ok(audible > 590);
  ingress.close();
});

test('a client that always interrupts has 10 s of audio decoded per second', () => {
  const ingress = new OpusIngress(0);
  const reader = new SpeechRingReader(ingress.memory);
  const made = tonePackets(50);
  const out = new Int16Array(16_000);
  let decoded = 0;
  for (let nowMs = 0; nowMs < 10_000; nowMs++) {
    ingress.flush(nowMs);
    ingress.push(made[nowMs % 50]!, nowMs);
    ingress.push(made[(nowMs + 1) % 50]!, nowMs);
    reader.takeFlush();
    decoded += reader.read(out, 0, out.length);
  }
  assert.ok(decoded <= (2 + 10 * 10) * 16_000, `${decoded / 16_000} s decoded in 10 s`);
  ingress.pump(11_000);
  assert.ok(reader.read(out, 0, out.length) >= 320);
  ingress.close();
});

test('clients that always interrupt share 60 s of decoding per second, and each has 2 s', () => {
  const pool = new BlockPool(1 << 28);
  const shared = sharedDecoding(0);
  const sessions = Array.from({ length: 20 }, () => {
    const ingress = new OpusIngress(0, pool, shared);
    return { ingress, reader: new SpeechRingReader(ingress.memory), decoded: 0 };
  });
  const packet = tonePackets(1)[0]!;
  const out = new Int16Array(16_000);
  const SECONDS = 3;
  for (let nowMs = 0; nowMs < SECONDS * 1000; nowMs += 2) {
    for (const session of sessions) {
      session.ingress.flush(nowMs);
      session.ingress.push(packet, nowMs);
      session.reader.takeFlush();
      session.decoded += session.reader.read(out, 0, out.length) / 16_000;
    }
  }
  const decoded = sessions.reduce((sum, session) => sum + session.decoded, 0);
  const most = 60 + 20 * 2 + SECONDS * (60 + 20 * 2); // bursts, then rates
  assert.ok(decoded <= most, `${decoded} s decoded in ${SECONDS} s, over ${most}`);
  const least = Math.min(...sessions.map((session) => session.decoded));
  assert.ok(least >= SECONDS * 2, `${least} s of one session`);
  for (const { ingress } of sessions) {
    ingress.close();
  }
});

test('excess Opus is dropped and counted by its length; an undecodable packet is ignored', () => {
  const ingress = new OpusIngress(0);
  const packet = tonePackets(1)[0]!;
  let dropped = 0;
  for (let i = 0; i < MAX_BACKLOG_SECONDS * 50 + 1000; i++) {
    dropped += ingress.push(packet, 0);
  }
  assert.ok(dropped > 800 * 320 && dropped < 1000 * 320, `${dropped / 320} packets`);
  for (const junk of [new Uint8Array(0), new Uint8Array(20_000), Uint8Array.of(0x9b, 7)]) {
    assert.equal(ingress.push(junk, 0), 0);
  }
  assert.equal(ingress.invalidMessages, 3);
  ingress.close();
});

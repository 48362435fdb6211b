// How much of the speech was heard: the ends of utterances, and interruptions.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { sleep } from '../../../src/base/time.ts';
import type { AudioIngress } from '../../../src/front/sessions/audio-ingress.ts';
import { OpusIngress } from '../../../src/front/sessions/opus-ingress.ts';
import { PcmIngress } from '../../../src/front/sessions/pcm-ingress.ts';
import type { ServerMessage } from '../../../src/front/sessions/server-messages.ts';
import { SpeechMarks } from '../../../src/front/sessions/speech-marks.ts';
import { SpeechRingReader } from '../../../src/link/speech-ring.ts';
import { tonePackets } from '../../harness/opus-packets.ts';
import { until } from '../../harness/until.ts';

/** Speech whose positions the test sets, near the place where they wrap. */
function marked() {
  const start = 2 ** 31 - 8000;
  const speech = {
    writtenPosition: start | 0,
    heardPosition: start | 0,
    flushes: 0,
    push: () => true,
    flush() {
      this.flushes++;
      this.heardPosition = this.writtenPosition;
    },
  };
  const told: ServerMessage[] = [];
  const marks = new SpeechMarks(speech, (message) => {
    told.push(message);
  });
  marks.interrupt(); // the first utterance begins here
  const write = (ms: number): void => {
    speech.writtenPosition = (speech.writtenPosition + ms * 16) | 0;
  };
  const hear = (ms: number): void => {
    speech.heardPosition = (speech.heardPosition + ms * 16) | 0;
  };
  return { speech, told, marks, write, hear };
}

test('an utterance is told when it was heard to its end, also where positions wrap', async () => {
  const { told, marks, write, hear } = marked();
  write(700);
  assert.ok(marks.mark('a'));
  write(300);
  assert.ok(marks.mark('b'));
  hear(699);
  await sleep(100);
  assert.deepEqual(told, []);
  hear(2);
  await until(() => told.length === 1);
  hear(299);
  await until(() => told.length === 2);
  assert.deepEqual(told, [
    { type: 'flushed', id: 'a', heardMs: 700, interrupted: false },
    { type: 'flushed', id: 'b', heardMs: 300, interrupted: false },
  ]);
  marks.close();
});

test('an interruption says what was heard and what was not, and ends each utterance once', () => {
  const { speech, told, marks, write, hear } = marked();
  write(500);
  marks.mark('a');
  write(2000);
  marks.mark('b');
  write(1000);
  marks.mark('c');
  hear(800);
  assert.deepEqual(marks.interrupt(), { heardMs: 300, droppedMs: 2700 });
  assert.deepEqual(told, [
    { type: 'flushed', id: 'a', heardMs: 500, interrupted: false },
    { type: 'flushed', id: 'b', heardMs: 300, interrupted: true },
    { type: 'flushed', id: 'c', heardMs: 0, interrupted: true },
  ]);
  assert.deepEqual(marks.interrupt(), { heardMs: 0, droppedMs: 0 });
  assert.equal(speech.flushes, 3);
  assert.equal(told.length, 3);
});

/** The speech of an ingress, as far as the test hears it. */
function spoken(ingress: AudioIngress) {
  const reader = new SpeechRingReader(ingress.memory);
  const told: ServerMessage[] = [];
  let nowMs = 0;
  const marks = new SpeechMarks(
    {
      push: () => true,
      flush: () => {
        ingress.flush(nowMs);
      },
      get writtenPosition() {
        return ingress.writtenPosition;
      },
      get heardPosition() {
        return ingress.heardPosition;
      },
    },
    (message) => {
      told.push(message);
    },
  );
  const out = new Int16Array(1600);
  const hear = (ms: number): void => {
    reader.takeFlush();
    for (const endMs = nowMs + ms; nowMs < endMs; nowMs += 100) {
      ingress.pump(nowMs);
      reader.read(out, 0, 1600);
      reader.setHeard(0);
    }
  };
  return { told, marks, hear };
}

test('after more than the ring holds was dropped, what follows is told as ever', async () => {
  const ingress = new PcmIngress();
  const { told, marks, hear } = spoken(ingress);
  ingress.push(new Uint8Array(90 * 32_000), 0);
  hear(2000);
  assert.deepEqual(marks.interrupt(), { heardMs: 2000, droppedMs: 88_000 });
  // The worker has not seen the flush yet.
  assert.deepEqual(marks.interrupt(), { heardMs: 0, droppedMs: 0 });
  marks.announce([{ text: 'again', startMs: 100 }]);
  ingress.push(new Uint8Array(4 * 32_000), 0);
  marks.mark('four');
  hear(1000);
  await until(() => told.length === 1);
  hear(3000);
  await until(() => told.length === 2);
  assert.deepEqual(told, [
    { type: 'word', text: 'again', startMs: 100 },
    { type: 'flushed', id: 'four', heardMs: 4000, interrupted: false },
  ]);
  marks.close();
  ingress.close();
});

test('Opus that waits to be decoded counts, and what cannot be decoded takes its time', async () => {
  const ingress = new OpusIngress(0);
  const { told, marks, hear } = spoken(ingress);
  const say = (...packets: readonly Uint8Array[]): void => {
    for (const packet of packets) {
      assert.equal(ingress.push(packet, 0), 0);
    }
  };
  say(...tonePackets(200));
  for (let i = 0; i < 10; i++) {
    say(Uint8Array.of(0x99, 0)); // its two frames of 20 ms are not of the same size
    say(Uint8Array.of(0x98)); // a pause of 20 ms (DTX)
    say(new Uint8Array(0)); // no packet
  }
  say(...tonePackets(270));
  marks.mark('ten');
  marks.announce([{ text: 'next', startMs: 0 }]);
  say(...tonePackets(50));
  marks.mark('one');
  hear(9900);
  await sleep(100);
  assert.deepEqual(told, []);
  hear(100);
  await until(() => told.length === 1);
  hear(1000);
  await until(() => told.length === 3);
  assert.deepEqual(told, [
    { type: 'flushed', id: 'ten', heardMs: 10_000, interrupted: false },
    { type: 'word', text: 'next', startMs: 0 },
    { type: 'flushed', id: 'one', heardMs: 1000, interrupted: false },
  ]);
  assert.equal(ingress.invalidMessages, 20);
  say(...tonePackets(500));
  hear(1000);
  assert.deepEqual(marks.interrupt(), { heardMs: 1000, droppedMs: 9000 });
  marks.close();
  ingress.close();
});

test('words are told as they are heard, and not those that were cut off', async () => {
  const { told, marks, write, hear } = marked();
  const words = (...startMs: number[]) => startMs.map((ms) => ({ text: `w${ms}`, startMs: ms }));
  write(1000);
  assert.ok(marks.announce(words(600, 0)));
  hear(601);
  await until(() => told.length === 2);
  assert.ok(marks.mark('a'));
  assert.ok(marks.announce(words(100, 900)));
  write(1000);
  hear(699);
  await until(() => told.length === 4);
  marks.interrupt();
  assert.ok(marks.announce(words(50)));
  write(100);
  hear(100);
  await until(() => told.length === 5);
  assert.deepEqual(told, [
    { type: 'word', text: 'w0', startMs: 0 },
    { type: 'word', text: 'w600', startMs: 600 },
    { type: 'word', text: 'w100', startMs: 100 },
    { type: 'flushed', id: 'a', heardMs: 1000, interrupted: false },
    { type: 'word', text: 'w50', startMs: 50 },
  ]);
  assert.ok(!marks.announce(Array.from({ length: 2501 }, () => ({ text: '', startMs: 0 }))));
  marks.close();
});

test('utterances that wait are bounded', () => {
  const { marks, write } = marked();
  write(10);
  for (let i = 0; i < 1000; i++) {
    assert.ok(marks.mark(String(i)));
  }
  assert.ok(!marks.mark('too many'));
  marks.close();
});

// The messages of the session socket, in both directions, and PCM that is split anywhere.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { MAX_BACKLOG_SECONDS } from '../../../src/front/sessions/audio-ingress.ts';
import { PcmIngress } from '../../../src/front/sessions/pcm-ingress.ts';
import { plainText } from '../../../src/front/sessions/server-messages.ts';
import { parseClientMessage } from '../../../src/front/sessions/wire-protocol.ts';
import { SpeechRingReader } from '../../../src/link/speech-ring.ts';

const text = (value: string): ArrayBuffer => new TextEncoder().encode(value).buffer;

test('commands are understood as text and as binary', () => {
  for (const isBinary of [false, true]) {
    assert.equal(parseClientMessage(text('SKIP'), isBinary).kind, 'skip');
    assert.equal(parseClientMessage(text('DONE'), isBinary).kind, 'done');
  }
  const immediate = parseClientMessage(text('PLAY_IMMEDIATEab'), true);
  assert.ok(immediate.kind === 'playImmediate' && immediate.bytes.length === 2);
  assert.equal(parseClientMessage(text('SKIPSKIP'), true).kind, 'audio');
  assert.deepEqual(parseClientMessage(text('ping 12.5'), false), { kind: 'ping', payload: '12.5' });
  const longPing = text(`ping ${'x'.repeat(300)}`);
  assert.equal(parseClientMessage(longPing, false).kind, 'ignored', 'its answer would be as long');
  assert.equal(parseClientMessage(new ArrayBuffer(0), true).kind, 'ignored');
});

test('offers in any spacing and key order; everything else is ignored', () => {
  assert.deepEqual(parseClientMessage(text(' {"sdp" :"v=0",  "type":"offer", "x": 1}'), false), {
    kind: 'offer',
    sdp: 'v=0',
  });
  for (const odd of [
    '{"type":"offer"}',
    '{"type":"answer","sdp":"v=0"}',
    '{',
    '[]',
    'null',
    'hello',
    '{"type":"offer","sdp":7}',
  ]) {
    assert.equal(parseClientMessage(text(odd), false).kind, 'ignored');
  }
  const long = `{"type":"offer","sdp":"${'x'.repeat(400_000)}"}`;
  assert.deepEqual(
    parseClientMessage(text(long), false),
    { kind: 'offer', sdp: undefined },
    'too long to be parsed',
  );
  assert.equal(parseClientMessage(text(long.slice(1)), false).kind, 'ignored');
});

/** The longest words that the schema allows, of this character. */
const words = (character: string, count = 500) => ({
  words: Array.from({ length: count }, (_word, i) => ({
    text: character.repeat(100),
    startMs: 599_000.123_456_7 + i / 1000,
  })),
});

test('the longest command is understood on every socket, and a longer one is told', () => {
  const longest = JSON.stringify({ type: 'words', ...words('語') }, undefined, 1);
  for (const json of [longest, longest.replaceAll('語', String.raw`\u8a9e`)]) {
    for (const isOfferDue of [true, false]) {
      const parsed = parseClientMessage(text(json), false, isOfferDue);
      assert.ok(parsed.kind === 'command' && parsed.command.type === 'words');
      assert.equal(parsed.command.words.length, 500);
    }
  }
  const tooMany = JSON.stringify({ type: 'words', ...words('a', 501) });
  const tooLong = JSON.stringify({ type: 'words', ...words('語', 2000) });
  const typeLast = JSON.stringify({ ...words('語', 2000), type: 'words' });
  const empty = (count: number) => Array.from({ length: count }, () => ({}));
  const tooManyValues = JSON.stringify({ type: 'words', words: empty(5000) });
  const allWrong = JSON.stringify({ type: 'words', words: empty(400) });
  const longId = JSON.stringify({ type: 'flush', id: 'x'.repeat(3000) });
  for (const [json, why] of [
    [tooMany, /^words: .*500/],
    [tooLong, /longer than 320 KiB/],
    [typeLast, /longer than 320 KiB/],
    [tooManyValues, /more than 4000 commas/],
    [allWrong, /^words\.0\.text: .{1,300}$/],
    [longId, /^id: .*64/],
  ] as const) {
    for (const isOfferDue of [true, false]) {
      const parsed = parseClientMessage(text(json), false, isOfferDue);
      assert.ok(parsed.kind === 'wrongCommand', `${json.slice(0, 30)}: ${parsed.kind}`);
      assert.equal(parsed.type, json === longId ? 'flush' : 'words');
      assert.match(parsed.problem, why);
    }
  }
});

test('JSON begins with the key that clients look for, and has a space after each colon', () => {
  assert.equal(
    plainText({ type: 'answer', sdp: 'v=0\r\n' }),
    '{"sdp": "v=0\\r\\n", "type": "answer"}',
  );
  assert.equal(
    plainText({ type: 'session', destination: 'd', session_id: 's' }),
    '{"destination": "d", "session_id": "s"}',
  );
  assert.equal(
    plainText({ type: 'video', fps: 30, width: 512, height: 512 }),
    '{"video_metadata": {"fps": 30, "width": 512, "height": 512}}',
  );
});

const readAll = (ingress: PcmIngress): number[] => {
  const reader = new SpeechRingReader(ingress.memory);
  const out = new Int16Array(reader.length);
  reader.read(out, 0, out.length);
  return [...out];
};

test('a stream split within a sample is joined; a stray byte is dropped', () => {
  const cut = new PcmIngress();
  cut.push(Uint8Array.of(1, 0, 2), 0);
  cut.push(Uint8Array.of(0, 3, 0), 0);
  assert.deepEqual(readAll(cut), [1, 2, 3]);
  const stray = new PcmIngress();
  stray.push(Uint8Array.of(1, 0, 2, 0, 9), 0);
  stray.push(Uint8Array.of(3, 0), 0);
  assert.deepEqual(readAll(stray), [1, 2, 3]);
});

test('speech that does not fit into the ring waits; beyond the backlog it is dropped and counted', () => {
  const ingress = new PcmIngress();
  const minute = new Uint8Array(16_000 * 2 * 60).fill(1);
  let dropped = 0;
  for (let i = 0; i < 12; i++) {
    dropped += ingress.push(minute, 0);
  }
  assert.equal(dropped, (12 * 60 - MAX_BACKLOG_SECONDS) * 16_000);
  let heard = 0;
  const reader = new SpeechRingReader(ingress.memory);
  const out = new Int16Array(16_000 * 60);
  for (let i = 0; i < 20 && (reader.length > 0 || ingress.hasBacklog); i++) {
    heard += reader.read(out, 0, out.length);
    ingress.pump(0);
  }
  assert.equal(heard, MAX_BACKLOG_SECONDS * 16_000);
  ingress.done();
  assert.equal(reader.isDone, true);
});

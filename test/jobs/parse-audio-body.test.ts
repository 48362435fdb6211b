// The body of POST /static/audio: which Base64 is accepted, how long parsing takes, and how much of
// a body reaches the main thread.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseAudioBody, type AudioBody } from '../../src/jobs/parse-audio-body.ts';
import { isWithin, shortestMs } from '../harness/machine.ts';

const FIELDS = ['faceId', 'audioBase64', 'audioFormat'];
const parse = (text: string): AudioBody =>
  parseAudioBody({ chunks: [Buffer.from(text)], fields: FIELDS });
const audioOf = (text: string): unknown => {
  const parsed = parse(JSON.stringify({ audioBase64: text }));
  assert.equal(parsed.kind, 'value');
  return (parsed as { value: Record<string, unknown> }).value['audioBase64'];
};

test('accepts Base64 in every usual form, and nothing else', () => {
  const bytes = Uint8Array.from([0xfb, 0xff, 0xbf, 0x01]);
  for (const text of [
    '+/+/AQ==',
    '-_-_AQ==',
    '+/+/AQ',
    '+/+/\r\nAQ==\r\n',
    ' +/+/AQ== ',
    'data:audio/wav;base64,+/+/AQ==',
  ]) {
    assert.deepEqual(new Uint8Array(audioOf(text) as Uint8Array), bytes, text);
  }
  for (const text of [
    '+/+/AQ===',
    '+=/+/AQ',
    '+/+/AQ=!',
    '{}',
    'no, it is not',
    'data:,=a',
    '\u0101',
  ]) {
    assert.equal(audioOf(text), null, text);
  }
});

test('64 kB of any text take 5 ms at most', () => {
  const size = 64 * 1024;
  const texts = {
    'blanks and a foreign character': `${' '.repeat(size)}!`,
    'letters and a foreign character': `${'A'.repeat(size)}!`,
    padding: '='.repeat(size),
    'blanks and padding': ' ='.repeat(size / 2),
    'line breaks': 'A\n'.repeat(size / 4),
    commas: `data:${','.repeat(size)}`,
  };
  for (const [name, text] of Object.entries(texts)) {
    const body = JSON.stringify({ audioBase64: text });
    const tookMs = shortestMs(() => parse(body));
    assert.ok(isWithin(tookMs, 5), `${name}: ${tookMs.toFixed(1)} ms`);
  }
  for (const text of [
    '"'.repeat(size),
    '['.repeat(size),
    '{"a":'.repeat(size / 5),
    `"${'\\'.repeat(size)}`,
    '\\"'.repeat(size / 2),
  ]) {
    const tookMs = shortestMs(() => parse(text));
    assert.ok(isWithin(tookMs, 5), `${text.slice(0, 10)}: ${tookMs.toFixed(1)} ms`);
  }
});

test('the result for the main thread is small for any body', () => {
  const long = 'x'.repeat(200_000);
  const sent = { faceId: long, audioFormat: [1, [2, 3]], audioBase64: { a: 1 }, other: long };
  assert.deepEqual(parse(JSON.stringify({ ...sent, other: 'x' })), {
    kind: 'value',
    value: { faceId: long.slice(0, 1024), audioFormat: [], audioBase64: {} },
  });
  assert.deepEqual(parse(JSON.stringify(long)), { kind: 'value', value: long.slice(0, 1024) });
  assert.deepEqual(parse('[1, 2]'), { kind: 'value', value: [] });
  assert.deepEqual(parse('{"__proto__": {"faceId": "ava"}}'), { kind: 'value', value: {} });
  assert.deepEqual(
    parse(`[${'{},'.repeat(100_000)}{}]`),
    { kind: 'too-much' },
    'it would become megabytes of objects',
  );
  assert.deepEqual(parse(JSON.stringify({ audioBase64: 'AAAA', a: long, b: long, c: long })), {
    kind: 'too-much',
  });
  assert.deepEqual(parse('{"a": tru}'), { kind: 'invalid-json' });
});

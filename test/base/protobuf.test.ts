// The reader of protocol buffers: what it finds, what it refuses, and what a message costs that is
// made to be slow.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ProtobufFields, readFields, readMap, readUnion } from '../../src/base/protobuf.ts';
import { isWithin, shortestMs } from '../harness/machine.ts';

const varint = (value: number): number[] =>
  value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
/** A field of bytes. */
const bytes = (field: number, content: Uint8Array | string): Buffer => {
  const body = Buffer.from(content);
  return Buffer.concat([Buffer.from([...varint(field * 8 + 2), ...varint(body.length)]), body]);
};
const number = (field: number, value: number): Buffer =>
  Buffer.from([...varint(field * 8), ...varint(value)]);
const repeated = (unit: Buffer, size: number): Buffer =>
  Buffer.concat(Array.from({ length: Math.floor(size / unit.length) }, () => unit));

test('numbers, strings, messages and maps are found; what nobody asks for is skipped', () => {
  const entry = bytes(7, Buffer.concat([bytes(1, '__proto__'), bytes(2, 'value')]));
  const message = Buffer.concat([
    number(1, 300),
    Buffer.from([...varint(2 * 8 + 1), 1, 2, 3, 4, 5, 6, 7, 8]),
    Buffer.from([...varint(3 * 8 + 5), 1, 2, 3, 4]),
    bytes(400, 'Überall'),
    entry,
    number(1, 2 ** 40),
  ]);
  const found = { number: 0, text: '', length: 0 };
  readFields(message, {
    1: (fields) => (found.number = fields.number),
    7: (fields) => (found.length = fields.bytes.length),
    400: (fields) => (found.text = fields.text),
  });
  assert.deepEqual(found, { number: 2 ** 40, text: 'Überall', length: entry.length - 2 });
  assert.deepEqual(Object.entries(readMap(message, 7)), [['__proto__', 'value']]);
  // A number where bytes are asked for, and the other way round.
  readFields(message, {
    1: (fields) => assert.deepEqual([fields.text, fields.bytes.length], ['', 0]),
    400: (fields) => assert.equal(fields.number, 0),
  });
});

test('what is malformed is refused, wherever it is', () => {
  for (const hex of [
    '00',
    '08',
    '0880',
    '0a05',
    '0a0561',
    '0b',
    '0c',
    '0901020304',
    '0d01',
    'ff',
  ]) {
    const fields = new ProtobufFields(Buffer.from(hex, 'hex'));
    assert.equal(fields.next(), false, hex);
    assert.equal(fields.isMalformed, true, hex);
    assert.throws(() => {
      readFields(Buffer.from(hex, 'hex'), {});
    }, RangeError);
  }
  const inner = Buffer.from('0a05', 'hex');
  const read = (message: Buffer): string | undefined =>
    readUnion(message, { 1: (fields) => (readFields(fields.bytes, {}), 'one') }, 'other');
  assert.equal(read(bytes(1, inner)), undefined);
  assert.equal(read(bytes(1, '')), 'one');
  assert.equal(read(Buffer.concat([number(2, 1), bytes(1, '')])), 'one');
  assert.equal(read(number(2, 1)), 'other');
  assert.equal(read(Buffer.alloc(0)), 'other');
  assert.throws(() => readUnion(number(1, 1), { 1: () => assert.fail('a defect') }, 0), /a defect/);
});

test('a megabyte of empty messages, or of fields that nobody reads, costs little', async () => {
  const empties = repeated(bytes(1, ''), 1 << 20);
  const nested = repeated(bytes(1, repeated(number(2, 1), 100)), 1 << 20);
  for (const message of [empties, nested, bytes(5, empties)]) {
    const costMs = shortestMs(() => {
      let met = 0;
      readUnion(message, { 5: ({ bytes: all }) => readFields(all, { 1: () => met++ }) }, undefined);
      try {
        readFields(message, { 1: ({ bytes: one }) => readFields(one, {}) });
      } catch (error) {
        assert.ok(error instanceof RangeError);
      }
      assert.ok(met <= 10_000);
    }, 5);
    // 9 to 30 ms; LiveKit's decoder takes 750 ms.
    assert.ok(isWithin(costMs, 100), `${costMs} ms`);
  }
});

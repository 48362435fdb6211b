// H.264 payloads: single NAL units, STAP-A and FU-A, read back by a depacketizer written after RFC
// 6184.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import * as fc from 'fast-check';
import { H264Packetizer } from '../../../src/webrtc/rtp/h264.ts';

function packetize(frame: Uint8Array, max: number): Buffer[] {
  const packetizer = new H264Packetizer();
  const out = Buffer.alloc(max + 20);
  const payloads: Buffer[] = [];
  packetizer.start(frame, frame.length, max);
  for (let bytes = packetizer.next(out, 20); bytes > 0; bytes = packetizer.next(out, 20)) {
    payloads.push(Buffer.from(out.subarray(20, 20 + bytes)));
    assert.ok(bytes <= max, `${bytes} > ${max}`);
  }
  assert.ok(packetizer.isDone);
  return payloads;
}

/** The NAL units in a sequence of payloads (RFC 6184 sections 5.6 to 5.8). */
function unitsOf(payloads: readonly Buffer[]): Buffer[] {
  const units: Buffer[] = [];
  let open: Buffer[] | undefined = undefined;
  for (const payload of payloads) {
    const type = payload[0]! & 31;
    if (type === 24) {
      for (let at = 1; at < payload.length; at += 2 + payload.readUInt16BE(at)) {
        units.push(payload.subarray(at + 2, at + 2 + payload.readUInt16BE(at)));
      }
    } else if (type === 28) {
      const header = payload[1]!;
      assert.equal(header & 0x20, 0, 'the reserved bit');
      assert.notEqual(header & 0xc0, 0xc0, 'a unit in one fragment must not be fragmented');
      if ((header & 0x80) !== 0) {
        assert.equal(open, undefined);
        open = [Buffer.from([(payload[0]! & 0xe0) | (header & 31)])];
      }
      assert.ok(open !== undefined);
      open.push(payload.subarray(2));
      if ((header & 0x40) !== 0) {
        units.push(Buffer.concat(open));
        open = undefined;
      }
    } else {
      units.push(payload);
    }
  }
  assert.equal(open, undefined, 'the last fragment is missing');
  return units;
}

/** A NAL unit as encoders write it: no start code inside, no trailing zero. */
const unit = fc
  .tuple(
    fc.constantFrom(0x67, 0x68, 0x06, 0x65, 0x41, 0x61, 0x01),
    fc.uint8Array({ minLength: 1, maxLength: 3_000 }),
  )
  .map(([header, body]) =>
    Buffer.concat([Buffer.from([header]), Buffer.from(body.map((byte) => byte | 4))]),
  );

test('any access unit is restored from its payloads', () => {
  fc.assert(
    fc.property(
      fc.array(unit, { minLength: 1, maxLength: 12 }),
      fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
      fc.integer({ min: 60, max: 1_200 }),
      (units, long, max) => {
        const frame = Buffer.concat(
          units.flatMap((nal, index) => [
            Buffer.from(long[index] === true ? [0, 0, 0, 1] : [0, 0, 1]),
            nal,
          ]),
        );
        assert.deepEqual(unitsOf(packetize(frame, max)), units);
      },
    ),
    { seed: 1, numRuns: 300 },
  );
});

test('parameter sets are aggregated; delimiters and filler data are omitted', () => {
  const start = Buffer.from([0, 0, 0, 1]);
  const sps = Buffer.from([0x67, 0x42, 0xe0, 0x1f, 1, 2, 3]);
  const pps = Buffer.from([0x68, 0xce, 1]);
  const idr = Buffer.concat([Buffer.from([0x65]), Buffer.alloc(2_500, 7)]);
  const delimiter = Buffer.from([0x09, 0xf0]);
  const filler = Buffer.from([0x0c, 0xff, 0xff]);
  const payloads = packetize(
    Buffer.concat([start, delimiter, start, sps, start, pps, start, idr, start, filler]),
    1_100,
  );
  assert.deepEqual(
    payloads[0],
    Buffer.concat([Buffer.from([0x78, 0, 7]), sps, Buffer.from([0, 3]), pps]),
  );
  assert.equal(payloads.length, 4);
  assert.deepEqual(unitsOf(payloads), [sps, pps, idr]);
  assert.deepEqual(
    payloads.slice(1).map((payload) => payload[1]! & 0xc0),
    [0x80, 0, 0x40],
  );
});

test('zeros inside a NAL unit and at its end are not start codes', () => {
  const nal = Buffer.from([0x41, 0, 0, 3, 0, 0, 3, 1, 0, 0, 2, 9]);
  assert.deepEqual(
    unitsOf(packetize(Buffer.concat([Buffer.from([0, 0, 0, 1]), nal, Buffer.from([0, 0])]), 100)),
    [nal],
  );
  assert.deepEqual(packetize(Buffer.from([1, 2, 3]), 100), [], 'no start code, no NAL unit');
});

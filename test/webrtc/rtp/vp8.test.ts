// VP8 payloads: the descriptor of RFC 7741, and the frame unchanged.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import * as fc from 'fast-check';
import { Vp8RtpPayload } from 'werift';
import { Vp8Packetizer } from '../../../src/webrtc/rtp/vp8.ts';

function packetize(packetizer: Vp8Packetizer, frame: Uint8Array, max: number): Buffer[] {
  const out = Buffer.alloc(max + 12);
  const payloads: Buffer[] = [];
  packetizer.start(frame, frame.length, max);
  for (let bytes = packetizer.next(out, 12); bytes > 0; bytes = packetizer.next(out, 12)) {
    payloads.push(Buffer.from(out.subarray(12, 12 + bytes)));
    assert.equal(
      packetizer.isDone,
      payloads.reduce((sum, payload) => sum + payload.length - 4, 0) === frame.length,
    );
  }
  return payloads;
}

test('any frame is restored from payloads of equal size within the limit', () => {
  const packetizer = new Vp8Packetizer();
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 6_000 }),
      fc.integer({ min: 40, max: 1_200 }),
      (frame, max) => {
        const payloads = packetize(packetizer, frame, max);
        assert.deepEqual(
          Buffer.concat(payloads.map((payload) => payload.subarray(4))),
          Buffer.from(frame),
        );
        assert.equal(payloads.length, Math.ceil(frame.length / (max - 4)));
        const sizes = payloads.map(({ length }) => length);
        assert.ok(
          Math.max(...sizes) <= max && Math.max(...sizes) - Math.min(...sizes) <= 1,
          sizes.join(' '),
        );
      },
    ),
    { seed: 1 },
  );
});

test('an independent parser finds one partition start, and a picture id that counts up and wraps', () => {
  const packetizer = new Vp8Packetizer();
  let last = -1;
  for (let picture = 0; picture < 33_000; picture++) {
    const payloads = packetize(packetizer, new Uint8Array(90), 40);
    if (picture % 4_096 < 3) {
      payloads.forEach((payload, index) => {
        const read = Vp8RtpPayload.deSerialize(payload);
        assert.equal(read.sBit, index === 0 ? 1 : 0);
        assert.equal(read.pid, 0);
        assert.equal(read.nBit, 0);
        assert.equal(read.mBit, 1);
      });
    }
    const id = payloads[0]!.readUInt16BE(2) & 0x7fff;
    if (last >= 0) {
      assert.equal(id, (last + 1) & 0x7fff);
    }
    for (const payload of payloads) {
      assert.equal(payload.readUInt16BE(2) & 0x7fff, id);
    }
    last = id;
  }
});

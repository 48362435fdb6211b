// SRTP and SRTCP against an independent implementation, in both directions and profiles; forgeries
// and replays.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'vitest';
import * as fc from 'fast-check';
import { RtpHeader, SrtcpSession, SrtpSession } from 'werift';
import { ReplayWindow } from '../../../src/webrtc/srtp/replay-window.ts';
import {
  rtpHeaderBytes,
  saltBytes,
  SrtpReceiver,
  SrtpSender,
  type SrtpProfile,
} from '../../../src/webrtc/srtp/srtp.ts';

const profiles = [7, 1] as const;

function keysOf(profile: SrtpProfile): {
  key: Buffer;
  salt: Buffer;
  theirs: {
    keys: {
      localMasterKey: Buffer;
      localMasterSalt: Buffer;
      remoteMasterKey: Buffer;
      remoteMasterSalt: Buffer;
    };
    profile: SrtpProfile;
  };
} {
  const key = randomBytes(16);
  const salt = randomBytes(saltBytes(profile));
  return {
    key,
    salt,
    theirs: {
      keys: {
        localMasterKey: key,
        localMasterSalt: salt,
        remoteMasterKey: key,
        remoteMasterSalt: salt,
      },
      profile,
    },
  };
}

const rtp = (sequence: number, payload: Buffer, ssrc = 77): Buffer => {
  const head = Buffer.from([
    0x90,
    96,
    sequence >> 8,
    sequence & 255,
    0,
    0,
    0,
    9,
    0,
    0,
    0,
    0,
    0xbe,
    0xde,
    0,
    1,
    0x10,
    0x30,
    0,
    0,
  ]);
  head.writeUInt32BE(ssrc, 8);
  return Buffer.concat([head, payload]);
};

const protect = (sender: SrtpSender, plain: Buffer, rollover = 0): Buffer => {
  const out = Buffer.alloc(plain.length + 16);
  return out.subarray(0, sender.protectRtp(plain, 20, rollover, out));
};

for (const profile of profiles) {
  test(`profile ${profile}: werift decrypts our packets, across a rollover`, () => {
    const { key, salt, theirs } = keysOf(profile);
    const sender = new SrtpSender(profile, key, salt);
    const session = new SrtpSession(theirs);
    for (const [sequence, rollover] of [
      [65_533, 0],
      [65_534, 0],
      [65_535, 0],
      [0, 1],
      [1, 1],
      [2, 1],
    ] as const) {
      const payload = randomBytes(100 + (sequence % 50));
      const opened = session.decrypt(protect(sender, rtp(sequence, payload), rollover));
      assert.deepEqual(opened.subarray(20), payload);
    }
    const compound = Buffer.concat([Buffer.from([0x80, 201, 0, 1, 0, 0, 0, 5]), randomBytes(40)]);
    assert.deepEqual(new SrtcpSession(theirs).decrypt(sender.protectRtcp(compound)), compound);
  });

  test(`profile ${profile}: we decrypt packets of werift, each once, and no forgeries`, () => {
    const { key, salt, theirs } = keysOf(profile);
    const session = new SrtpSession(theirs);
    const receiver = new SrtpReceiver(profile, key, salt);
    const seal = (sequence: number, payload: Buffer, ssrc = 5): Buffer =>
      session.encrypt(
        payload,
        new RtpHeader({ sequenceNumber: sequence, timestamp: 1, payloadType: 111, ssrc }),
      );
    for (const sequence of [65_530, 65_534, 65_532, 65_535, 0, 3, 1]) {
      const payload = randomBytes(60);
      const sealed = seal(sequence, payload);
      const tampered = Buffer.from(sealed);
      tampered[20]! ^= 1;
      assert.equal(receiver.unprotectRtp(tampered), undefined);
      assert.deepEqual(receiver.unprotectRtp(sealed), payload, `${sequence}`);
      assert.equal(receiver.unprotectRtp(sealed), undefined, 'a replay');
    }
    const rtcp = new SrtcpSession(theirs);
    const compound = Buffer.concat([Buffer.from([0x80, 201, 0, 1, 0, 0, 0, 5]), randomBytes(24)]);
    const sealed = rtcp.encrypt(compound);
    const tampered = Buffer.from(sealed);
    tampered[9]! ^= 1;
    assert.equal(receiver.unprotectRtcp(tampered), undefined);
    assert.deepEqual(receiver.unprotectRtcp(sealed), compound);
    assert.equal(receiver.unprotectRtcp(sealed), undefined, 'a replay');
    for (let ssrc = 100; ssrc < 200; ssrc++) {
      receiver.unprotectRtp(seal(10, randomBytes(8), ssrc));
    }
    assert.equal(
      receiver.unprotectRtp(seal(11, randomBytes(8), 300)),
      undefined,
      'the number of streams is bounded',
    );
  });

  test(`profile ${profile}: garbage of any length gives undefined, not an exception`, () => {
    const { key, salt } = keysOf(profile);
    const receiver = new SrtpReceiver(profile, key, salt);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        assert.equal(receiver.unprotectRtp(Buffer.from(bytes)), undefined);
        assert.equal(receiver.unprotectRtcp(Buffer.from(bytes)), undefined);
      }),
      { seed: 3, numRuns: 2_000 },
    );
  });
}

test('padding is removed; a wrong padding length is rejected', () => {
  const { key, salt } = keysOf(7);
  const receiver = new SrtpReceiver(7, key, salt);
  const sender = new SrtpSender(7, key, salt);
  const padded = rtp(1, Buffer.from([1, 2, 3, 0, 0, 3]));
  padded[0]! |= 0x20;
  assert.deepEqual(receiver.unprotectRtp(protect(sender, padded)), Buffer.from([1, 2, 3]));
  const lying = rtp(2, Buffer.from([1, 2, 200]));
  lying[0]! |= 0x20;
  assert.equal(receiver.unprotectRtp(protect(sender, lying)), undefined);
  assert.equal(rtpHeaderBytes(Buffer.from([0x9f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])), 0);
});

test('the replay window accepts each index once, in any order within 64', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(300), { maxLength: 200 }), (indices) => {
      const window = new ReplayWindow();
      const seen = new Set<number>();
      let top = -1;
      for (const index of indices) {
        const expected = !seen.has(index) && index > top - 64;
        assert.equal(window.isNew(index), expected, `${index} after ${[...seen].join(' ')}`);
        if (!expected) {
          continue;
        }
        window.accept(index);
        seen.add(index);
        top = Math.max(top, index);
      }
    }),
    { seed: 5, numRuns: 1_000 },
  );
});

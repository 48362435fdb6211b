// What receivers ask for: key frames, bitrate; and how a connection that went silent or said goodbye ends.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { monotonicMs, sleep } from '../../../src/base/time.ts';
import { BitrateController } from '../../../src/webrtc/congestion/bitrate-controller.ts';
import { DelayDetector } from '../../../src/webrtc/congestion/delay-detector.ts';
import { PeerPair } from '../../harness/peer-pair.ts';
import { until } from '../../harness/until.ts';

const ssrcOf = (answer: string): number =>
  Number(/a=ssrc:(\d+)/.exec(answer.slice(answer.indexOf('m=video')))?.[1]);

function feedback(format: number, ssrc: number, tail: readonly number[] = []): Buffer {
  const out = Buffer.alloc(12 + tail.length);
  out[0] = 0x80 | format;
  out[1] = 206;
  out.writeUInt16BE(out.length / 4 - 1, 2);
  out.writeUInt32BE(1, 4);
  out.writeUInt32BE(ssrc, 8);
  Buffer.from(tail).copy(out, 12);
  return out;
}

const ssrcBytes = (ssrc: number): number[] => [
  ssrc >>> 24,
  (ssrc >>> 16) & 255,
  (ssrc >>> 8) & 255,
  ssrc & 255,
];
const fir = (ssrc: number, sequence: number): Buffer =>
  feedback(4, 0, [...ssrcBytes(ssrc), sequence, 0, 0, 0]);
const pli = (ssrc: number): Buffer => feedback(1, ssrc);
const remb = (bitsPerSecond: number, ssrc: number): Buffer => {
  const exponent = Math.max(0, Math.ceil(Math.log2(bitsPerSecond / 0x3ffff)));
  const mantissa = Math.floor(bitsPerSecond / 2 ** exponent);
  return feedback(15, 0, [
    ...Buffer.from('REMB'),
    1,
    (exponent << 2) | (mantissa >> 16),
    (mantissa >> 8) & 255,
    mantissa & 255,
    ...ssrcBytes(ssrc),
  ]);
};

test('PLI and FIR ask for a key frame, at most one in 300 ms, the last one never lost', async (t) => {
  const pair = await PeerPair.connect(t);
  pair.stopPolling();
  const ssrc = ssrcOf(pair.answer);
  pair.sendRtcp(pli(ssrc));
  await until(() => pair.listener.keyFrameRequests === 1);
  const firstMs = monotonicMs();
  for (let count = 0; count < 10; count++) {
    pair.sendRtcp(pli(ssrc));
  }
  await until(() => pair.peer.stats.plisReceived === 11);
  assert.equal(pair.listener.keyFrameRequests, 1);
  pair.peer.poll(firstMs + 100);
  assert.equal(pair.listener.keyFrameRequests, 1);
  pair.peer.poll(firstMs + 320);
  assert.equal(pair.listener.keyFrameRequests, 2, 'what came too early is asked for later');
  pair.peer.poll(firstMs + 2_000);
  assert.equal(pair.listener.keyFrameRequests, 2);
  pair.sendRtcp(fir(ssrc, 7));
  pair.sendRtcp(fir(ssrc, 7));
  pair.sendRtcp(fir(ssrc, 8));
  await until(() => pair.peer.stats.firsReceived === 2);
  pair.peer.poll(firstMs + 3_000);
  assert.equal(pair.listener.keyFrameRequests, 3);
  pair.sendRtcp(pli((ssrc ^ 1) >>> 0));
  pair.sendRtcp(fir((ssrc ^ 1) >>> 0, 9));
  await until(() => pair.peer.stats.packetsReceived >= 15);
  assert.equal(pair.peer.stats.plisReceived, 11, 'other streams are not ours');
});

test('REMB bounds the bitrate', async (t) => {
  const pair = await PeerPair.connect(t);
  const ssrc = ssrcOf(pair.answer);
  // An estimate means something once as much is sent as is wished for.
  const frame = Buffer.alloc(3_000, 7);
  const startMs = monotonicMs();
  for (let n = 0; monotonicMs() - startMs < 1_300; n++, await sleep(33)) {
    pair.peer.sendVideo(frame, frame.length, n === 0, n * 33, monotonicMs());
  }
  pair.sendRtcp(remb(400_000, ssrc));
  pair.sendRtcp(remb(300_000, ssrc));
  await until(() => pair.listener.bitrates.at(-1) === 300);
  pair.sendRtcp(remb(20_000, ssrc));
  await until(() => pair.listener.bitrates.at(-1) === 150);
  pair.sendRtcp(remb(10_000_000, ssrc));
  await until(() => pair.listener.bitrates.at(-1) === 600);
  assert.equal(pair.peer.stats.targetBitrateKbps, 600);
});

test('an estimate binds once it falls or is held below what is sent; one that only rises slowly, and that of silence and jitter, do not', () => {
  const controller = new BitrateController(150, 600, 600);
  let nowMs = 0;
  const after = (kbps: number, sentKbps: number, isQueued = false): number => {
    controller.onRemb(kbps * 1000, sentKbps, isQueued, (nowMs += 250));
    return controller.targetKbps;
  };
  assert.equal(after(125, 0), 600, 'the first that is heard');
  for (let kbps = 130; kbps < 250; kbps *= 1.02) {
    assert.equal(after(kbps, 150), 600, 'it follows what is received');
  }
  assert.equal(after(127, 150), 600, 'jitter in silence: 0.85 of what came in');
  for (let kbps = 128; kbps < 300; kbps *= 1.02) {
    assert.equal(after(kbps, 580), 600, 'a sentence: it rises, so nothing is in its way');
  }
  assert.equal(after(240, 590), 240, 'a fall');
  assert.equal(after(246, 250), 246, 'and what it recovers to');
  assert.equal(after(244, 250), 246, 'a tremble');
  for (let second = 0; second < 24; second++) {
    after(246 + second, 250);
  }
  assert.equal(after(270, 250), Math.round(270 * 1.25), 'after a calm time more is tried');
  for (let n = 0; n < 6; n++) {
    after(270, 330, true);
  }
  assert.equal(after(270, 330, true), 270, 'held below what is sent, before a queue');
  assert.equal(after(70, 150), 150, 'too narrow even for silence: the least that is ever sent');
});

test('a queue that overflows is told from chance, from jitter and from long ways', () => {
  const detector = new DelayDetector();
  const burst = (fromMs: number): void => {
    for (let n = 0; n < 6; n++) {
      detector.onFirstNack(fromMs + n * 20);
    }
  };
  detector.onRoundTrip(40, 0);
  burst(0);
  assert.equal(detector.isOverflowing(100), false, 'a burst of losses on a short way');
  detector.onRoundTrip(300, 1_000);
  assert.equal(detector.queuingDelayMs(1_000), 260);
  assert.equal(detector.isOverflowing(1_000), false, 'a queue that loses nothing');
  for (let n = 0; n < 6; n++) {
    detector.onFirstNack(1_000 + n * 100);
  }
  assert.equal(detector.isOverflowing(1_500), false, 'losses far from each other');
  burst(1_600);
  assert.equal(detector.isOverflowing(1_700), true);
  assert.equal(detector.isOverflowing(2_600), false, 'it is over');
  for (let atMs = 3_000; atMs < 60_000; atMs += 1_000) {
    detector.onRoundTrip(300, atMs);
  }
  assert.equal(detector.queuingDelayMs(59_000), 0, 'another route, which is longer');
  assert.equal(detector.queuingDelayMs(62_000), 0, 'nothing heard of late');
});

test('the bitrate grows without loss, holds with some, and falls with much', () => {
  const controller = new BitrateController(150, 1500, 600);
  let nowMs = 0;
  const after = (seconds: number, loss: number): number => {
    for (let report = 0; report < seconds; report++) {
      controller.onLoss(loss, (nowMs += 1000));
    }
    return controller.targetKbps;
  };
  assert.equal(after(5, 0.05), 600);
  const grown = after(10, 0);
  assert.ok(grown > 1_000 && grown <= 1_500, `${grown}`);
  assert.ok(Math.abs(after(1, 0.5) - grown * 0.75) < 2);
  assert.equal(after(60, 1), 150);
  assert.equal(after(120, 0), 1_500);
  controller.onLoss(1, nowMs++); // reports a burst of which must not cut again and again
  assert.equal(controller.targetKbps, 1_500);
});

test('close_notify ends the connection at once', async (t) => {
  const pair = await PeerPair.connect(t);
  const dtls = pair.transport.dtls as unknown as {
    dtls: { recordSequenceNumber: number };
    cipher: { encryptPacket(packet: unknown): { serialize(): Buffer } };
  };
  const { DtlsPlaintext } = await plaintext();
  const record = new DtlsPlaintext(
    {
      contentType: 21,
      protocolVersion: { major: 254, minor: 253 },
      epoch: 1,
      sequenceNumber: ++dtls.dtls.recordSequenceNumber,
      contentLen: 2,
    },
    Buffer.from([1, 0]),
  );
  pair.sendRaw(dtls.cipher.encryptPacket(record).serialize());
  assert.equal(await pair.listener.closed.promise, 'closed');
  assert.equal(pair.endpoint.peerCount, 0);
});

/** werift does not export its record type, nor does it ever send the alert. */
const plaintext = async (): Promise<{
  DtlsPlaintext: new (header: unknown, fragment: Buffer) => unknown;
}> =>
  (await import(
    new URL(
      '../../../node_modules/werift/lib/dtls/src/record/message/plaintext.js',
      import.meta.url,
    ).href
  )) as { DtlsPlaintext: new (header: unknown, fragment: Buffer) => unknown };

test('a silent peer is asked whether it lives, and given up within ten seconds', async (t) => {
  const pair = await PeerPair.connect(t);
  pair.stopPolling();
  const nowMs = monotonicMs();
  const received = pair.endpoint.stats.received;
  pair.peer.poll(nowMs + 4_000);
  await until(() => pair.endpoint.stats.received > received, 5_000, 'an answer to our check');
  assert.equal(
    pair.endpoint.stats.rejected.stun_integrity + pair.endpoint.stats.rejected.stun_unknown_user,
    0,
  );
  assert.equal(pair.listener.isClosed, false);
  pair.peer.poll(nowMs + 9_500);
  assert.equal(await pair.listener.closed.promise, 'timeout');
  assert.equal(pair.endpoint.peerCount, 0);
  assert.equal(pair.peer.sendVideo(Buffer.alloc(100), 100, true, 0, nowMs), 0);
});

test('close says BYE and goodbye, frees the peer, and may be called twice', async (t) => {
  const pair = await PeerPair.connect(t);
  const states: string[] = [];
  const byes: Buffer[] = [];
  pair.transport.onStateChange.subscribe((state) => {
    states.push(state);
  });
  pair.transport.iceTransport.connection.onData.subscribe((data) => {
    if (data[0]! >> 6 === 2 && data[1] === 201) {
      byes.push(pair.transport.srtcp.decrypt(data));
    } // an empty receiver report comes first
  });
  await pair.peer.close();
  await pair.peer.close();
  await until(() => states.includes('closed'));
  const bye = byes[0]!;
  assert.equal(bye[9], 203);
  assert.equal(bye.readUInt32BE(12), ssrcOf(pair.answer));
  assert.equal(pair.endpoint.peerCount, 0);
  assert.equal(pair.listener.isClosed, false, 'our own close is no news');
});

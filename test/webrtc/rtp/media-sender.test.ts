// The media sender without a network or a clock: what it sends at which time, and how it reacts to
// RTCP.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { MediaSender } from '../../../src/webrtc/rtp/media-sender.ts';
import { newMediaStats } from '../../../src/webrtc/rtp/media-stats.ts';
import { compactNtp } from '../../../src/webrtc/rtp/rtcp.ts';
import { planAnswer } from '../../../src/webrtc/sdp/answer.ts';
import { parseOffer } from '../../../src/webrtc/sdp/offer.ts';
import { SrtpReceiver, SrtpSender } from '../../../src/webrtc/srtp/srtp.ts';
import { fir, nack, pli, receiverReport, remb } from '../rtcp-messages.ts';
import { chromium } from '../sdp/offers.ts';

const [KEY, SALT] = [Buffer.alloc(16, 1), Buffer.alloc(12, 2)];
const GCM = 7;
const WALL_OFFSET_MS = 1_700_000_000_000;
const FRAME = Buffer.alloc(3_000, 7);
/** Packets of a frame of 3,000 bytes. */
const FRAME_PACKETS = 3;
const SENDER_REPORT = 200;
const BYE = 203;

/** A packet that was sent, decrypted. */
interface SentPacket {
  readonly ssrc: number;
  readonly sequenceNumber: number;
  readonly isMarked: boolean;
  readonly timestamp: number;
  readonly payload: Buffer;
  readonly datagram: Buffer;
}

/** A started sender, and the receiver's view of what it sends. */
class Sender {
  readonly stats = newMediaStats();
  readonly targets: number[] = [];
  keyFrameRequests = 0;
  #datagrams: Buffer[] = [];
  readonly #receiver = new SrtpReceiver(GCM, KEY, SALT);
  readonly #buffer = Buffer.alloc(2_048);
  readonly media = new MediaSender(
    planAnswer(parseOffer(chromium)),
    { minBitrateKbps: 150, maxBitrateKbps: 600, wallOffsetMs: WALL_OFFSET_MS, cname: 'test' },
    {
      onKeyFrameRequest: () => {
        this.keyFrameRequests++;
      },
      onTargetBitrate: (kbps) => {
        this.targets.push(kbps);
      },
    },
    this.stats,
    () => this.#buffer,
    (datagram, length) => {
      this.#datagrams.push(Buffer.from(datagram.subarray(0, length)));
    },
  );

  constructor(nowMs = 0) {
    this.media.start(new SrtpSender(GCM, KEY, SALT), nowMs);
  }

  get video(): number {
    return this.media.video!.ssrc;
  }
  get rtx(): number {
    return this.media.video!.rtxSsrc;
  }
  get audio(): number {
    return this.media.audio!.ssrc;
  }

  sendFrame(nowMs: number, isKey = false, bytes = FRAME.length): number {
    const frame = bytes === FRAME.length ? FRAME : Buffer.alloc(bytes, 7);
    return this.media.sendVideo(frame, bytes, isKey, nowMs, nowMs);
  }

  sendAudio(nowMs: number): number {
    return this.media.sendAudio(FRAME, 80, nowMs, nowMs, false);
  }

  /** The RTP packets that were sent since the last call. */
  takePackets(): SentPacket[] {
    return this.#take(false).map((datagram) => ({
      ssrc: datagram.readUInt32BE(8),
      sequenceNumber: datagram.readUInt16BE(2),
      isMarked: (datagram[1]! & 0x80) !== 0,
      timestamp: datagram.readUInt32BE(4),
      payload: this.#receiver.unprotectRtp(datagram) ?? Buffer.alloc(0),
      datagram,
    }));
  }

  /**
   * The types of the RTCP packets that were sent since the last call, compound packets unpacked.
   */
  takeRtcpTypes(): number[] {
    return this.#take(true).flatMap((datagram) => {
      const compound = this.#receiver.unprotectRtcp(datagram)!;
      const types: number[] = [];
      for (let at = 0; at < compound.length; at += 4 + compound.readUInt16BE(at + 2) * 4) {
        types.push(compound[at + 1]!);
      }
      return types;
    });
  }

  /** The original sequence numbers of the packets retransmitted since the last call. */
  takeRetransmitted(): number[] {
    return this.takePackets()
      .filter(({ ssrc }) => ssrc === this.rtx)
      .map(({ payload }) => payload.readUInt16BE(0));
  }

  #take(isRtcp: boolean): Buffer[] {
    const matches = (datagram: Buffer): boolean =>
      (datagram[1]! >= 192 && datagram[1]! <= 223) === isRtcp;
    const taken = this.#datagrams.filter(matches);
    this.#datagrams = this.#datagrams.filter((datagram) => !matches(datagram));
    return taken;
  }
}

test('a frame is sent in numbered packets of one timestamp, the last one marked', () => {
  const sender = new Sender();
  assert.equal(sender.sendFrame(0, true), FRAME_PACKETS);
  assert.equal(sender.sendFrame(33), FRAME_PACKETS);
  const packets = sender.takePackets();
  const [first] = packets;
  assert.deepEqual(
    packets.map(({ sequenceNumber }) => (sequenceNumber - first!.sequenceNumber) & 0xffff),
    [0, 1, 2, 3, 4, 5],
  );
  assert.deepEqual(
    packets.map(({ timestamp }) => (timestamp - first!.timestamp) >>> 0),
    [0, 0, 0, 2_970, 2_970, 2_970],
  );
  assert.deepEqual(
    packets.map(({ isMarked }) => isMarked),
    [false, false, true, false, false, true],
  );
  for (const { datagram } of packets) {
    assert.ok(datagram.length <= 1_200, `${datagram.length} bytes`);
  }
  assert.equal(sender.stats.packetsSent, 6);
});

test('nothing is sent before the start and after the stop, which sends BYE', () => {
  const sender = new Sender();
  sender.sendFrame(0, true);
  sender.takePackets();
  sender.media.stop();
  assert.deepEqual(sender.takeRtcpTypes().slice(-1), [BYE]);
  assert.equal(sender.sendFrame(33), 0);
  assert.equal(sender.sendAudio(33), 0);
  sender.media.poll(5_000);
  assert.deepEqual([sender.takePackets(), sender.takeRtcpTypes()], [[], []]);
});

test('a sender report for each stream follows the first packet, then one each second', () => {
  const sender = new Sender();
  sender.media.poll(0);
  assert.deepEqual(sender.takeRtcpTypes(), [], 'no media, no clock to report');
  sender.sendFrame(100, true);
  const reportTimes: number[] = [];
  for (let nowMs = 100; nowMs <= 3_100; nowMs += 50) {
    sender.media.poll(nowMs);
    const reports = sender.takeRtcpTypes().filter((type) => type === SENDER_REPORT);
    if (reports.length > 0) {
      assert.equal(reports.length, 2);
      reportTimes.push(nowMs);
    }
  }
  assert.deepEqual(reportTimes, [100, 1_100, 2_100, 3_100]);
  // Late by up to a second: the same media clock. Beyond: a new one, reported at once.
  sender.media.sendVideo(FRAME, FRAME.length, false, 3_200, 4_000);
  sender.media.poll(4_000);
  assert.deepEqual(sender.takeRtcpTypes(), []);
  sender.media.sendVideo(FRAME, FRAME.length, false, 3_000, 4_050);
  sender.media.poll(4_050);
  assert.equal(sender.takeRtcpTypes().filter((type) => type === SENDER_REPORT).length, 2);
});

test('a NACK is answered once, and again only after 20 ms or half a round trip', () => {
  const sender = new Sender();
  sender.sendFrame(0, true);
  const [first] = sender.takePackets();
  const lost = nack(sender.video, [first!.sequenceNumber]);
  sender.media.receive(lost, 100);
  assert.deepEqual(sender.takeRetransmitted(), [first!.sequenceNumber]);
  sender.media.receive(lost, 119);
  assert.deepEqual(sender.takeRetransmitted(), [], 'the retransmission is on its way');
  sender.media.receive(lost, 120);
  assert.equal(sender.takeRetransmitted().length, 2, 'the retransmission was lost: two at once');

  const lastSr = compactNtp(WALL_OFFSET_MS);
  sender.media.receive(receiverReport(sender.video, { lastSr }), 100);
  assert.ok(Math.abs(sender.stats.roundTripMs - 100) < 0.1, `${sender.stats.roundTripMs} ms`);
  sender.media.receive(lost, 160);
  assert.deepEqual(sender.takeRetransmitted(), [], 'less than half of 100 ms');
  sender.media.receive(lost, 171);
  assert.equal(sender.takeRetransmitted().length, 2);
});

test('a packet is retransmitted eight times at most', () => {
  const sender = new Sender();
  sender.sendFrame(0, true);
  const [first] = sender.takePackets();
  for (let nowMs = 100; nowMs < 3_000; nowMs += 100) {
    sender.media.receive(nack(sender.video, [first!.sequenceNumber]), nowMs);
  }
  assert.equal(sender.takeRetransmitted().length, 8);
  assert.equal(sender.stats.packetsRetransmitted, 8);
});

test('NACKs for unknown streams and for packets out of the history are ignored', () => {
  const sender = new Sender();
  sender.sendFrame(0, true);
  const [first] = sender.takePackets();
  sender.media.receive(nack((sender.video ^ 1) >>> 0, [first!.sequenceNumber]), 50);
  sender.media.receive(nack(sender.video, [first!.sequenceNumber - 1]), 50);
  for (let nowMs = 33; nowMs < 33 * 90; nowMs += 33) {
    sender.sendFrame(nowMs);
  }
  sender.takePackets();
  sender.media.receive(nack(sender.video, [first!.sequenceNumber]), 3_000);
  assert.deepEqual(sender.takeRetransmitted(), [], 'older than 256 packets');
});

/** A frame of 60 packets, all of which the receiver requests at `nowMs`. */
function requestAll(sender: Sender, nowMs: number): void {
  sender.sendFrame(nowMs - 10, true, 70_000);
  const sequenceNumbers = sender.takePackets().map(({ sequenceNumber }) => sequenceNumber);
  assert.ok(sequenceNumbers.length >= 60);
  sender.media.receive(nack(sender.video, sequenceNumbers), nowMs);
}

test('retransmissions are limited by the budget; beyond it the video starts over with a key frame', () => {
  const sender = new Sender();
  requestAll(sender, 1_000);
  const bytes = sender.takePackets().reduce((sum, { datagram }) => sum + datagram.length, 0);
  assert.ok(bytes > 30_000 && bytes < 43_000, `${bytes} bytes of a budget of 40000`);

  assert.equal(sender.sendFrame(1_010), 0, 'the queue drains');
  assert.equal(sender.sendFrame(1_020, true), 0, 'even a key frame waits');
  assert.equal(sender.keyFrameRequests, 0);
  assert.equal(sender.sendFrame(1_249), 0);
  assert.equal(sender.keyFrameRequests, 0);
  assert.equal(sender.sendFrame(1_250), 0, 'drained: only a key frame is of use');
  assert.equal(sender.keyFrameRequests, 1);
  assert.equal(sender.sendFrame(1_300, true), FRAME_PACKETS);
  assert.equal(sender.sendFrame(1_333), FRAME_PACKETS);
});

test('packets from before a recovery are not retransmitted, later ones are', () => {
  const sender = new Sender();
  requestAll(sender, 1_000);
  const lastBefore = (sender.media.video!.nextSequence - 1) & 0xffff;
  sender.sendFrame(1_300, true);
  sender.takePackets();
  const first = (lastBefore + 1) & 0xffff;
  // A second later the budget has room for both.
  sender.media.receive(nack(sender.video, [lastBefore, first]), 2_300);
  assert.deepEqual(sender.takeRetransmitted(), [first]);
});

test('a queue that overflows starts a recovery, which leaves little of the budget', () => {
  const sender = new Sender();
  const reportRoundTrip = (roundTripMs: number, nowMs: number): void => {
    const lastSr = compactNtp(WALL_OFFSET_MS + nowMs - roundTripMs);
    sender.media.receive(receiverReport(sender.video, { lastSr }), nowMs);
  };
  reportRoundTrip(40, 100);
  reportRoundTrip(300, 1_000);
  sender.sendFrame(1_000, true, 10_000);
  const [first] = sender.takePackets();
  for (let n = 0; n < 4; n++) {
    sender.media.receive(nack(sender.video, [first!.sequenceNumber + n]), 1_010 + n * 5);
  }
  assert.equal(sender.takeRetransmitted().length, 4, 'four losses are not a burst');
  sender.media.receive(nack(sender.video, [first!.sequenceNumber + 4]), 1_035);
  assert.equal(sender.takeRetransmitted().length, 0);

  // The queue needs as long as it delays: 260 ms.
  assert.equal(sender.sendFrame(1_290, true), 0);
  assert.ok(sender.sendFrame(1_300, true, 20_000) > 15);
  const sequenceNumbers = sender.takePackets().map(({ sequenceNumber }) => sequenceNumber);
  sender.media.receive(nack(sender.video, sequenceNumbers), 1_310);
  // 3 kB, and a fifth of 600 kbit/s for 0.3 s.
  const bytes = sender.takePackets().reduce((sum, { datagram }) => sum + datagram.length, 0);
  assert.ok(bytes > 3_000 && bytes < 8_000, `${bytes} bytes`);
});

test('losses start duplication, but not while packets queue', () => {
  const duplicates = (roundTripMs: number): number => {
    const sender = new Sender();
    for (const [reportedMs, nowMs] of [
      [40, 100],
      [roundTripMs, 1_000],
    ] as const) {
      const lastSr = compactNtp(WALL_OFFSET_MS + nowMs - reportedMs);
      sender.media.receive(receiverReport(sender.video, { lastSr }), nowMs);
    }
    sender.sendFrame(1_000, true, 10_000);
    const [first] = sender.takePackets();
    for (let n = 0; n < 3; n++) {
      sender.media.receive(nack(sender.video, [first!.sequenceNumber + n]), 1_010 + n * 50);
    }
    sender.sendFrame(1_133);
    sender.takePackets();
    sender.sendFrame(1_166);
    return sender.takeRetransmitted().length;
  };
  assert.equal(duplicates(40), FRAME_PACKETS);
  assert.equal(duplicates(300), 0);
});

test('a repeated report does not renew a round-trip time', () => {
  const sender = new Sender();
  const report = (lastSr: number, nowMs: number): void => {
    sender.media.receive(receiverReport(sender.video, { lastSr }), nowMs);
  };
  report(compactNtp(WALL_OFFSET_MS + 100 - 40), 100);
  const lastSr = compactNtp(WALL_OFFSET_MS + 1_000 - 300);
  report(lastSr, 1_000);
  report(lastSr, 9_000);
  assert.ok(Math.abs(sender.stats.roundTripMs - 300) < 1, `${sender.stats.roundTripMs} ms`);
});

test('PLI and FIR request a key frame each 300 ms at most; none is lost', () => {
  const sender = new Sender();
  sender.media.receive(pli(sender.video), 1_000);
  sender.media.receive(pli(sender.video), 1_100);
  sender.media.receive(fir(sender.video, 1), 1_200);
  assert.equal(sender.keyFrameRequests, 1);
  sender.media.poll(1_299);
  assert.equal(sender.keyFrameRequests, 1);
  sender.media.poll(1_300);
  assert.equal(sender.keyFrameRequests, 2);
  sender.media.receive(fir(sender.video, 1), 2_000);
  assert.equal(sender.keyFrameRequests, 2, 'a FIR that was repeated');
  sender.media.receive(pli((sender.video ^ 1) >>> 0), 2_000);
  assert.equal(sender.keyFrameRequests, 2, 'another stream');
  assert.deepEqual([sender.stats.plisReceived, sender.stats.firsReceived], [2, 1]);
});

test('the level of each audio packet costs no byte beside a short mid', () => {
  const sender = new Sender();
  const bytes = [23, 64].map((level) => {
    sender.media.sendAudio(FRAME, 80, 0, 0, false, level);
    const [{ datagram } = { datagram: Buffer.alloc(0) }] = sender.takePackets();
    assert.equal(datagram[19], level);
    return datagram.length;
  });
  assert.deepEqual(bytes, [116, 116], 'header 20, Opus 80, SRTP 16');
});

test('after three separate losses each packet is sent twice, at half the bitrate', () => {
  const sender = new Sender();
  sender.sendFrame(0, true);
  sender.sendAudio(0);
  const [first] = sender.takePackets();
  for (let n = 0; n < 3; n++) {
    sender.media.receive(nack(sender.video, [first!.sequenceNumber + n]), 100 + n * 50);
  }
  assert.deepEqual(sender.targets, [300]);
  sender.takePackets();
  sender.sendFrame(300);
  sender.sendAudio(300);
  const sent = sender.takePackets().filter(({ ssrc }) => ssrc !== sender.rtx);
  sender.sendFrame(333);
  sender.sendAudio(320);
  const later = sender.takePackets();
  assert.deepEqual(
    later.filter(({ ssrc }) => ssrc === sender.rtx).map(({ payload }) => payload.readUInt16BE(0)),
    sent.filter(({ ssrc }) => ssrc === sender.video).map(({ sequenceNumber }) => sequenceNumber),
    'the packets of the frame before',
  );
  const [copy, next] = later.filter(({ ssrc }) => ssrc === sender.audio);
  const [original] = sent.filter(({ ssrc }) => ssrc === sender.audio).slice(-1);
  assert.deepEqual(copy!.datagram, original!.datagram, 'byte for byte');
  assert.notEqual(next!.sequenceNumber, original!.sequenceNumber);

  const [requested, ...others] = later.filter(({ ssrc }) => ssrc === sender.video);
  sender.media.receive(nack(sender.video, [requested!.sequenceNumber]), 350);
  sender.takePackets();
  sender.sendFrame(366);
  assert.deepEqual(
    sender.takeRetransmitted(),
    others.map(({ sequenceNumber }) => sequenceNumber),
    'not what was retransmitted meanwhile',
  );
});

test('REMB bounds the bitrate only once as much is sent as is aimed at', () => {
  const sender = new Sender();
  sender.sendFrame(0, true);
  sender.media.receive(remb(sender.video, 400_000), 10);
  sender.media.receive(remb(sender.video, 300_000), 20);
  assert.deepEqual(sender.targets, [], 'an estimate of little');
  for (let nowMs = 33; nowMs <= 2_200; nowMs += 33) {
    sender.sendFrame(nowMs);
    sender.media.poll(nowMs);
  }
  sender.media.receive(remb(sender.video, 400_000), 2_210);
  sender.media.receive(remb(sender.video, 300_000), 2_220);
  assert.deepEqual(sender.targets, [300]);
  assert.equal(sender.stats.targetBitrateKbps, 300);
});

test('loss is measured from the reports about video, over about a second', () => {
  const sender = new Sender();
  sender.media.receive(receiverReport(sender.video, { highest: 1_000 }), 0);
  sender.media.receive(receiverReport(sender.audio, { highest: 9_000, lost: 500 }), 500);
  assert.equal(sender.stats.packetsLost, 0);
  sender.media.receive(receiverReport(sender.video, { highest: 1_100, lost: 50 }), 1_000);
  assert.equal(sender.stats.packetsLost, 50);
  assert.equal(sender.stats.fractionLost, 0.5);
  assert.deepEqual(sender.targets, [450], 'half the loss less');
});

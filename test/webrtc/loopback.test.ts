// What an independent WebRTC stack receives: packets, header extensions, reports, retransmissions.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { RtcpSrPacket, type RtpPacket } from 'werift';
import { monotonicMs, wallMs } from '../../src/base/time.ts';
import { PeerPair } from '../harness/peer-pair.ts';
import { until } from '../harness/until.ts';
import { nack } from './rtcp-messages.ts';
import { rtxSsrcOf, ssrcOf } from './sdp/read-answer.ts';

const frameOf = (bytes: number, seed: number): Buffer =>
  Buffer.from(Uint8Array.from({ length: bytes }, (_, index) => (index * 31 + seed * 7) & 255));

/** The frame in these packets: their payloads without the descriptors of RFC 7741. */
const vp8Payload = (packets: readonly RtpPacket[]): Buffer =>
  Buffer.concat(packets.map(({ payload }) => payload.subarray(4)));

test('VP8 frames arrive complete and in order, with the marker on the last packet', async (t) => {
  const pair = await PeerPair.connect(t);
  const frames = [frameOf(9_000, 1), frameOf(400, 2), frameOf(1_167, 3), frameOf(2_500, 4)];
  const counts = frames.map((frame, index) =>
    pair.peer.sendVideo(frame, frame.length, index === 0, (index * 1000) / 30, monotonicMs()),
  );
  const ssrc = ssrcOf(pair.answer, 'video');
  const total = counts.reduce((sum, count) => sum + count, 0);
  await until(() => pair.packetsOf(ssrc).length === total);
  const packets = pair.packetsOf(ssrc);
  packets.forEach(({ header }, index) => {
    assert.equal(header.sequenceNumber, (packets[0]!.header.sequenceNumber + index) & 0xffff);
  });
  const firstTimestamp = packets[0]!.header.timestamp;
  let pictureId = -1;
  frames.forEach((frame, index) => {
    const own = packets.filter(
      ({ header }) => header.timestamp === (firstTimestamp + index * 3000) >>> 0,
    );
    assert.equal(own.length, counts[index]);
    assert.deepEqual(vp8Payload(own), frame);
    own.forEach(({ header, payload }, place) => {
      assert.equal(header.marker, place === own.length - 1);
      assert.equal(payload[0], place === 0 ? 0x90 : 0x80);
      assert.equal(payload[1], 0x80);
      const id = payload.readUInt16BE(2) & 0x7fff;
      if (place === 0 && pictureId >= 0) {
        assert.equal(id, (pictureId + 1) & 0x7fff);
      }
      pictureId = id;
      assert.ok(payload.length <= 1182);
    });
  });
});

test('header extensions have mid, send time and playout delay; of sound its level', async (t) => {
  const pair = await PeerPair.connect(t);
  const frame = frameOf(500, 1);
  const before = wallMs();
  pair.peer.sendVideo(frame, frame.length, true, 0, monotonicMs());
  await until(() => pair.rtp.length > 0);
  const extension = (uri: string): Buffer => {
    const id = Number(new RegExp(`a=extmap:(\\d+) ${uri}\r`).exec(pair.answer)?.[1]);
    return pair.rtp.at(-1)!.header.extensions.find((one) => one.id === id)!.payload;
  };
  assert.equal(
    extension('urn:ietf:params:rtp-hdrext:sdes:mid').toString(),
    /a=mid:(\S+)/.exec(pair.answer)![1],
  );
  const sent =
    extension('http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time').readUIntBE(0, 3) /
    262_144;
  assert.ok(Math.abs(sent - ((before / 1000) % 64)) < 0.5, `send time ${sent}`);
  assert.equal(
    extension('http://www.webrtc.org/experiments/rtp-hdrext/playout-delay').readUIntBE(0, 3),
    (4 << 12) | 50,
  );
  pair.peer.sendAudio(frame, 60, 0, monotonicMs(), true, 0x80 | 23);
  await until(() => pair.rtp.length > 1);
  assert.deepEqual(extension('urn:ietf:params:rtp-hdrext:ssrc-audio-level'), Buffer.of(0x80 | 23));
});

test('sender reports map both streams to one clock', async (t) => {
  const pair = await PeerPair.connect(t);
  pair.stopPolling();
  const startMs = monotonicMs();
  const frame = frameOf(300, 1);
  for (let index = 0; index < 3; index++) {
    pair.peer.sendVideo(
      frame,
      frame.length,
      index === 0,
      5_000 + index * 100,
      startMs + index * 100,
    );
    pair.peer.sendAudio(frame, 60, 5_000 + index * 100, startMs + index * 100, index === 0);
  }
  await until(() => pair.rtp.length === 6);
  const video = pair.packetsOf(ssrcOf(pair.answer, 'video'));
  const audio = pair.packetsOf(ssrcOf(pair.answer, 'audio'));
  assert.deepEqual(
    audio.map(({ header }) => header.marker),
    [true, false, false],
  );
  pair.peer.poll(startMs + 1_200);
  await until(() => pair.rtcp.filter((packet) => packet instanceof RtcpSrPacket).length >= 2);
  const reports = pair.rtcp.filter((packet) => packet instanceof RtcpSrPacket);
  const lastOf = (ssrc: number): RtcpSrPacket =>
    reports.filter((report) => report.ssrc === ssrc).at(-1)!;
  // The media time at the NTP time of a report. The first packet has the media time 5000 ms.
  const mediaMs = (report: RtcpSrPacket, first: RtpPacket, rate: number): number =>
    5_000 + (((report.senderInfo.rtpTimestamp - first.header.timestamp) | 0) * 1000) / rate;
  const videoReport = lastOf(video[0]!.header.ssrc);
  const audioReport = lastOf(audio[0]!.header.ssrc);
  assert.equal(videoReport.senderInfo.ntpTimestamp, audioReport.senderInfo.ntpTimestamp);
  assert.ok(
    Math.abs(mediaMs(videoReport, video[0]!, 90_000) - mediaMs(audioReport, audio[0]!, 48_000)) <
      0.1,
  );
  assert.ok(Math.abs(mediaMs(videoReport, video[0]!, 90_000) - 6_200) < 0.1);
  const ntpMs =
    Number(videoReport.senderInfo.ntpTimestamp >> 32n) * 1000 -
    2_208_988_800_000 +
    (Number(videoReport.senderInfo.ntpTimestamp & 0xffff_ffffn) / 2 ** 32) * 1000;
  assert.ok(
    Math.abs(ntpMs - (wallMs() - monotonicMs() + startMs + 1_200)) < 50,
    'NTP time is the wall clock',
  );
  assert.equal(videoReport.senderInfo.packetCount, 3);
  assert.equal(audioReport.senderInfo.octetCount, 180);
});

test('a lost packet is retransmitted as RTX with its original sequence number', async (t) => {
  const pair = await PeerPair.connect(t);
  const frame = frameOf(3_000, 1);
  pair.peer.sendVideo(frame, frame.length, true, 0, monotonicMs());
  const ssrc = ssrcOf(pair.answer, 'video');
  await until(() => pair.packetsOf(ssrc).length === 3);
  const lost = pair.packetsOf(ssrc)[1]!;
  pair.sendRtcp(nack(ssrc, [lost.header.sequenceNumber]));
  const rtx = rtxSsrcOf(pair.answer);
  await until(() => pair.packetsOf(rtx).length === 1);
  const again = pair.packetsOf(rtx)[0]!;
  assert.equal(again.payload.readUInt16BE(0), lost.header.sequenceNumber);
  assert.deepEqual(again.payload.subarray(2), lost.payload);
  assert.equal(again.header.timestamp, lost.header.timestamp);
  assert.equal(again.header.marker, lost.header.marker);
  assert.equal(again.header.payloadType, 97);
});

test('without RTX the same packet is retransmitted, byte for byte', async (t) => {
  const pair = await PeerPair.connect(t, { rtx: false });
  assert.doesNotMatch(pair.answer, /rtx/);
  const datagrams: Buffer[] = [];
  const { connection } = pair.transport.iceTransport;
  connection.onData.subscribe((data) => {
    datagrams.push(Buffer.from(data));
  });
  const frame = frameOf(700, 1);
  pair.peer.sendVideo(frame, frame.length, true, 0, monotonicMs());
  const ssrc = ssrcOf(pair.answer, 'video');
  await until(() => pair.packetsOf(ssrc).length === 1);
  pair.sendRtcp(nack(ssrc, [pair.packetsOf(ssrc)[0]!.header.sequenceNumber]));
  const media = (): Buffer[] => datagrams.filter((data) => data.length > 700);
  await until(() => media().length === 2);
  assert.deepEqual(media()[1], media()[0]);
});

test('a flood of NACKs is answered within the budget', async (t) => {
  const pair = await PeerPair.connect(t);
  const frame = frameOf(100_000, 1);
  const packets = pair.peer.sendVideo(frame, frame.length, true, 0, monotonicMs());
  const ssrc = ssrcOf(pair.answer, 'video');
  await until(() => pair.packetsOf(ssrc).length === packets);
  const ids = pair.packetsOf(ssrc).map(({ header }) => header.sequenceNumber);
  for (let round = 0; round < 50; round++) {
    pair.sendRtcp(nack(ssrc, ids));
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
  await until(() => pair.peer.stats.nacksReceived === 50 * ids.length);
  // A burst of 40 kB, and a fifth of at most 1500 kbit/s for the half second this takes (on a slow
  // machine three).
  assert.ok(
    pair.peer.stats.packetsRetransmitted * 1_180 <= 40_000 + 0.2 * 1_500 * 125 * 3,
    `${pair.peer.stats.packetsRetransmitted} retransmissions`,
  );
  assert.ok(pair.peer.stats.packetsRetransmitted >= 20);
  assert.ok(pair.peer.isConnected);
});

test('a packet that is requested again is sent twice, and eight times at most', async (t) => {
  const pair = await PeerPair.connect(t);
  const frame = frameOf(300, 1);
  pair.peer.sendVideo(frame, frame.length, true, 0, monotonicMs());
  const ssrc = ssrcOf(pair.answer, 'video');
  await until(() => pair.packetsOf(ssrc).length === 1);
  const sent: number[] = [];
  for (let round = 1; round <= 8; round++) {
    pair.sendRtcp(nack(ssrc, [pair.packetsOf(ssrc)[0]!.header.sequenceNumber]));
    await until(() => pair.peer.stats.nacksReceived === round);
    sent.push(pair.peer.stats.packetsRetransmitted);
    await new Promise((resolve) => {
      setTimeout(resolve, 30);
    });
  }
  assert.deepEqual(sent, [1, 3, 5, 7, 8, 8, 8, 8]);
});

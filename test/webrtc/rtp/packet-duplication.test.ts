// Packet duplication: when it starts and stops, and what it sends over a real connection.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { monotonicMs } from '../../../src/base/time.ts';
import { PacketDuplication } from '../../../src/webrtc/rtp/packet-duplication.ts';
import { PeerPair } from '../../harness/peer-pair.ts';
import { until } from '../../harness/until.ts';
import { nack } from '../rtcp-messages.ts';
import { rtxSsrcOf, ssrcOf } from '../sdp/read-answer.ts';

test('duplication starts after a few separate losses, and stops on a clean path and at an overflow', () => {
  const duplication = new PacketDuplication();
  duplication.onFirstNack(0);
  for (let n = 0; n < 10; n++) {
    duplication.onFirstNack(5); // ten packets of one burst
  }
  duplication.onFirstNack(400);
  assert.equal(duplication.isOn, false);
  duplication.onFirstNack(800);
  assert.equal(duplication.isOn, true, 'three losses within a second');
  for (let second = 1; second <= 20; second++) {
    duplication.onLoss(second % 2 === 0 ? 0.1 : 0, second * 1000);
  }
  assert.equal(duplication.isOn, true, '5 % on average');
  for (let second = 21; second <= 31; second++) {
    duplication.onLoss(0, second * 1000);
  }
  assert.equal(duplication.isOn, false);
  for (let second = 32; second <= 35; second++) {
    duplication.onLoss(0.05, second * 1000);
  }
  assert.equal(duplication.isOn, true, 'loss reports alone are enough');
  for (let second = 36; second <= 38; second++) {
    duplication.onLoss(0.5, second * 1000);
  }
  assert.equal(duplication.isOn, false, 'a queue overflows');
  for (const atMs of [38_100, 38_300, 38_500]) {
    duplication.onFirstNack(atMs);
  }
  assert.equal(duplication.isOn, false, 'paused after the overflow');
});

test('after losses each media packet is sent again one frame later; not on a clean path', async (t) => {
  const pair = await PeerPair.connect(t);
  pair.stopPolling();
  const video = ssrcOf(pair.answer, 'video');
  const audio = ssrcOf(pair.answer, 'audio');
  const rtx = rtxSsrcOf(pair.answer);
  const datagrams: Buffer[] = [];
  pair.transport.iceTransport.connection.onData.subscribe((data) => {
    datagrams.push(Buffer.from(data));
  });
  const audioDatagrams = (): string[] =>
    datagrams
      .filter((data) => data.length > 100 && data.readUInt32BE(8) === audio)
      .map((data) => data.toString('hex'));
  const frame = Buffer.alloc(3_000, 7);
  const send = (n: number): void => {
    pair.peer.sendVideo(frame, frame.length, n === 0, n * 33, monotonicMs());
    pair.peer.sendAudio(frame, 90, n * 20, monotonicMs(), false);
  };
  send(0);
  send(1);
  await until(() => pair.packetsOf(video).length === 6 && audioDatagrams().length === 2);
  assert.equal(pair.packetsOf(rtx).length, 0);
  const first = pair.packetsOf(video)[0]!.header.sequenceNumber;
  for (let n = 0; n < 3; n++) {
    pair.sendRtcp(nack(video, [first + n]));
    await until(() => pair.peer.stats.nacksReceived === n + 1);
    await new Promise((resolve) => {
      setTimeout(resolve, 60);
    });
  }
  assert.equal(pair.peer.stats.targetBitrateKbps, 300);
  send(2);
  send(3);
  await until(() => pair.packetsOf(video).length === 12 && audioDatagrams().length === 6);
  await until(() => pair.packetsOf(rtx).length === 10);
  assert.deepEqual(
    pair.packetsOf(rtx).map(({ payload }) => payload.readUInt16BE(0)),
    [0, 1, 2, 2, 3, 4, 5, 6, 7, 8].map((n) => (first + n) & 0xffff),
    'the requested packets, then those of the previous frames',
  );
  const [, second, , third] = audioDatagrams();
  assert.equal(audioDatagrams()[2], second, 'audio: the same datagram');
  assert.notEqual(third, second);
});

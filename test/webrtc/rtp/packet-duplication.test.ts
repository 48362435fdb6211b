// A path that loses packets: the loss is measured over enough of them, and everything is sent twice while that helps, within what the path carries.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { monotonicMs } from '../../../src/base/time.ts';
import { BitrateController } from '../../../src/webrtc/congestion/bitrate-controller.ts';
import { LossWindow } from '../../../src/webrtc/congestion/loss-window.ts';
import { PacketDuplication } from '../../../src/webrtc/rtp/packet-duplication.ts';
import { PeerPair } from '../../harness/peer-pair.ts';
import { until } from '../../harness/until.ts';

const ssrcOf = (answer: string, kind: 'video' | 'audio'): number =>
  Number(/a=ssrc:(\d+)/.exec(answer.slice(answer.indexOf(`m=${kind}`)))?.[1]);

function nack(ssrc: number, id: number): Buffer {
  const out = Buffer.alloc(16);
  out[0] = 0x81;
  out[1] = 205;
  out.writeUInt16BE(3, 2);
  out.writeUInt32BE(1, 4);
  out.writeUInt32BE(ssrc, 8);
  out.writeUInt16BE(id, 12);
  return out;
}

test('loss is a share of some 40 packets, not of the two in the last report', () => {
  const window = new LossWindow();
  assert.equal(window.add(0, 1_000, 0), undefined);
  assert.equal(window.add(1, 1_002, 300), undefined, 'one of two packets is not 50 %');
  assert.equal(window.add(2, 1_039, 1_200), undefined);
  assert.equal(window.add(4, 1_080, 1_300), 0.05);
  assert.equal(window.add(3, 1_160, 2_300), 0, 'a packet that came after all');
  assert.equal(window.add(4, 1_170, 3_500), undefined);
  assert.equal(window.add(4, 1_170, 5_400), 0.1, 'few packets are judged after three seconds');
  assert.equal(window.add(0, 7, 9_000), undefined, 'numbers that began anew');
  assert.equal(window.add(900, 100, 11_000), 1);
  assert.equal(window.add(900, 100, 15_000), undefined, 'nothing was sent');
});

test('duplication begins with a few losses apart from each other, ends on a clean path and at an overflow', () => {
  const duplication = new PacketDuplication();
  duplication.onFirstNack(0);
  for (let n = 0; n < 10; n++) {
    duplication.onFirstNack(5);
  } // ten packets of one burst
  duplication.onFirstNack(400);
  assert.equal(duplication.isOn, false);
  duplication.onFirstNack(800);
  assert.equal(duplication.isOn, true, 'three within a second');
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
  assert.equal(duplication.isOn, true, 'reports alone are enough');
  for (let second = 36; second <= 38; second++) {
    duplication.onLoss(0.5, second * 1000);
  }
  assert.equal(duplication.isOn, false, 'a queue overflows');
  for (const atMs of [38_100, 38_300, 38_500]) {
    duplication.onFirstNack(atMs);
  }
  assert.equal(duplication.isOn, false, 'not again at once');
});

test('what is sent twice is sent at half the rate, and only where that fits', () => {
  const controller = new BitrateController(150, 600, 600);
  let nowMs = 0;
  controller.isDuplicating = true;
  assert.equal(controller.targetKbps, 300);
  controller.onRemb(1_200_000, 600, false, (nowMs += 1_000));
  controller.onRemb(1_000_000, 600, false, (nowMs += 1_000));
  assert.equal(controller.targetKbps, 500);
  controller.onRemb(220_000, 600, false, (nowMs += 1_000));
  assert.deepEqual(
    [controller.isDuplicating, controller.targetKbps],
    [true, 150],
    'an estimate can be a third too low',
  );
  controller.onRemb(190_000, 600, false, (nowMs += 1_000));
  assert.deepEqual([controller.isDuplicating, controller.targetKbps], [false, 190]);
  controller.onRemb(1_000_000, 600, false, (nowMs += 1_000));
  controller.isDuplicating = false;
  assert.equal(controller.targetKbps, 600);
});

test('after some losses each packet comes again a frame later, picture and sound; not on a clean path', async (t) => {
  const pair = await PeerPair.connect(t);
  pair.stopPolling();
  const video = ssrcOf(pair.answer, 'video');
  const audio = ssrcOf(pair.answer, 'audio');
  const rtx = Number(/a=ssrc-group:FID \d+ (\d+)/.exec(pair.answer)?.[1]);
  const datagrams: Buffer[] = [];
  pair.transport.iceTransport.connection.onData.subscribe((data) => {
    datagrams.push(Buffer.from(data));
  });
  const sound = (): string[] =>
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
  await until(() => pair.packetsOf(video).length === 6 && sound().length === 2);
  assert.equal(pair.packetsOf(rtx).length, 0);
  const first = pair.packetsOf(video)[0]!.header.sequenceNumber;
  for (let n = 0; n < 3; n++) {
    pair.sendRtcp(nack(video, (first + n) & 0xffff));
    await until(() => pair.peer.stats.nacksReceived === n + 1);
    await new Promise((resolve) => {
      setTimeout(resolve, 60);
    });
  }
  assert.equal(pair.peer.stats.targetBitrateKbps, 300);
  send(2);
  send(3);
  await until(() => pair.packetsOf(video).length === 12 && sound().length === 6);
  await until(() => pair.packetsOf(rtx).length === 10);
  assert.deepEqual(
    pair.packetsOf(rtx).map(({ payload }) => payload.readUInt16BE(0)),
    [0, 1, 2, 2, 3, 4, 5, 6, 7, 8].map((n) => (first + n) & 0xffff),
    'what was asked for, then the packets of the frames before',
  );
  const [, second, , third] = sound();
  assert.equal(sound()[2], second, 'sound: the same datagram');
  assert.notEqual(third, second);
});

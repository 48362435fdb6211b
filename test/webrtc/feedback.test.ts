// RTCP feedback over a real connection: key-frame requests and REMB.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { monotonicMs, sleep } from '../../src/base/time.ts';
import { PeerPair } from '../harness/peer-pair.ts';
import { until } from '../harness/until.ts';
import { fir, pli, remb } from './rtcp-messages.ts';
import { ssrcOf } from './sdp/read-answer.ts';

test('PLI and FIR request a key frame each 300 ms at most; none is lost', async (t) => {
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
  assert.equal(pair.listener.keyFrameRequests, 2, 'the request that was too early');
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
  assert.equal(pair.peer.stats.plisReceived, 11, 'requests about other streams are ignored');
});

test('REMB bounds the bitrate', async (t) => {
  const pair = await PeerPair.connect(t);
  const ssrc = ssrcOf(pair.answer);
  // An estimate counts once as much is sent as the target.
  const frame = Buffer.alloc(3_000, 7);
  const startMs = monotonicMs();
  for (let n = 0; monotonicMs() - startMs < 1_300; n++, await sleep(33)) {
    pair.peer.sendVideo(frame, frame.length, n === 0, n * 33, monotonicMs());
  }
  pair.sendRtcp(remb(ssrc, 400_000));
  pair.sendRtcp(remb(ssrc, 300_000));
  await until(() => pair.listener.bitrates.at(-1) === 300);
  pair.sendRtcp(remb(ssrc, 20_000));
  await until(() => pair.listener.bitrates.at(-1) === 150);
  pair.sendRtcp(remb(ssrc, 10_000_000));
  await until(() => pair.listener.bitrates.at(-1) === 600);
  assert.equal(pair.peer.stats.targetBitrateKbps, 600);
});

// The socket that peers share: ports, candidates, routing, limits and leaks.
import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'vitest';
import { RtpHeader, RtpPacket } from 'werift';
import { parseOffer } from '../../src/webrtc/sdp/offer.ts';
import { createSharedMetrics, SharedMetrics } from '../../src/metrics/shared-metrics.ts';
import { createEndpoint } from '../../src/webrtc/endpoint.ts';
import type { RtcPeer } from '../../src/webrtc/rtc-peer.ts';
import { Attacker } from '../harness/attacker.ts';
import { PeerPair, PEER_OPTIONS, RecordingListener } from '../harness/peer-pair.ts';
import { until } from '../harness/until.ts';
import * as offers from './sdp/offers.ts';

const LOOPBACK = { bindAddress: '127.0.0.1', port: 0, announcedAddresses: [] } as const;

test('workers with the same port range get one port each; an error says that none is left', async (t) => {
  const first = await createEndpoint(LOOPBACK);
  t.onTestFinished(() => first.close());
  const range = { from: first.port, to: first.port + 1 };
  const second = await createEndpoint({ ...LOOPBACK, port: range });
  t.onTestFinished(() => second.close());
  assert.equal(second.port, first.port + 1);
  await assert.rejects(createEndpoint({ ...LOOPBACK, port: range }), /UDP_PORTS/);
  await assert.rejects(
    createEndpoint({ ...LOOPBACK, bindAddress: 'localhost' }),
    /not an IP address/,
  );
});

test('a sibling has a port and peers of its own, and the same certificate', async (t) => {
  const endpoint = await createEndpoint({ ...LOOPBACK, announcedAddresses: ['203.0.113.5'] });
  t.onTestFinished(() => endpoint.close());
  const sibling = await endpoint.openSibling();
  const [one, other] = [endpoint, sibling].map((each) => {
    const peer = each.createPeer({ ...PEER_OPTIONS, remote: 'sfu' }, new RecordingListener());
    return peer.offer({ streamId: 's', audioTrackId: 'a' });
  });
  const portOf = (sdp: string): number => Number(/ udp \d+ 203\.0\.113\.5 (\d+) /i.exec(sdp)![1]);
  const fingerprintOf = (sdp: string): string => /^a=fingerprint:.*$/m.exec(sdp)![0];
  assert.deepEqual([portOf(one!), portOf(other!)], [endpoint.port, sibling.port]);
  assert.notEqual(endpoint.port, sibling.port);
  assert.equal(fingerprintOf(one!), fingerprintOf(other!));
  assert.deepEqual([endpoint.peerCount, sibling.peerCount], [1, 1]);
  await sibling.close();
  assert.deepEqual([endpoint.peerCount, sibling.peerCount], [1, 0]);
});

test('candidates are the announced addresses, the bound one, or those of the machine', async (t) => {
  const open = async (
    bindAddress: string,
    announcedAddresses: readonly string[],
  ): Promise<readonly string[]> => {
    const endpoint = await createEndpoint({ bindAddress, port: 0, announcedAddresses });
    t.onTestFinished(() => endpoint.close());
    assert.ok(endpoint.candidates.every(({ port }) => port === endpoint.port));
    return endpoint.candidates.map(({ address }) => address);
  };
  assert.deepEqual(await open('127.0.0.1', []), ['127.0.0.1']);
  assert.deepEqual(await open('0.0.0.0', ['203.0.113.5', '198.51.100.7']), [
    '203.0.113.5',
    '198.51.100.7',
  ]);
  const machine = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ family }) => family === 'IPv4')
    .map(({ address }) => address);
  assert.deepEqual((await open('0.0.0.0', [])).toSorted(), machine.slice(0, 8).toSorted());
});

test('each peer on a socket gets its own media only', async (t) => {
  const endpoint = await createEndpoint(LOOPBACK);
  t.onTestFinished(() => endpoint.close());
  const pairs = await Promise.all(
    Array.from({ length: 4 }, (_, index) =>
      PeerPair.connect(t, { codec: index % 2 === 0 ? 'vp8' : 'h264' }, endpoint),
    ),
  );
  assert.equal(endpoint.peerCount, 4);
  pairs.forEach(({ peer }, index) => peer.sendAudio(Buffer.alloc(40, index), 40, 0, 0, true));
  await until(() => pairs.every(({ rtp }) => rtp.length === 1));
  pairs.forEach(({ rtp }, index) => {
    assert.deepEqual(rtp[0]!.payload, Buffer.alloc(40, index));
  });
  await pairs[0]!.peer.close();
  assert.equal(endpoint.peerCount, 3);
  pairs[0]!.sendRaw(Buffer.from([0x80, 200, 0, 1, 0, 0, 0, 0]));
  await until(
    () => endpoint.stats.rejected.unknown_source > 0,
    5_000,
    'the rejection of a late datagram',
  );
  pairs[1]!.peer.sendAudio(Buffer.alloc(50, 9), 50, 20, 20, false);
  await until(() => pairs[1]!.rtp.length === 2);
});

test('an exception on a datagram ends its peer only, and is reported', async (t) => {
  const reported: unknown[] = [];
  const endpoint = await createEndpoint({
    ...LOOPBACK,
    onPeerError: (error, sessionId) => {
      reported.push(String(error), sessionId);
    },
  });
  t.onTestFinished(() => endpoint.close());
  const bystander = await PeerPair.connect(t, {}, endpoint);
  const pair = await PeerPair.connect(t, {}, endpoint);
  (pair.peer as RtcPeer).onRtcp = () => {
    throw new TypeError('a defect');
  };
  pair.sendRtcp(Buffer.from([0x80, 201, 0, 1, 0, 0, 0, 1]));
  assert.equal(await pair.listener.closed.promise, 'failed');
  assert.deepEqual(reported, ['TypeError: a defect', PEER_OPTIONS.sessionId]);
  assert.equal(bystander.peer.isConnected, true);
  assert.equal(endpoint.peerCount, 1);
});

test('a flood of microphone packets is dropped before it is decoded', async (t) => {
  const pair = await PeerPair.connect(t, { audio: 'sendrecv' });
  const { srtp } = pair.transport;
  for (let index = 0; index < 1_000; index++) {
    pair.sendRaw(
      srtp.encrypt(
        Buffer.alloc(20, 1),
        new RtpPacket(
          new RtpHeader({
            sequenceNumber: index,
            timestamp: index * 960,
            payloadType: 111,
            ssrc: 5,
          }),
          Buffer.alloc(0),
        ).header,
      ),
    );
    if (index % 50 === 0) {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  }
  await until(() => pair.endpoint.stats.rejected.rate_limited + pair.listener.audio.length > 900);
  assert.ok(
    pair.listener.audio.length >= 200 && pair.listener.audio.length <= 600,
    `${pair.listener.audio.length}`,
  );
  assert.equal(pair.peer.isConnected, true);
});

test('thousands of peers that never connected leak nothing', async (t) => {
  const endpoint = await createEndpoint(LOOPBACK);
  t.onTestFinished(() => endpoint.close());
  const cycle = async (): Promise<void> => {
    const peer = endpoint.createPeer(PEER_OPTIONS, new RecordingListener());
    await peer.answer(parseOffer(offers.chromium));
    await peer.close();
  };
  for (let count = 0; count < 300; count++) {
    await cycle();
  }
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  for (let count = 0; count < 2_000; count++) {
    await cycle();
  }
  globalThis.gc?.();
  assert.equal(endpoint.peerCount, 0);
  const grown = (process.memoryUsage().rss - before) / 1e6;
  assert.ok(grown < 150, `${grown.toFixed(0)} MB for 2000 sessions of 0.3 MB each`);
});

test('datagrams are counted for the metrics', async (t) => {
  const metrics = new SharedMetrics(createSharedMetrics());
  const endpoint = await createEndpoint({ ...LOOPBACK, metrics });
  t.onTestFinished(() => endpoint.close());
  const stranger = await Attacker.against(t, endpoint);
  for (let count = 0; count < 3; count++) {
    await stranger.send(Buffer.alloc(20, 0x80));
  }
  await stranger.send(Buffer.alloc(3_000, 0x80));
  await until(() => endpoint.stats.received === 4);
  assert.equal(endpoint.stats.rejected.unknown_source, 3);
  assert.equal(endpoint.stats.rejected.too_large, 1);
});

test('IPv4 clients connect to a dual-stack socket', async (t) => {
  const hasLoopback6 = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .some(({ address }) => address === '::1');
  if (!hasLoopback6) {
    t.skip('no IPv6 loopback here');
    return;
  }
  const endpoint = await createEndpoint({ bindAddress: '::', port: 0, announcedAddresses: [] });
  t.onTestFinished(() => endpoint.close());
  assert.ok(endpoint.candidates.some(({ address }) => address === '127.0.0.1'));
  // werift connects over IPv4. The socket reports its address as ::ffff:127.0.0.1.
  const pair = await PeerPair.connect(t, {}, endpoint);
  pair.peer.sendAudio(Buffer.alloc(40, 1), 40, 0, 0, true);
  await until(() => pair.rtp.length === 1);
});

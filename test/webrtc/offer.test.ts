// Offers of ours, answered by an independent WebRTC stack: full ICE towards an SFU, ICE-lite
// towards a client.
import assert from 'node:assert/strict';
import { test, type TestContext } from 'vitest';
import type { RtpPacket, RTCPeerConnection } from 'werift';
import { monotonicMs, sleep } from '../../src/base/time.ts';
import { createEndpoint, type Endpoint } from '../../src/webrtc/endpoint.ts';
import type { OfferRequest, Peer, PeerOptions } from '../../src/webrtc/peer.ts';
import { parseCandidate } from '../../src/webrtc/sdp/candidate.ts';
import { parseAnswer } from '../../src/webrtc/sdp/offer.ts';
import { PEER_OPTIONS, RecordingListener } from '../harness/peer-pair.ts';
import { until } from '../harness/until.ts';
import { createWeriftConnection } from '../harness/werift-connection.ts';
import { nack } from './rtcp-messages.ts';

const REQUEST = {
  streamId: 'avatar',
  audioTrackId: 'cid-audio',
  videoTrackId: 'cid-video',
  hasData: true,
} as const satisfies OfferRequest;

/** A peer that offers, and werift that answers. */
class OfferPair {
  readonly listener = new RecordingListener();
  readonly rtp: RtpPacket[] = [];
  readonly peer: Peer;
  readonly remote: RTCPeerConnection;

  private constructor(endpoint: Endpoint, options: Partial<PeerOptions>) {
    this.remote = createWeriftConnection({ video: false, audio: false });
    this.peer = endpoint.createPeer({ ...PEER_OPTIONS, ...options }, this.listener);
  }

  static async open(t: TestContext, options: Partial<PeerOptions> = {}): Promise<OfferPair> {
    const endpoint = await createEndpoint({
      bindAddress: '127.0.0.1',
      port: 0,
      announcedAddresses: [],
    });
    const pair = new OfferPair(endpoint, options);
    const { peer, remote } = pair;
    remote.onTrack.subscribe((track) => {
      track.onReceiveRtp.subscribe((packet) => {
        pair.rtp.push(packet);
      });
    });
    const polling = setInterval(() => {
      peer.poll(monotonicMs());
    }, 20);
    t.onTestFinished(async () => {
      clearInterval(polling);
      await peer.close();
      await remote.close();
      await endpoint.close();
    });
    return pair;
  }

  /**
   * @param isHidden werift gets no candidates of ours: the first check must come from us
   * @returns offer and answer
   */
  async negotiate(
    request: OfferRequest,
    isHidden = false,
  ): Promise<{ offer: string; answer: string }> {
    const offer = this.peer.offer(request);
    const seen = isHidden
      ? offer.replaceAll(/^a=(candidate:.*|end-of-candidates)\r\n/gm, '')
      : offer;
    await this.remote.setRemoteDescription({ type: 'offer', sdp: seen });
    for (const { connection } of this.remote.iceTransports) {
      // werift asks a public STUN server even with an empty list.
      (connection as unknown as { stunServer: undefined }).stunServer = undefined;
    }
    await this.remote.setLocalDescription(await this.remote.createAnswer());
    return { offer, answer: this.remote.localDescription?.sdp ?? '' };
  }

  send(count: number): void {
    for (let index = 0; index < count; index++) {
      const frame = Buffer.alloc(800, index);
      this.peer.sendVideo(frame, frame.length, index === 0, index * 33, monotonicMs());
      this.peer.sendAudio(frame, 60, index * 20, monotonicMs(), index === 0);
    }
  }
}

for (const remote of ['sfu', 'client'] as const) {
  test(`an offer to a ${remote}: connects, sends both tracks`, async (t) => {
    const pair = await OfferPair.open(t, { remote });
    const { offer, answer } = await pair.negotiate(REQUEST);
    assert.equal(/a=ice-lite/.test(offer), remote === 'client');
    assert.match(offer, /a=msid:avatar cid-audio/);
    assert.match(offer, /a=msid:avatar cid-video/);
    assert.match(offer, /a=setup:passive/);
    pair.peer.accept(parseAnswer(answer));
    assert.equal(pair.peer.videoCodec, 'vp8');
    assert.deepEqual(pair.peer.mids, { audio: '0', video: '1' });
    await pair.listener.connected.promise;
    pair.send(5);
    const ssrcOf = (kind: string): number =>
      Number(new RegExp(`m=${kind}[^]*?a=ssrc:(\\d+)`).exec(offer)![1]);
    await until(() => pair.rtp.length >= 10);
    const level = Number(
      /a=extmap:(\d+) urn:ietf:params:rtp-hdrext:ssrc-audio-level/.exec(answer)?.[1],
    );
    const sound = pair.rtp.find(({ header }) => header.ssrc === ssrcOf('audio'))!;
    assert.ok(sound.header.extensions.some(({ id }) => id === level));
    for (const kind of ['audio', 'video']) {
      assert.equal(pair.rtp.filter(({ header }) => header.ssrc === ssrcOf(kind)).length, 5);
    }
    const [first] = pair.rtp.filter(({ header }) => header.ssrc === ssrcOf('video'));
    const transport = pair.remote.dtlsTransports[0]!;
    for (let n = 0; n < 3; n++) {
      const lost = nack(ssrcOf('video'), [first!.header.sequenceNumber + n]);
      await transport.iceTransport.connection.send(transport.srtcp.encrypt(lost));
      await until(() => pair.peer.stats.nacksReceived === n + 1);
      await sleep(60);
    }
    pair.send(4);
    // An SFU gets what it asked for, a client on a path with losses every packet twice.
    const { packetsRetransmitted } = pair.peer.stats;
    assert.ok(remote === 'sfu' ? packetsRetransmitted === 3 : packetsRetransmitted > 6);
  });
}

test('candidates may be trickled, before the answer and after it', async (t) => {
  for (const isEarly of [true, false]) {
    const pair = await OfferPair.open(t, { remote: 'sfu' });
    const { answer } = await pair.negotiate(REQUEST, true);
    const lines = [...answer.matchAll(/^a=(candidate:.*)\r$/gm)].map((match) => match[1]!);
    const without = answer.replaceAll(/^a=(candidate:.*|end-of-candidates)\r\n/gm, '');
    const candidates = lines.flatMap((line) => parseCandidate(line) ?? []);
    assert.ok(candidates.length > 0);
    if (!isEarly) {
      pair.peer.accept(parseAnswer(without));
    }
    for (const candidate of candidates) {
      assert.ok(pair.peer.addCandidate(candidate));
    }
    if (isEarly) {
      pair.peer.accept(parseAnswer(without));
    }
    await pair.listener.connected.promise;
  }
});

test('later offers: a track stops and comes back, ICE restarts, the streams stay', async (t) => {
  const pair = await OfferPair.open(t, { remote: 'sfu' });
  const first = await pair.negotiate(REQUEST);
  pair.peer.accept(parseAnswer(first.answer));
  await pair.listener.connected.promise;

  const stopped = await pair.negotiate({ streamId: 'avatar', audioTrackId: 'cid-audio' });
  assert.match(stopped.offer, /^m=video [^]*a=inactive/m);
  pair.peer.accept(parseAnswer(stopped.answer));
  assert.deepEqual(pair.peer.mids, { audio: '0', video: undefined });
  assert.equal(pair.peer.sendVideo(Buffer.alloc(100), 100, true, 0, monotonicMs()), 0);

  const requests = pair.listener.keyFrameRequests;
  const again = await pair.negotiate(REQUEST);
  pair.peer.accept(parseAnswer(again.answer));
  assert.ok(pair.listener.keyFrameRequests > requests);
  assert.deepEqual(again.offer.match(/a=ssrc:\d+/g), first.offer.match(/a=ssrc:\d+/g));

  const ufragOf = (sdp: string): string => /a=ice-ufrag:(\S+)/.exec(sdp)![1]!;
  const restart = await pair.negotiate({ ...REQUEST, restartsIce: true });
  assert.notEqual(ufragOf(restart.offer), ufragOf(first.offer));
  pair.send(1);
  await until(() => pair.rtp.length >= 2, 5_000, 'media during the restart');
  pair.peer.accept(parseAnswer(restart.answer));
  const heardMs = pair.peer.lastHeardMs;
  await until(() => pair.peer.lastHeardMs > heardMs);
  pair.send(3);
  await until(() => pair.rtp.length >= 8);
  assert.ok(!pair.listener.isClosed);
});

test('an answer that does not fit the offer is refused, and changes nothing', async (t) => {
  const pair = await OfferPair.open(t, { remote: 'sfu' });
  const { answer } = await pair.negotiate(REQUEST);
  const refused: readonly [string, RegExp][] = [
    [answer.replaceAll('a=setup:active', 'a=setup:passive'), /a=setup must be active/],
    [answer.replaceAll(/a=mid:1/g, 'a=mid:9'), /a=mid of m-line 2 has changed/],
    [answer.replaceAll(/a=fingerprint:.*\r\n/g, ''), /no a=fingerprint/],
    [answer.replaceAll(/a=ice-pwd:.*\r\n/g, ''), /a=ice-pwd is missing/],
    [answer.replace(/^m=application[^]*/m, ''), /2 m-lines for 3/],
    [answer.replace(/^m=audio/m, 'm=video'), /m-line 1 is video, not audio/],
    [answer.replaceAll(/^m=(\w+) \d+/gm, 'm=$1 0'), /refuses every m-line/],
  ];
  for (const [sdp, reason] of refused) {
    assert.throws(() => {
      pair.peer.accept(parseAnswer(sdp));
    }, reason);
  }
  pair.peer.accept(parseAnswer(answer));
  await pair.listener.connected.promise;
  assert.throws(() => {
    pair.peer.accept(parseAnswer(answer));
  }, /no offer waits/);
});

test('candidates that cannot be used are not', () => {
  const usable = 'candidate:1 1 UDP 2130706431 192.0.2.7 50000 typ host generation 0';
  assert.deepEqual(parseCandidate(usable), {
    address: '192.0.2.7',
    port: 50_000,
    priority: 2_130_706_431,
  });
  assert.equal(
    parseCandidate('a=candidate:x 1 udp 5 2001:DB8:0:0::1 9 typ relay raddr 0.0.0.0 rport 0')
      ?.address,
    '2001:db8::1',
  );
  for (const line of [
    usable.replace('UDP', 'TCP'),
    usable.replace(' 1 UDP', ' 2 UDP'),
    usable.replace('192.0.2.7', '0e8e9ef5-6f48-4f8a.local'),
    usable.replace('192.0.2.7', '224.0.0.1'),
    usable.replace('192.0.2.7', '0.0.0.0'),
    usable.replace('192.0.2.7', '255.255.255.255'),
    usable.replace('192.0.2.7', 'ff02::1'),
    usable.replace('192.0.2.7', 'fe80::1'),
    usable.replace('50000', '0'),
    usable.replace('50000', '65536'),
    usable.replace('2130706431', '4294967296'),
    `${usable} ${'x'.repeat(600)}`,
    '',
  ]) {
    assert.equal(parseCandidate(line), undefined, line);
  }
});

// The receiver that counts most: a real Chromium decodes both codecs, keeps lips and sound
// together, and repairs losses.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test, type TestContext } from 'vitest';
import type { Page } from 'puppeteer-core';
import { patience } from '../harness/machine.ts';
import { parseOffer } from '../../src/webrtc/sdp/offer.ts';
import { monotonicMs } from '../../src/base/time.ts';
import type { VideoCodec } from '../../src/media/coded-frame.ts';
import { createEndpoint, type Endpoint } from '../../src/webrtc/endpoint.ts';
import type { Peer } from '../../src/webrtc/peer.ts';
import type { TestBrowser } from '../harness/browser.ts';
import {
  acceptAnswer,
  offerOf,
  statsOf,
  type InboundStats,
  type OfferOptions,
  type PageStats,
} from '../harness/page-connection.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { Broadcast } from '../harness/broadcast.ts';
import { makeMedia, type TestMedia } from '../harness/test-media.ts';
import { Nat } from '../harness/nat.ts';
import { until } from '../harness/until.ts';
import { type RecordingListener } from '../harness/peer-pair.ts';

let browser: TestBrowser;
const media = new Map<VideoCodec, TestMedia>();
beforeAll(async () => {
  browser = await openBrowser();
  for (const codec of ['vp8', 'h264'] as const) {
    media.set(codec, await makeMedia(codec));
  }
});
afterAll(() => browser?.close());

/** A page that is sent test media. */
class Session {
  readonly page: Page;
  readonly broadcast: Broadcast;
  private constructor(page: Page, broadcast: Broadcast) {
    this.page = page;
    this.broadcast = broadcast;
  }
  get listener(): RecordingListener {
    return this.broadcast.listener;
  }
  get peer(): Peer {
    return this.broadcast.peer;
  }

  static async open(
    t: TestContext,
    options: OfferOptions,
    endpoint?: Endpoint,
    nat?: Nat,
  ): Promise<Session> {
    const own =
      endpoint ??
      (await createEndpoint({ bindAddress: '127.0.0.1', port: 0, announcedAddresses: [] }));
    const session = new Session(
      await browser.newPage(),
      new Broadcast(own, media.get(options.codec === 'video/h264' ? 'h264' : 'vp8')!),
    );
    t.onTestFinished(async () => {
      session.broadcast.stop();
      await session.page.close();
      await own.close();
    });
    const answer = await session.peer.answer(parseOffer(await offerOf(session.page, options)));
    const port = nat?.port ?? own.port;
    await acceptAnswer(session.page, answer.replaceAll(` ${own.port} `, ` ${port} `));
    await session.listener.connected.promise;
    return session;
  }

  async statsWhen(condition: (stats: PageStats) => boolean, limitMs: number): Promise<PageStats> {
    const deadline = monotonicMs() + limitMs;
    for (;;) {
      const stats = await statsOf(this.page);
      if (condition(stats)) {
        return stats;
      }
      if (monotonicMs() > deadline) {
        throw new Error(`not so after ${limitMs} ms: ${JSON.stringify(stats)}`);
      }
      await new Promise((resolve) => {
        setTimeout(resolve, 100);
      });
    }
  }
}

/** How long the browser held a track back between two reports, on average. */
const bufferedMs = (from: InboundStats, to: InboundStats): number =>
  (1000 * (to.jitterBufferDelay - from.jitterBufferDelay)) /
  (to.jitterBufferEmittedCount - from.jitterBufferEmittedCount);

for (const codec of ['vp8', 'h264'] as const) {
  test(`Chromium decodes ${codec}, hears Opus, and plays both together`, async (t) => {
    const session = await Session.open(t, { codec: `video/${codec}`, dataChannel: true });
    assert.equal(session.peer.videoCodec, codec);
    await session.statsWhen(({ video }) => (video?.framesDecoded ?? 0) >= 30, 15_000);
    const before = await statsOf(session.page);
    const offsets: number[] = [];
    for (let sample = 0; sample < 12; sample++) {
      await new Promise((resolve) => {
        setTimeout(resolve, 250);
      });
      const { video, audio } = await statsOf(session.page);
      if (
        video?.estimatedPlayoutTimestamp !== undefined &&
        audio?.estimatedPlayoutTimestamp !== undefined
      ) {
        offsets.push(video.estimatedPlayoutTimestamp - audio.estimatedPlayoutTimestamp);
      }
    }
    const { state, channel, video, audio } = await statsOf(session.page);
    assert.equal(state, 'connected');
    assert.equal(channel, 'open');
    assert.ok(video!.framesDecoded > 120, `${video!.framesDecoded} frames`);
    assert.equal(video!.frameWidth, 512);
    assert.equal(video!.packetsLost, 0);
    assert.ok(audio!.totalAudioEnergy! > 0.001, 'the tone is heard');
    // Positive: lips ahead of the sound, by Chromium's own estimate. On a busy machine its buffer of
    // sound grows, and holds the sound back by up to 100 ms more than the picture: not our doing, and
    // taken out. Wrong sender reports would show as hundreds. The rendered picture and sound are
    // compared in browser-media.test.ts.
    const median = offsets.toSorted((a, b) => a - b)[offsets.length >> 1]!;
    const heldMs = bufferedMs(before.audio!, audio!) - bufferedMs(before.video!, video!);
    console.info(
      `${codec}: lips ahead of sound by ${median} ms (${offsets.join(' ')}), of which Chromium's ` +
        `buffers ${heldMs.toFixed(0)} ms`,
    );
    const aheadMs = median - heldMs;
    assert.ok(Math.abs(aheadMs) < 80, `${aheadMs} ms; offsets ${offsets.join(' ')}`);
    assert.ok(session.peer.stats.roundTripMs > 0 && session.peer.stats.roundTripMs < 500);
    assert.equal(session.peer.stats.datagramsRejected, 0);
  });
}

test('losses of 5 % are repaired without a freeze, with RTX and without', async (t) => {
  for (const withoutRtx of [false, true]) {
    const endpoint = await createEndpoint({
      bindAddress: '127.0.0.1',
      port: 0,
      announcedAddresses: [],
    });
    const session = await Session.open(t, { withoutRtx, codec: 'video/vp8' }, endpoint);
    await session.statsWhen(({ video }) => (video?.framesDecoded ?? 0) >= 15, 15_000);
    const lossy = endpoint as unknown as {
      send: (datagram: Buffer, length: number, address: string, port: number) => void;
    };
    const send = lossy.send.bind(endpoint);
    let dropped = 0;
    let seen = 0;
    lossy.send = (datagram, length, address, port) => {
      const isMedia =
        (datagram[0]! >> 6 === 2 && (datagram[1]! & 127) < 64) || (datagram[1]! & 127) >= 96;
      if (isMedia && ++seen % 20 === 0) {
        dropped++;
        return;
      }
      send(datagram, length, address, port);
    };
    const from = await statsOf(session.page);
    const to = await session.statsWhen(
      ({ video }) => (video?.framesDecoded ?? 0) >= from.video!.framesDecoded + 120,
      15_000 * patience(),
    );
    console.info(
      `${withoutRtx ? 'without' : 'with'} RTX: ${dropped} ` +
        `dropped, ${session.peer.stats.packetsRetransmitted} sent ` +
        `again, ${to.video!.pliCount} PLI`,
    );
    assert.ok(dropped > 15);
    // None on an idle machine. On a busy one this process or the browser may stall; without repairs
    // there is one for nearly every packet that is lost.
    const freezes = (to.video!.freezeCount ?? 0) - (from.video!.freezeCount ?? 0);
    assert.ok(freezes < patience(), `${freezes} freezes`);
    assert.ok(session.peer.stats.packetsRetransmitted >= dropped / 2);
    if (!withoutRtx) {
      assert.ok(to.video!.retransmittedPacketsReceived! > 0);
    }
  }
});

test('a browser whose address changes goes on receiving within seconds', async (t) => {
  const endpoint = await createEndpoint({
    bindAddress: '127.0.0.1',
    port: 0,
    announcedAddresses: [],
  });
  const nat = await Nat.before(t, endpoint);
  const session = await Session.open(t, { codec: 'video/vp8' }, endpoint, nat);
  const before = await session.statsWhen(({ video }) => (video?.framesDecoded ?? 0) >= 15, 15_000);
  await nat.rebind();
  const startMs = monotonicMs();
  const decoded = before.video!.framesDecoded + 60;
  await session.statsWhen(({ video }) => (video?.framesDecoded ?? 0) >= decoded, 12_000);
  console.info(`60 frames later after ${(monotonicMs() - startMs).toFixed(0)} ms`);
  assert.equal(session.listener.isClosed, false);
});

test("a browser's microphone arrives as Opus packets, and its going away is noticed at once", async (t) => {
  const session = await Session.open(t, { microphone: true, codec: 'video/vp8' });
  await until(() => session.listener.audio.length >= 25, 15_000, 'microphone packets');
  const { audio } = session.listener;
  for (let index = 1; index < 25; index++) {
    assert.equal(audio[index]!.sequenceNumber, (audio[index - 1]!.sequenceNumber + 1) & 0xffff);
    assert.equal((audio[index]!.timestamp - audio[index - 1]!.timestamp) >>> 0, 960);
  }
  const startMs = monotonicMs();
  await session.page.evaluate(() => {
    (globalThis as unknown as { pc: RTCPeerConnection }).pc.close();
  });
  assert.equal(await session.listener.closed.promise, 'closed');
  assert.ok(monotonicMs() - startMs < 2_000 * patience());
});

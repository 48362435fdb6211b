/// <reference lib="dom" />
// Several offers of one Chromium connection: sections are added, stopped, resumed; ICE restarts.
import assert from 'node:assert/strict';
import { test, vi } from 'vitest';
import type { Page } from 'puppeteer-core';
import { createEndpoint } from '../../src/webrtc/endpoint.ts';
import { parseAnswer, parseOffer } from '../../src/webrtc/sdp/offer.ts';
import { Broadcast } from '../harness/broadcast.ts';
import { patience } from '../harness/machine.ts';
import { acceptAnswer, statsOf } from '../harness/page-connection.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { makeMedia } from '../harness/test-media.ts';

type PageGlobals = { pc: RTCPeerConnection };

/** Changes the page's connection, and creates the next offer. */
const nextOffer = (page: Page, change: 'data' | 'media' | 'stop' | 'resume' | 'restart') =>
  page.evaluate(async (what) => {
    const globals = globalThis as unknown as PageGlobals;
    const pc = (globals.pc ??= new RTCPeerConnection());
    const [video] = pc.getTransceivers();
    if (what === 'data') {
      pc.createDataChannel('events');
    } else if (what === 'media') {
      pc.addTransceiver('video', { direction: 'recvonly' });
      pc.addTransceiver('audio', { direction: 'recvonly' });
      const element = document.createElement('video');
      element.autoplay = true;
      document.body.append(element);
      pc.addEventListener('track', ({ streams }) => {
        element.srcObject = streams[0] ?? null;
      });
    } else if (what === 'restart') {
      pc.restartIce();
    } else {
      video!.direction = what === 'stop' ? 'inactive' : 'recvonly';
    }
    await pc.setLocalDescription(await pc.createOffer());
    return pc.localDescription?.sdp ?? '';
  }, change);

test('Chromium adds media, stops and resumes it, and restarts ICE on one connection', async (t) => {
  const browser = await openBrowser();
  const page = await browser.newPage();
  const endpoint = await createEndpoint({
    bindAddress: '127.0.0.1',
    port: 0,
    announcedAddresses: [],
  });
  const broadcast = new Broadcast(endpoint, await makeMedia('vp8'));
  t.onTestFinished(async () => {
    broadcast.stop();
    await page.close();
    await endpoint.close();
    await browser.close();
  });
  const { peer, listener } = broadcast;
  const negotiate = async (change: Parameters<typeof nextOffer>[1]): Promise<string> => {
    const offer = parseOffer(await nextOffer(page, change));
    const answer = await peer.answer(offer, { allowsNoMedia: true });
    await acceptAnswer(page, answer);
    return answer;
  };
  const framesDecoded = async (): Promise<number> =>
    (await statsOf(page)).video?.framesDecoded ?? 0;
  const moreFrames = async (): Promise<void> => {
    const before = await framesDecoded();
    await vi.waitUntil(async () => (await framesDecoded()) > before + 20, {
      timeout: 15_000 * patience(),
      interval: 100,
    });
  };

  await negotiate('data');
  await listener.connected.promise;
  assert.deepEqual(peer.mids, { audio: undefined, video: undefined });
  await negotiate('media');
  await moreFrames();
  const { mids } = peer;

  await negotiate('stop');
  const stoppedAt = peer.stats.packetsSent;
  assert.equal(peer.sendVideo(Buffer.alloc(500), 500, true, 0, 0), 0);
  assert.equal(peer.mids.video, undefined);
  const requests = listener.keyFrameRequests;
  await negotiate('resume');
  assert.ok(listener.keyFrameRequests > requests, 'a key frame is requested');
  assert.deepEqual(peer.mids, mids);
  await moreFrames();
  assert.ok(peer.stats.packetsSent > stoppedAt);

  const ufragOf = (sdp: string): string => /a=ice-ufrag:(\S+)/.exec(sdp)![1]!;
  const first = ufragOf(await negotiate('resume'));
  const second = ufragOf(await negotiate('restart'));
  assert.notEqual(second, first);
  await moreFrames();
  assert.equal((await statsOf(page)).state, 'connected');
  assert.ok(!listener.isClosed);
});

for (const remote of ['client', 'sfu'] as const) {
  test(`Chromium answers an offer of ours, as to a ${remote}`, async (t) => {
    const browser = await openBrowser();
    const page = await browser.newPage();
    const endpoint = await createEndpoint({
      bindAddress: '127.0.0.1',
      port: 0,
      announcedAddresses: [],
    });
    const broadcast = new Broadcast(endpoint, await makeMedia('vp8'), undefined, remote);
    t.onTestFinished(async () => {
      broadcast.stop();
      await page.close();
      await endpoint.close();
      await browser.close();
    });
    const { peer } = broadcast;
    const ids = { streamId: 'avatar', audioTrackId: 'a', videoTrackId: 'v' };
    const offer = peer.offer({ ...ids, videoCodecs: ['h264', 'vp8'], hasData: true });
    const answer = await page.evaluate(async (sdp) => {
      const pc = new RTCPeerConnection();
      Object.assign(globalThis, { pc });
      const element = document.createElement('video');
      element.autoplay = true;
      document.body.append(element);
      pc.addEventListener('track', ({ streams }) => {
        element.srcObject = streams[0] ?? null;
      });
      await pc.setRemoteDescription({ type: 'offer', sdp });
      // VP8 alone: the other codec of the offer is not taken.
      const [, video] = pc.getTransceivers();
      const { codecs } = RTCRtpReceiver.getCapabilities('video')!;
      video!.setCodecPreferences(codecs.filter(({ mimeType }) => /vp8|rtx/i.test(mimeType)));
      await pc.setLocalDescription(await pc.createAnswer());
      return pc.localDescription?.sdp ?? '';
    }, offer);
    peer.accept(parseAnswer(answer));
    assert.equal(peer.videoCodec, 'vp8');
    await vi.waitUntil(async () => ((await statsOf(page)).video?.framesDecoded ?? 0) > 30, {
      timeout: 15_000 * patience(),
      interval: 100,
    });
    assert.ok(((await statsOf(page)).audio?.packetsReceived ?? 0) > 10);
  });
}

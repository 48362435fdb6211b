// Firefox, with NSS's DTLS, its own ICE and usrsctp: connects, decodes, opens its data channel, and
// its leaving is noticed.
import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'vitest';
import { parseOffer } from '../../src/webrtc/sdp/offer.ts';
import { createEndpoint } from '../../src/webrtc/endpoint.ts';
import { Broadcast } from '../harness/broadcast.ts';
import { FIREFOX, startFirefox } from '../harness/browser.ts';
import { acceptAnswer, offerOf, statsOf } from '../harness/page-connection.ts';
import { makeMedia } from '../harness/test-media.ts';

// Firefox does not speak to loopback addresses, so this needs another one of the machine's.
const hasNetwork = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .some(({ internal, family }) => !internal && family === 'IPv4');
const skip =
  FIREFOX === undefined
    ? 'Firefox is not installed'
    : hasNetwork
      ? false
      : 'no network but loopback';

test('Firefox decodes VP8, hears Opus and opens its data channel', async (t) => {
  t.skip(Boolean(skip), String(skip));
  const endpoint = await createEndpoint({
    bindAddress: '0.0.0.0',
    port: 0,
    announcedAddresses: [],
  });
  t.onTestFinished(() => endpoint.close());
  const browser = await startFirefox();
  t.onTestFinished(() => browser.close());
  const broadcast = new Broadcast(endpoint, await makeMedia('vp8'));
  t.onTestFinished(() => {
    broadcast.stop();
  });
  const page = await browser.newPage();
  await acceptAnswer(
    page,
    await broadcast.peer.answer(parseOffer(await offerOf(page, { dataChannel: true }))),
  );
  await broadcast.listener.connected.promise;
  let stats = await statsOf(page);
  for (let tries = 0; tries < 100 && (stats.video?.framesDecoded ?? 0) < 60; tries++) {
    await new Promise((resolve) => {
      setTimeout(resolve, 100);
    });
    stats = await statsOf(page);
  }
  assert.ok(stats.video!.framesDecoded >= 60, JSON.stringify(stats));
  assert.ok(stats.audio!.totalAudioEnergy! > 0.001);
  assert.equal(stats.channel, 'open');
  assert.ok(
    stats.video!.pliCount! <= 2,
    `${stats.video!.pliCount} PLI: more than for a first key frame that came before ` +
      'Firefox was ready',
  );
  assert.equal(broadcast.peer.stats.datagramsRejected, 0);
  await page.evaluate(() => {
    (globalThis as unknown as { pc: { close(): void } }).pc.close();
  });
  assert.equal(await broadcast.listener.closed.promise, 'closed');
});

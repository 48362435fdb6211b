/// <reference lib="dom" />
// Data channels with Chromium, both ways: reliable ones on a path that loses a fifth of the packets,
// and one whose messages may be lost.
import assert from 'node:assert/strict';
import { test, vi } from 'vitest';
import { monotonicMs } from '../../src/base/time.ts';
import { createEndpoint } from '../../src/webrtc/endpoint.ts';
import type { DataChannel } from '../../src/webrtc/sctp/data-channel.ts';
import { parseOffer } from '../../src/webrtc/sdp/offer.ts';
import { loseData } from '../harness/lossy-data.ts';
import { patience } from '../harness/machine.ts';
import { acceptAnswer } from '../harness/page-connection.ts';
import { PEER_OPTIONS, RecordingListener } from '../harness/peer-pair.ts';
import { openBrowser } from '../harness/shared-browser.ts';
import { until } from '../harness/until.ts';

const MESSAGES = 28;
const MESSAGE_BYTES = 15_000;

/** What the page keeps: byte 0 of each message, and whether all bytes were alike. */
interface PageGlobals {
  pc: RTCPeerConnection;
  reliable: RTCDataChannel;
  lossy: RTCDataChannel;
  received: Record<string, { first: number; isWhole: boolean; bytes: number }[]>;
}

/** What our side has received. */
class DataListener extends RecordingListener {
  readonly messages: { readonly label: string; readonly data: Buffer; readonly isText: boolean }[] =
    [];
  onMessage({ label }: DataChannel, data: Buffer, isText: boolean): void {
    this.messages.push({ label, data, isText });
  }
  labelled(label: string): readonly Buffer[] {
    return this.messages.filter((message) => message.label === label).map(({ data }) => data);
  }
}

for (const loss of [0, 0.2]) {
  test(`13 s of speech both ways with Chromium, ${loss * 100} % lost`, async (t) => {
    const browser = await openBrowser();
    const page = await browser.newPage();
    const endpoint = await createEndpoint({
      bindAddress: '127.0.0.1',
      port: 0,
      announcedAddresses: [],
    });
    const listener = new DataListener();
    const peer = endpoint.createPeer(PEER_OPTIONS, listener);
    const polling = setInterval(() => {
      peer.poll(monotonicMs());
    }, 10);
    t.onTestFinished(async () => {
      clearInterval(polling);
      await page.close();
      await endpoint.close();
      await browser.close();
    });
    const offer = await page.evaluate(async () => {
      const pc = new RTCPeerConnection();
      const reliable = pc.createDataChannel('_reliable');
      const lossy = pc.createDataChannel('_lossy', { ordered: false, maxRetransmits: 0 });
      const received: PageGlobals['received'] = {};
      pc.addEventListener('datachannel', ({ channel }) => {
        channel.binaryType = 'arraybuffer';
        channel.addEventListener('message', ({ data }: MessageEvent<ArrayBuffer>) => {
          const bytes = new Uint8Array(data);
          const first = bytes[0] ?? 0;
          const isWhole = bytes.every((byte) => byte === first);
          (received[channel.label] ??= []).push({ first, isWhole, bytes: bytes.length });
        });
      });
      Object.assign(globalThis, { pc, reliable, lossy, received });
      await pc.setLocalDescription(await pc.createOffer());
      return pc.localDescription?.sdp ?? '';
    });
    await acceptAnswer(page, await peer.answer(parseOffer(offer), { allowsNoMedia: true }));
    const ours = peer.createChannel('ours');
    const oursLossy = peer.createChannel('oursLossy', { isOrdered: false, maxRetransmits: 0 });
    ours.send(Buffer.alloc(3, 99));
    await listener.connected.promise;
    const receivedOf = (label: string): Promise<PageGlobals['received'][string]> =>
      page.evaluate((name) => (globalThis as unknown as PageGlobals).received[name] ?? [], label);
    const wait = { timeout: 60_000 * patience(), interval: 50 };
    await vi.waitUntil(async () => (await receivedOf('ours')).length === 1, wait);

    const lost = loseData(endpoint, peer, loss);
    // Chromium's sender takes 19 s for all of them at 20 %.
    const theirs = loss === 0 ? MESSAGES : 6;
    const startMs = performance.now();
    const sendLossy = async (): Promise<void> => {
      for (let index = 0; index < MESSAGES; index++) {
        assert.ok(oursLossy.send(Buffer.alloc(400, index)));
      }
      await page.evaluate((count) => {
        for (let index = 0; index < count; index++) {
          (globalThis as unknown as PageGlobals).lossy.send(new Uint8Array(400).fill(index));
        }
      }, theirs);
    };
    for (let index = 0; index < MESSAGES; index++) {
      assert.ok(ours.send(Buffer.alloc(MESSAGE_BYTES, index)));
    }
    await page.evaluate(
      (count, bytes) => {
        const { reliable } = globalThis as unknown as PageGlobals;
        for (let index = 0; index < count; index++) {
          reliable.send(new Uint8Array(bytes).fill(index));
        }
        reliable.send('the end');
      },
      theirs,
      MESSAGE_BYTES,
    );
    if (loss > 0) {
      await sendLossy();
    }
    await vi.waitUntil(async () => (await receivedOf('ours')).length === MESSAGES + 1, wait);
    const oursMs = Math.round(performance.now() - startMs);
    await until(() => listener.labelled('_reliable').length === theirs + 1, wait.timeout);
    const theirsMs = Math.round(performance.now() - startMs);
    if (loss === 0) {
      // Alone: beside the burst of 420 kB a busy kernel may drop one, and nobody repeats it.
      await sendLossy();
      await until(() => listener.labelled('_lossy').length === theirs, wait.timeout);
      await vi.waitUntil(async () => (await receivedOf('oursLossy')).length === MESSAGES, wait);
    }
    console.info(`${loss * 100} %: ours ${oursMs} ms, theirs ${theirsMs} ms, ${lost()} lost`);

    listener.labelled('_reliable').forEach((data, index) => {
      const expected = index < theirs ? Buffer.alloc(MESSAGE_BYTES, index) : 'the end';
      assert.deepEqual(data, Buffer.from(expected));
    });
    assert.equal(listener.messages.filter(({ isText }) => isText).length, 1);
    const messages = (await receivedOf('ours')).slice(1);
    messages.forEach((message, index) => {
      assert.deepEqual(message, { first: index, isWhole: true, bytes: MESSAGE_BYTES });
    });
    // Nothing of what may be lost comes twice.
    for (const numbers of [
      listener.labelled('_lossy').map((data) => data[0]!),
      (await receivedOf('oursLossy')).map(({ first }) => first),
    ]) {
      assert.equal(new Set(numbers).size, numbers.length);
      assert.ok(numbers.length > 0);
    }
    assert.ok(peer.isConnected);
  });
}

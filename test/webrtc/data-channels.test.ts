// Data channels with an independent stack, both ways, with and without losses.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { DataChannel } from '../../src/webrtc/sctp/data-channel.ts';
import { loseData } from '../harness/lossy-data.ts';
import { patience } from '../harness/machine.ts';
import { PeerPair, RecordingListener } from '../harness/peer-pair.ts';
import { until } from '../harness/until.ts';

const MESSAGES = 28;
/** werift's sender waits for a time-out at nearly every loss: 18 s for 28 messages at 20 %. */
const THEIR_MESSAGES = 5;
const message = (index: number): Buffer =>
  Buffer.from(Uint8Array.from({ length: 15_000 }, (_, at) => (at * 31 + index * 7) & 255));

/** What our side has received. */
class DataListener extends RecordingListener {
  readonly channels: DataChannel[] = [];
  readonly messages: { readonly label: string; readonly data: Buffer }[] = [];
  onChannel(channel: DataChannel): void {
    this.channels.push(channel);
  }
  onMessage({ label }: DataChannel, data: Buffer): void {
    this.messages.push({ label, data });
  }
}

for (const loss of [0, 0.2]) {
  test(`13 s of speech to werift, and some back, ${loss * 100} % lost`, async (t) => {
    const listener = new DataListener();
    const pair = await PeerPair.connect(t, { dataChannel: true, listener });
    // The channel that werift has opened.
    await until(() => listener.channels.length === 1, 10_000 * patience());
    const [theirs] = listener.channels;
    assert.equal(theirs!.label, 'events');
    const own = pair.peer.createChannel('ours');
    const received: Buffer[] = [];
    pair.client.onDataChannel.subscribe((channel) => {
      channel.onMessage.subscribe((data) => {
        received.push(Buffer.from(data));
      });
    });
    own.send(Buffer.from('first'));
    await until(() => received.length === 1, 10_000 * patience());

    const lost = loseData(pair.endpoint, pair.peer, loss);
    const startMs = performance.now();
    const remote = pair.client.sctpTransport!.channelByLabel('events')!;
    for (let index = 0; index < MESSAGES; index++) {
      assert.ok(own.send(message(index)));
    }
    for (let index = 0; index < THEIR_MESSAGES; index++) {
      remote.send(message(index));
    }
    await until(() => received.length === MESSAGES + 1, 60_000 * patience(), 'ours');
    const oursMs = Math.round(performance.now() - startMs);
    await until(() => listener.messages.length === THEIR_MESSAGES, 60_000 * patience(), 'theirs');
    const theirsMs = Math.round(performance.now() - startMs);
    console.info(`${loss * 100} %: ours ${oursMs} ms, theirs ${theirsMs} ms, ${lost()} lost`);
    for (let index = 0; index < MESSAGES; index++) {
      assert.deepEqual(received[index + 1], message(index));
    }
    listener.messages.forEach((each, index) => {
      assert.deepEqual(each, { label: 'events', data: message(index) });
    });
    await until(() => own.bufferedBytes === 0, 10_000 * patience());
  });
}

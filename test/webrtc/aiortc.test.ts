// aiortc, a second independent stack with OpenSSL's DTLS: decodes our media, exchanges messages over
// data channels, sends audio.
import assert from 'node:assert/strict';
import { execFileSync, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'vitest';
import { parseOffer } from '../../src/webrtc/sdp/offer.ts';
import type { VideoCodec } from '../../src/media/coded-frame.ts';
import { createEndpoint } from '../../src/webrtc/endpoint.ts';
import type { DataChannel } from '../../src/webrtc/sctp/data-channel.ts';
import { Broadcast } from '../harness/broadcast.ts';
import { RecordingListener } from '../harness/peer-pair.ts';
import { makeMedia } from '../harness/test-media.ts';
import { until } from '../harness/until.ts';

interface Message {
  readonly event: string;
  readonly sdp?: string;
  readonly kind?: string;
  readonly count?: number;
  readonly size?: readonly number[];
  readonly state?: string;
}

const CLIENT = new URL('../harness/aiortc_client.py', import.meta.url).pathname;

/**
 * A Python with aiortc. Debian's own has the package, and need not be the first one on the path.
 */
const PYTHON = ['python3', '/usr/bin/python3'].find((python) => {
  try {
    execFileSync(python, ['-c', 'import aiortc'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
});

class AiortcClient {
  readonly messages: Message[] = [];
  readonly #process: ChildProcessWithoutNullStreams;
  errors = '';

  constructor(t: TestContext, wish: { codec: VideoCodec; microphone: boolean }) {
    this.#process = spawn(PYTHON!, [CLIENT, JSON.stringify(wish)]);
    createInterface(this.#process.stdout).on('line', (line) => {
      this.messages.push(JSON.parse(line) as Message);
    });
    this.#process.stderr.on('data', (data) => {
      this.errors += String(data);
    });
    const gone = new Promise((resolve) => {
      this.#process.once('exit', resolve);
    });
    t.onTestFinished(async () => {
      this.#process.kill('SIGKILL');
      await gone;
    });
  }

  send(message: unknown): void {
    this.#process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  async waitFor(wanted: (message: Message) => boolean, what: string): Promise<Message> {
    try {
      await until(() => this.messages.some(wanted), 20_000, what);
    } catch (error) {
      throw new Error(`${String(error)}\n${JSON.stringify(this.messages)}\n${this.errors}`, {
        cause: error,
      });
    }
    return this.messages.find(wanted)!;
  }
}

/** Keeps the texts of data channels. */
class MessageListener extends RecordingListener {
  readonly messages: string[] = [];
  onMessage(_channel: DataChannel, data: Buffer): void {
    this.messages.push(data.toString());
  }
}

/** From one packet to many. */
const ECHOED = [1, 500, 1_200, 15_000, 65_000].map((bytes) => 'm'.repeat(bytes));

const skip = PYTHON !== undefined ? false : 'aiortc is not installed (Debian: python3-aiortc)';

for (const codec of ['vp8', 'h264'] as const) {
  test(`aiortc receives ${codec} and Opus`, async (t) => {
    t.skip(Boolean(skip), String(skip));
    const endpoint = await createEndpoint({
      bindAddress: '0.0.0.0',
      port: 0,
      announcedAddresses: [],
    });
    t.onTestFinished(() => endpoint.close());
    const media = await makeMedia(codec, 2, 30);
    const client = new AiortcClient(t, { codec, microphone: codec === 'vp8' });
    const offer = await client.waitFor(({ event }) => event === 'offer', 'an offer');
    const listener = new MessageListener();
    const broadcast = new Broadcast(endpoint, media, listener);
    t.onTestFinished(() => {
      broadcast.stop();
    });
    const { peer } = broadcast;
    client.send({ sdp: await peer.answer(parseOffer(offer.sdp!)) });
    assert.equal(peer.videoCodec, codec);
    await client.waitFor(({ state }) => state === 'connected', 'a connection');
    await client.waitFor(({ event }) => event === 'channel', 'the data channel');
    await until(() => listener.messages.length === 1, 5_000, 'its message');
    assert.deepEqual(listener.messages, ['hello']);
    const own = peer.createChannel('ours');
    for (const text of ECHOED) {
      assert.ok(own.send(Buffer.from(text), true));
    }
    await until(() => listener.messages.length === 1 + ECHOED.length, 20_000, 'the echoes');
    assert.deepEqual(listener.messages.slice(1), ECHOED);
    assert.deepEqual(
      (await client.waitFor(({ kind, count }) => kind === 'video' && count === 60, '60 pictures'))
        .size,
      [512, 512],
    );
    assert.deepEqual(
      (await client.waitFor(({ kind, count }) => kind === 'audio' && count === 60, 'audio')).size,
      [48_000, 960],
    );
    if (codec === 'vp8') {
      assert.ok(listener.audio.length > 20, 'its audio arrives');
    }
    await until(() => peer.stats.roundTripMs > 0, 5_000, 'receiver reports');
    const { unknown_source, ...rejected } = endpoint.stats.rejected;
    assert.ok(
      unknown_source <= 4 && Object.values(rejected).every((count) => count === 0),
      JSON.stringify(endpoint.stats.rejected),
    );
    client.send({ event: 'close' });
    assert.equal(await listener.closed.promise, 'closed', 'its close_notify ends the peer');
  });
}

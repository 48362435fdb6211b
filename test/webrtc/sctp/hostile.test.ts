// What an association keeps and does when the other side means harm.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'vitest';
import { DataChannels } from '../../../src/webrtc/sctp/data-channel.ts';
import {
  CHUNK,
  chunkOf,
  chunksOf,
  DATA_FLAG,
  initBody,
  packetOf,
  parseInit,
} from '../../../src/webrtc/sctp/packets.ts';
import { shortestMs } from '../../harness/machine.ts';

const TAG = 77;
const { begins, ends, unordered } = DATA_FLAG;

/** One end, and an attacker who keeps to the protocol as far as a test wants. */
class Attack {
  readonly channels: DataChannels;
  sent: Buffer[] = [];
  messages = 0;
  opened = 0;
  #tag = 0;
  #tsn = 1_000;

  constructor() {
    this.channels = new DataChannels(
      (packet) => this.sent.push(packet),
      () => 0,
      {
        onChannel: () => this.opened++,
        onMessage: () => this.messages++,
      },
    );
    const init = {
      tag: TAG,
      window: 1 << 20,
      outboundStreams: 65_535,
      inboundStreams: 65_535,
      tsn: this.#tsn,
      cookie: undefined,
    };
    this.receive(CHUNK.init, initBody(init));
    const answer = parseInit(this.#last(CHUNK.initAck)!)!;
    this.#tag = answer.tag;
    this.receive(CHUNK.cookieEcho, answer.cookie!);
    assert.ok(this.#last(CHUNK.cookieAck) !== undefined);
    this.sent = [];
  }

  #last(type: number): Buffer | undefined {
    return chunksOf(this.sent.at(-1)!)!.find((chunk) => chunk.type === type)?.body;
  }

  receive(type: number, body: Buffer, flags = 0): boolean {
    const tag = type === CHUNK.init ? 0 : this.#tag;
    const address = { localPort: 5000, remotePort: 5000, tag };
    return this.channels.receive(packetOf(address, [chunkOf(type, body, flags)]));
  }

  /** A DATA chunk, by default the next one. */
  data(
    flags: number,
    bytes: number,
    options: { tsn?: number; stream?: number; ssn?: number } = {},
  ): boolean {
    const { tsn = this.#tsn++, stream = 0, ssn = 0 } = options;
    const body = Buffer.alloc(12 + bytes);
    body.writeUInt32BE(tsn, 0);
    body.writeUInt16BE(stream, 4);
    body.writeUInt16BE(ssn, 6);
    body.writeUInt32BE(53, 8);
    return this.receive(CHUNK.data, body, flags);
  }

  open(stream: number): boolean {
    const body = Buffer.alloc(12 + 12);
    body.writeUInt32BE(this.#tsn++, 0);
    body.writeUInt16BE(stream, 4);
    body.writeUInt32BE(50, 8);
    body[12] = 3;
    return this.receive(CHUNK.data, body, begins | ends);
  }

  /** Bytes that the latest SACK says there is room for. */
  get window(): number {
    return this.#last(CHUNK.sack)!.readUInt32BE(4);
  }
  get hasEnded(): boolean {
    return this.sent.some((packet) => chunksOf(packet)![0]!.type === CHUNK.abort);
  }
}

let attack: Attack;
beforeEach(() => {
  attack = new Attack();
});

test('a message without an end ends the association at 64 KiB', () => {
  let bytes = 1_000;
  attack.data(begins, 1_000);
  while (attack.data(0, 1_000)) {
    bytes += 1_000;
    assert.ok(bytes <= 65_536);
  }
  assert.ok(attack.hasEnded);
  assert.ok(!attack.data(begins | ends, 10), 'and stays ended');
});

test('messages that wait for one that never comes fill the window, and not more', () => {
  for (let n = 0; n < 1_000; n++) {
    attack.data(begins | ends, 1_000, { ssn: 5 + n });
    if (attack.hasEnded) {
      break;
    }
  }
  assert.ok(attack.hasEnded, 'chunks are acknowledged in order, messages never complete');
});

test('chunks far ahead, in gaps, of one byte: few are kept, and each costs little', () => {
  const tookMs = shortestMs(() => {
    attack = new Attack();
    for (let n = 0; n < 5_000; n++) {
      attack.data(begins, 1, { tsn: 1_001 + 2 * (n % 8_000) });
    }
  }, 3);
  assert.ok(!attack.hasEnded);
  assert.ok(attack.window > 0);
  console.info(`${tookMs.toFixed(1)} ms for 5,000 chunks in gaps`);
  assert.ok(tookMs < 2_000, `${tookMs} ms for 5,000 chunks`);
  // Descending, so that each one is put before all others.
  attack = new Attack();
  for (let n = 0; n < 5_000; n++) {
    attack.data(unordered, 1, { tsn: 9_000 - 2 * (n % 4_000) });
  }
  assert.equal(attack.messages, 0);
});

test('fragments of different messages, empty chunks and short FORWARD TSN end the association', () => {
  attack.data(begins, 10, { stream: 1 });
  assert.ok(!attack.data(ends, 10, { stream: 2 }));
  assert.ok(attack.hasEnded);
  attack = new Attack();
  assert.ok(!attack.data(begins | ends, 0));
  assert.ok(attack.hasEnded);
  attack = new Attack();
  assert.ok(!attack.receive(CHUNK.forwardTsn, Buffer.alloc(2)));
});

test('only so many channels open', () => {
  for (let stream = 0; stream < 1_000; stream++) {
    attack.open(stream);
  }
  assert.equal(attack.opened, 64);
  assert.throws(() => attack.channels.create('one more', {}), /64 data channels/);
});

test('a SACK for what was never sent is refused; a window of zero stops all but a probe', () => {
  const sack = (cumulative: number, window: number): Buffer => {
    const body = Buffer.alloc(12);
    body.writeUInt32BE(cumulative >>> 0, 0);
    body.writeUInt32BE(window, 4);
    return body;
  };
  const channel = attack.channels.create('x', {});
  const first = chunksOf(attack.sent[0]!)![0]!.body.readUInt32BE(0);
  assert.ok(!attack.receive(CHUNK.sack, sack(first + 1_000, 1_000)));
  assert.ok(attack.receive(CHUNK.sack, sack(first, 0)));
  attack.sent = [];
  for (let n = 0; n < 100; n++) {
    channel.send(Buffer.alloc(1_000));
  }
  assert.equal(attack.sent.length, 1);
});

test('wrong tags, cookies, checksums and lengths have no effect', () => {
  const packet = packetOf({ localPort: 5000, remotePort: 5000, tag: 1 }, [
    chunkOf(CHUNK.abort, Buffer.alloc(0)),
  ]);
  assert.ok(!attack.channels.receive(packet));
  assert.ok(!attack.receive(CHUNK.cookieEcho, Buffer.alloc(16)));
  assert.ok(!attack.receive(CHUNK.init, Buffer.alloc(8)));
  assert.ok(!attack.channels.receive(Buffer.alloc(11)));
  assert.ok(attack.data(begins | ends, 5), 'it goes on');
});

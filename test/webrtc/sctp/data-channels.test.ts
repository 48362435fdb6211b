// Two ends of an association over a path in memory that delays, loses, repeats and reorders packets.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  DataChannels,
  type ChannelReliability,
  type DataChannel,
} from '../../../src/webrtc/sctp/data-channel.ts';

/** Numbers from 0 to 1, the same in each run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

interface Path {
  readonly loss: number;
  readonly repeated: number;
  readonly jitterMs: number;
  readonly delayMs: number;
}
const CLEAN: Path = { loss: 0, repeated: 0, jitterMs: 0, delayMs: 5 };

/** One end, with what it has received. */
class End {
  readonly channels: DataChannels;
  readonly received: { readonly label: string; readonly data: Buffer; readonly isText: boolean }[] =
    [];
  readonly opened: DataChannel[] = [];
  drains = 0;
  closed = 0;
  sent = 0;

  constructor(now: () => number, isDtlsServer: boolean, send: (packet: Buffer) => void) {
    this.channels = new DataChannels(
      (packet) => {
        this.sent++;
        send(packet);
      },
      now,
      {
        onChannel: (channel) => this.opened.push(channel),
        onMessage: ({ label }, data, isText) => this.received.push({ label, data, isText }),
        onDrain: () => this.drains++,
        onChannelClosed: () => this.closed++,
      },
      isDtlsServer,
    );
  }
}

class Pair {
  nowMs = 0;
  mayRefuse = false;
  readonly a: End;
  readonly b: End;
  path: Path;
  readonly #random: () => number;
  #queue: { readonly atMs: number; readonly to: End; readonly packet: Buffer }[] = [];

  constructor(path: Path, seed = 1) {
    this.path = path;
    this.#random = randomFrom(seed);
    const now = (): number => this.nowMs;
    this.a = new End(now, true, (packet) => {
      this.#carry(packet, this.b);
    });
    this.b = new End(now, false, (packet) => {
      this.#carry(packet, this.a);
    });
  }

  #carry(packet: Buffer, to: End): void {
    const { loss, repeated, jitterMs, delayMs } = this.path;
    for (let copies = this.#random() < repeated ? 2 : 1; copies > 0; copies--) {
      if (this.#random() >= loss) {
        const atMs = this.nowMs + delayMs + this.#random() * jitterMs;
        this.#queue.push({ atMs, to, packet: Buffer.from(packet) });
      }
    }
  }

  /** Until `condition` holds, 60 s at most. @returns the time it took */
  run(condition: () => boolean, limitMs = 60_000): number {
    const startMs = this.nowMs;
    for (; !condition(); this.nowMs += 5) {
      assert.ok(this.nowMs - startMs < limitMs, `not within ${limitMs} ms`);
      const due = this.#queue.filter(({ atMs }) => atMs <= this.nowMs);
      this.#queue = this.#queue.filter(({ atMs }) => atMs > this.nowMs);
      for (const { to, packet } of due.sort((one, other) => one.atMs - other.atMs)) {
        const isTaken = to.channels.receive(packet);
        assert.ok(isTaken || this.mayRefuse, 'a packet is refused');
      }
      this.a.channels.poll(this.nowMs);
      this.b.channels.poll(this.nowMs);
    }
    return this.nowMs - startMs;
  }

  start(): void {
    this.a.channels.start();
    this.b.channels.start();
  }
}

const message = (bytes: number, seed: number): Buffer =>
  Buffer.from(Uint8Array.from({ length: bytes }, (_, index) => (index * 31 + seed * 7) & 255));

/** Sends as the buffer allows. */
function pump(channel: DataChannel, messages: readonly Buffer[]): () => void {
  let next = 0;
  return () => {
    while (next < messages.length && channel.send(messages[next]!)) {
      next++;
    }
  };
}

for (const path of [
  CLEAN,
  { loss: 0.05, repeated: 0.05, jitterMs: 20, delayMs: 10 },
  { loss: 0.2, repeated: 0.1, jitterMs: 30, delayMs: 10 },
]) {
  test(`whole, in order, both ways, with ${path.loss * 100} % loss`, () => {
    const pair = new Pair(path);
    const channel = pair.a.channels.create('reliable', {});
    const messages = Array.from({ length: 60 }, (_, index) =>
      message((index * 977) % 15_001, index),
    );
    const send = pump(channel, messages);
    send();
    pair.start();
    pair.run(() => pair.b.opened.length === 1);
    const back = pair.b.opened[0]!;
    assert.equal(back.label, 'reliable');
    assert.ok(back.isRemote && back.isOrdered);
    const sendBack = pump(back, messages);
    const tookMs = pair.run(() => {
      send();
      sendBack();
      return pair.a.received.length === 60 && pair.b.received.length === 60;
    });
    console.info(`${path.loss * 100} % loss: 2 x 450 kB in ${tookMs} ms of path time`);
    for (const end of [pair.a, pair.b]) {
      end.received.forEach(({ data }, index) => {
        assert.deepEqual(data, messages[index]);
      });
    }
    pair.run(() => channel.bufferedBytes === 0 && back.bufferedBytes === 0);
  });
}

test('where packets are lost the last SACK is repeated, a few times', () => {
  for (const [loses, repeats] of [
    [false, 0],
    [true, 3],
  ] as const) {
    const pair = new Pair(CLEAN);
    const channel = pair.a.channels.create('reliable', {});
    pair.start();
    pair.run(() => pair.b.opened.length === 1 && channel.bufferedBytes === 0);
    const wait = (ms: number): void => {
      const untilMs = pair.nowMs + ms;
      pair.run(() => pair.nowMs >= untilMs);
    };
    wait(100);
    pair.path = { ...CLEAN, loss: loses ? 1 : 0 };
    channel.send(message(100, 1));
    pair.path = CLEAN;
    channel.send(message(100, 2));
    wait(10);
    pair.path = { ...CLEAN, loss: 1 };
    const { sent } = pair.b;
    wait(1000);
    assert.equal(pair.b.sent - sent, repeats);
  }
});

test('either side may begin, or both', () => {
  for (const starts of ['a', 'b', 'both']) {
    const pair = new Pair(CLEAN);
    if (starts !== 'b') {
      pair.a.channels.start();
    }
    if (starts !== 'a') {
      pair.b.channels.start();
    }
    pair.a.channels.create('one', {});
    pair.b.channels.create('two', { protocol: 'p' });
    pair.run(() => pair.a.opened.length === 1 && pair.b.opened.length === 1);
    assert.equal(pair.a.opened[0]!.protocol, 'p');
  }
});

test('text, empty and 64 KiB messages; longer ones are not taken', () => {
  const pair = new Pair({ loss: 0.1, repeated: 0, jitterMs: 5, delayMs: 5 });
  pair.start();
  const channel = pair.a.channels.create('x', {});
  const sent: [Buffer, boolean][] = [
    [Buffer.from('grüß Gott'), true],
    [Buffer.alloc(0), true],
    [Buffer.alloc(0), false],
    [message(65_536, 3), false],
  ];
  assert.equal(channel.send(Buffer.alloc(65_537)), false);
  for (const [data, isText] of sent) {
    assert.ok(channel.send(data, isText));
  }
  pair.run(() => pair.b.received.length === sent.length);
  sent.forEach(([data, isText], index) => {
    assert.deepEqual(pair.b.received[index], { label: 'x', data, isText });
  });
});

test('messages that may be lost are, and hold up nobody', () => {
  const kinds: ChannelReliability[] = [
    { isOrdered: false, maxRetransmits: 0 },
    { isOrdered: true, maxRetransmits: 0 },
    { isOrdered: false, maxLifetimeMs: 100 },
    { isOrdered: true, maxRetransmits: 2 },
  ];
  for (const [seed, reliability] of kinds.entries()) {
    const pair = new Pair(CLEAN, seed + 5);
    pair.start();
    const lossy = pair.a.channels.create('lossy', reliability);
    const sure = pair.a.channels.create('sure', {});
    pair.run(() => pair.b.opened.length === 2 && lossy.bufferedBytes === 0);
    pair.path = { loss: 0.2, repeated: 0, jitterMs: 10, delayMs: 5 };
    let sent = 0;
    const endMs = pair.nowMs + 5_000;
    pair.run(() => {
      if (pair.nowMs % 25 === 0) {
        const data = Buffer.alloc(sent % 5 === 0 ? 2_500 : 300);
        data.writeUInt32BE(sent++);
        lossy.send(data);
        sure.send(data);
      }
      return pair.nowMs >= endMs;
    });
    pair.path = CLEAN;
    pair.run(() => lossy.bufferedBytes === 0 && sure.bufferedBytes === 0, 20_000);
    const numbers = (label: string): number[] =>
      pair.b.received.filter((each) => each.label === label).map(({ data }) => data.readUInt32BE());
    const lossyNumbers = numbers('lossy');
    assert.equal(numbers('sure').length, sent);
    assert.ok(
      lossyNumbers.length > sent * 0.3,
      `${lossyNumbers.length} of ${sent} arrived, kind ${seed}`,
    );
    assert.equal(new Set(lossyNumbers).size, lossyNumbers.length);
    if (reliability.maxRetransmits === 0) {
      assert.ok(lossyNumbers.length < sent, 'some are lost');
    }
    if (reliability.isOrdered === true) {
      assert.deepEqual(
        lossyNumbers,
        lossyNumbers.toSorted((one, other) => one - other),
      );
    }
  }
});

test('the buffer is bounded, and says when there is room again', () => {
  const pair = new Pair({ ...CLEAN, delayMs: 20 });
  pair.start();
  const channel = pair.a.channels.create('x', {});
  let taken = 0;
  while (channel.send(Buffer.alloc(10_000))) {
    taken++;
  }
  assert.equal(taken, 104);
  assert.equal(channel.bufferedBytes, 1_040_000);
  pair.run(() => pair.a.drains === 1);
  assert.ok(channel.bufferedBytes <= 524_288);
  assert.ok(channel.send(Buffer.alloc(10_000)));
  let small = 0;
  while (channel.send(Buffer.alloc(1))) {
    small++;
  }
  assert.ok(small <= 4_096);
  pair.run(() => pair.b.received.length === taken + 1 + small);
});

test('an outage of ten seconds costs time, and nothing else', () => {
  const pair = new Pair(CLEAN);
  pair.start();
  const channel = pair.a.channels.create('x', {});
  pair.run(() => pair.b.opened.length === 1);
  pair.path = { ...CLEAN, loss: 1 };
  for (let index = 0; index < 50; index++) {
    channel.send(message(5_000, index));
  }
  const sentBefore = pair.a.sent;
  pair.run(() => pair.nowMs > 10_000);
  assert.ok(pair.a.sent - sentBefore < 40, 'few retransmissions into the void');
  pair.path = CLEAN;
  const tookMs = pair.run(() => pair.b.received.length === 50);
  assert.ok(tookMs < 4_000, `${tookMs} ms`);
});

test('an end closes the channels of the other side', () => {
  const pair = new Pair(CLEAN);
  pair.start();
  const channel = pair.a.channels.create('x', {});
  pair.run(() => pair.b.opened.length === 1);
  pair.mayRefuse = true;
  pair.b.channels.close();
  pair.run(() => pair.a.closed === 1);
  assert.equal(channel.state, 'closed');
  assert.equal(channel.send(Buffer.alloc(1)), false);
});

// The bench's peers, checked against cases whose answer is known: an instrument that lies is
// worse than none.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { test } from 'vitest';
import { type ArrivedFrame, FrameAssembler, beginsKeyFrame } from '../../bench/peers/frames.ts';
import {
  ImpairedRelay,
  PERFECT,
  mediaAddress,
  rerouted,
} from '../../bench/peers/impaired-relay.ts';
import { lipOnsets } from '../../bench/peers/lips.ts';
import { ReceiverEstimate } from '../../bench/peers/receiver-estimate.ts';

const KEY = Buffer.from([0x10, 0x00, 1, 2]); // VP8: start of a partition, key frame
const DELTA = Buffer.from([0x10, 0x01, 1, 2]);
const REST = Buffer.from([0x00, 9, 9, 9]); // continues a frame

function assemble(
  packets: readonly [
    sequence: number,
    timestamp: number,
    isLast: boolean,
    payload: Buffer,
    atMs: number,
  ][],
): { frames: ArrivedFrame[]; asked: number; lost: number } {
  const frames: ArrivedFrame[] = [];
  let asked = 0;
  const assembler = new FrameAssembler(
    'vp8',
    (frame) => frames.push(frame),
    () => {
      asked++;
    },
  );
  for (const [sequence, timestamp, isLast, payload, atMs] of packets) {
    assembler.push(sequence & 0xffff, timestamp, isLast, payload, atMs);
  }
  return { frames, asked, lost: assembler.framesLost };
}

test('frames complete in order, over a wrap of the sequence number, and wait for what is missing', () => {
  const { frames, asked } = assemble([
    [65_534, 0, true, KEY, 10],
    [65_535, 3000, false, DELTA, 43],
    [65_536 + 1, 6000, true, DELTA, 76],
    [65_536, 3000, true, REST, 120],
  ]);
  assert.deepEqual(
    frames.map(({ rtpTimestamp, completedMs, isKey, bytes }) => [
      rtpTimestamp,
      completedMs,
      isKey,
      bytes,
    ]),
    [
      [0, 10, true, 4],
      [3000, 120, false, 8],
      [6000, 120, false, 4],
    ],
  );
  assert.equal(asked, 0);
});

test('what never comes is given up at the next key frame, which is asked for', () => {
  const packets: [number, number, boolean, Buffer, number][] = [[1, 0, true, KEY, 0]];
  for (let i = 3; i < 30; i++) {
    packets.push([i, i * 3000, true, i === 20 ? KEY : DELTA, i * 33]);
  }
  const { frames, asked, lost } = assemble(packets);
  assert.equal(frames[0]!.completedMs, 0);
  assert.equal(frames[1]!.isKey, true);
  assert.equal(frames.length, 1 + 10);
  assert.ok(asked >= 1, 'a key frame was asked for');
  assert.equal(lost, 17);
});

test('key frames are told by their first payload', () => {
  assert.ok(beginsKeyFrame('vp8', KEY));
  assert.ok(!beginsKeyFrame('vp8', DELTA));
  assert.ok(!beginsKeyFrame('vp8', REST));
  assert.ok(beginsKeyFrame('vp8', Buffer.from([0x90, 0x80, 0x81, 0x00, 0x10]))); // X, I, 15-bit picture id
  assert.ok(!beginsKeyFrame('vp8', Buffer.from([0x90, 0x80, 0x81, 0x00, 0x11])));
  assert.ok(beginsKeyFrame('h264', Buffer.from([0x67, 1])));
  assert.ok(beginsKeyFrame('h264', Buffer.from([24, 0, 2, 0x67, 1])));
  assert.ok(beginsKeyFrame('h264', Buffer.from([28, 0x87, 1])));
  assert.ok(!beginsKeyFrame('h264', Buffer.from([0x41, 1])));
});

test('the lip finder finds the mouth of a head that moves, and the frame in which it starts', () => {
  const side = 128;
  const spans = [3000, 6000, 9000].map((sentMs) => ({
    sentMs,
    fromMs: sentMs + 300,
    toMs: sentMs + 1200,
  }));
  const face = (x: number, y: number): number =>
    110 + 30 * Math.sin(x / 5) * Math.cos(y / 7) - 50 * Number(Math.abs(y - 94) < 1.5);
  const frames: Buffer[] = [];
  const arrivals: number[] = [];
  for (let index = 0; index < 360; index++) {
    const atMs = (index * 1000) / 30;
    const isTalking = spans.some(({ sentMs, toMs }) => atMs >= sentMs + 90 && atMs <= toMs);
    // As far and as fast as a head moves.
    const [right, down] = [3 * Math.sin(index / 9), 2 * Math.sin(index / 6)];
    const isMouth = (x: number, y: number): boolean =>
      Math.abs(x - 64) < 12 && Math.abs(y - 94) < 5;
    frames.push(
      Buffer.from(
        Uint8Array.from({ length: side * side }, (_, at) => {
          const [x, y] = [(at % side) - right, Math.floor(at / side) - down];
          return isTalking && isMouth(x, y) ? 50 + ((index * 37) % 60) : Math.round(face(x, y));
        }),
      ),
    );
    arrivals.push(atMs + 7);
  }
  for (const onset of lipOnsets(frames, arrivals, spans)) {
    assert.ok(onset >= 90 && onset <= 90 + 45, `${onset}`);
  }
  const still = frames.map(() => frames[0]!);
  for (const onset of lipOnsets(still, arrivals, spans)) {
    assert.ok(Number.isNaN(onset), 'nothing moves, nothing is found');
  }
});

test('the relay loses, delays and limits as told, and passes everything else on', async (t) => {
  const [server, client] = [createSocket('udp4'), createSocket('udp4')];
  for (const socket of [server, client]) {
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    t.onTestFinished(() => {
      socket.close();
    });
  }
  server.on('message', (datagram, { port, address }) => server.send(datagram, port, address));
  const relay = await ImpairedRelay.open(
    { address: '127.0.0.1', port: server.address().port },
    PERFECT,
  );
  t.onTestFinished(() => {
    relay.close();
  });
  /**
   * Sends `count` datagrams of 1000 bytes and gives the times after which they came back, in the
   * order sent.
   */
  const ping = async (count: number, waitMs: number): Promise<number[]> => {
    const back: number[] = [];
    const startMs = performance.now();
    const listen = (datagram: Buffer): void => {
      back[datagram.readUInt32BE(0)] = performance.now() - startMs;
    };
    client.on('message', listen);
    for (let i = 0; i < count; i++) {
      const datagram = Buffer.alloc(1000);
      datagram.writeUInt32BE(i, 0);
      client.send(datagram, relay.port, '127.0.0.1');
      // In small bursts, so that no socket's receive buffer overflows.
      if (i % 25 === 24) {
        await new Promise((resolve) => {
          setTimeout(resolve, 8);
        });
      }
    }
    await new Promise((resolve) => {
      setTimeout(resolve, waitMs);
    });
    client.off('message', listen);
    return back.filter(() => true);
  };
  assert.equal((await ping(50, 200)).length, 50);
  relay.impairment = { ...PERFECT, delayMs: 60 };
  const delayed = await ping(20, 400);
  assert.equal(delayed.length, 20);
  assert.ok(Math.min(...delayed) >= 118, `${Math.min(...delayed)}`);
  relay.impairment = { ...PERFECT, lossPercent: 30 };
  const through = (await ping(400, 300)).length / 400;
  assert.ok(
    through > 0.38 && through < 0.6,
    `${through} of the datagrams survived 30 % loss twice, expected about 0.49`,
  );
  relay.impairment = { ...PERFECT, rateKbps: 400 };
  // 20 datagrams of 1028 bytes take 411 ms at 400 kbit/s, and the queue holds 300 ms.
  const limited = await ping(20, 1200);
  assert.ok(limited.length >= 12 && limited.length <= 17, `${limited.length} of 20 fit the queue`);
});

test('an answer is rerouted to the relay', () => {
  const sdp = [
    'v=0',
    'a=candidate:1 1 udp 2130706431 10.0.0.1 5000 typ host',
    'a=candidate:2 1 tcp 2 10.0.0.1 9 typ host tcptype active',
    'a=end-of-candidates',
    '',
  ].join('\r\n');
  assert.deepEqual(mediaAddress(sdp), { address: '10.0.0.1', port: 5000 });
  assert.equal(
    rerouted(sdp, 1234),
    [
      'v=0',
      'a=candidate:1 1 udp 2130706431 127.0.0.1 1234 typ host',
      'a=end-of-candidates',
      '',
    ].join('\r\n'),
  );
  assert.throws(() => mediaAddress('v=0'), /no UDP candidate/);
});

test("the receiver's estimate falls with a growing queue and with loss, and rises again", () => {
  const estimate = new ReceiverEstimate(1_000_000);
  let nowMs = 1;
  const feed = (seconds: number, delayMs: number, lostShare: number): void => {
    for (let i = 0; i < seconds * 100; i += 1, nowMs += 10) {
      estimate.onPacket(1000, delayMs);
      if (i % 100 < lostShare * 100) {
        estimate.onLoss(1);
      }
      estimate.update(nowMs);
    }
  };
  feed(3, 10, 0);
  const easy = estimate.bitrate;
  feed(3, 150, 0);
  const queued = estimate.bitrate;
  assert.ok(queued < 0.8 * easy, `${easy} → ${queued}`);
  feed(10, 12, 0);
  assert.ok(estimate.bitrate > queued, 'it rises when the queue is gone');
  const before = estimate.bitrate;
  feed(3, 12, 0.3);
  assert.ok(estimate.bitrate < before, 'it falls with loss');
});

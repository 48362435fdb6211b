// The attackers of the hostile bench: they keep to rate and bounds, and their frames are
// WebSocket's.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Attack,
  type EntryPoint,
  paced,
  pacedOpen,
  Places,
  runAttack,
} from '../../bench/hostile/entry-point.ts';
import type { Arena } from '../../bench/hostile/protocol.ts';
import { frame, RawWebSocket } from '../../bench/hostile/raw-web-socket.ts';

const ARENA: Arena = {
  url: 'http://127.0.0.1:1',
  apiKey: 'none',
  faceId: 'none',
  tokens: [],
  mediaPort: 1,
  addresses: ['127.0.1.1', '127.0.1.2'],
};

const entryPoint = (attack: (attack: Attack) => Promise<void>): EntryPoint => ({
  name: 'test',
  about: '',
  unit: 'units',
  perSecond: 0,
  attack,
});

const stall = (ms: number): void => {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs;) {}
};

test('the rate is kept, and after a stall it is not made up for by a burst', async () => {
  const dues: number[] = [];
  const { attempted } = await runAttack(
    entryPoint(async (attack) => {
      await paced(attack, (due) => {
        attack.attempted(due);
        dues.push(due);
        if (dues.length === 3) {
          stall(300);
        }
      });
    }),
    ARENA,
    1000,
    0.6,
  );
  assert.ok(
    Math.max(...dues) <= 50,
    `${Math.max(...dues)} at once, more than 50 ms of 1000 a second`,
  );
  assert.ok(
    attempted >= 50 && attempted <= 400,
    `${attempted} in 0.6 s of which 0.3 s were a stall`,
  );
});

test('the slowest entry point is tried once; so many are open at once as told, and then closed', async () => {
  let [open, most, closed] = [0, 0, 0];
  const slow = await runAttack(
    entryPoint((attack) => pacedOpen(attack, 5, () => Promise.resolve())),
    ARENA,
    0.01,
    0.05,
  );
  assert.equal(slow.attempted, 1);
  const { attempted, answers } = await runAttack(
    entryPoint((attack) =>
      pacedOpen(
        attack,
        5,
        async () => {
          open++;
          most = Math.max(most, open);
          attack.atEnd(() => {
            closed++;
          });
          await delay(10_000, undefined, { ref: false });
        },
        true,
      ),
    ),
    ARENA,
    500,
    0.2,
  );
  assert.deepEqual([most, attempted, closed], [5, 5, 5]);
  assert.ok(answers['withheld: too many open']! > 20, JSON.stringify(answers));
});

test('the attackers have no more sessions than there are places, and each entry point gets some', () => {
  const places = new Places(3, 4);
  assert.deepEqual(
    [places.share, places.take(), places.take(), places.take()],
    [1, true, true, true],
  );
  assert.equal(places.take(), false);
  places.giveBack();
  assert.equal(places.take(), true);
  assert.equal(new Places(9, 4).share, 2);
});

test('frames of each length, masked as clients must', () => {
  for (const length of [0, 125, 126, 65_535, 65_536]) {
    const bytes = frame(Buffer.alloc(length, 7));
    assert.equal(bytes[0], 0x82);
    assert.equal(bytes[1]! & 0x80, 0x80, 'the mask bit');
    const short = bytes[1]! & 127;
    const [told, head] =
      short === 126
        ? [bytes.readUInt16BE(2), 4]
        : short === 127
          ? [Number(bytes.readBigUInt64BE(2)), 10]
          : [short, 2];
    assert.equal(told, length);
    assert.deepEqual(bytes.subarray(head + 4), Buffer.alloc(length, 7));
  }
});

test('messages and the close frame of a server are understood, in whatever pieces', async (t) => {
  const server = createServer((socket) => {
    const answer = async (): Promise<void> => {
      const text = Buffer.from('ERROR INVALID_SESSION_TOKEN');
      const close = Buffer.from([0x03, 0xe8, ...Buffer.from('DONE')]);
      const bytes = Buffer.concat([
        Buffer.from('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n'),
        Buffer.from([0x81, text.length]),
        text,
        Buffer.from([0x88, close.length]),
        close,
      ]);
      for (const byte of bytes) {
        socket.write(Buffer.from([byte]));
        await delay(0);
      }
    };
    socket.once('data', () => {
      answer().catch(() => {});
    });
    socket.on('error', () => {});
  }).listen(0, '127.0.0.1');
  t.onTestFinished(() => {
    server.close();
  });
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const socket = await RawWebSocket.open({ url, path: '/', localAddress: '127.0.1.1' });
  const heard: string[] = [];
  socket.onText = (text) => {
    heard.push(text);
  };
  const reason = await new Promise<string>((resolve) => {
    socket.onClose = resolve;
  });
  assert.deepEqual(heard, ['ERROR INVALID_SESSION_TOKEN']);
  assert.deepEqual([reason, socket.isOpen], ['close 1000 DONE', false]);
  socket.destroy();
});

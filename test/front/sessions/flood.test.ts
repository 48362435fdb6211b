// Floods on the socket of a session, against a real server: it ends the session that floods, and
// goes on answering others.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { sleep } from '../../../src/base/time.ts';
import { patience } from '../../harness/machine.ts';
import { RawSocket, frame } from '../../harness/raw-socket.ts';
import { call, createToken, startServer, type TestServer } from '../../harness/server.ts';
import { WsClient } from '../../harness/ws-client.ts';

/**
 * The longest stall of the main thread that a flood may cause. Two-byte messages caused 5 s before
 * there was a budget.
 */
const HELD_UP_MS = 700;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
});

const counted = async (line: string): Promise<number> => {
  const { body } = await call(server, '/metrics');
  return Number(
    new RegExp(`^${line.replace(/[{}]/g, '\\$&')} (\\S+)`, 'm').exec(String(body))?.[1] ?? 0,
  );
};

/** Requests /healthz until `work` is over. @returns the longest response time in milliseconds */
async function slowestAnswer(work: Promise<unknown>): Promise<number> {
  const state = { isOver: false };
  void work.finally(() => {
    state.isOver = true;
  });
  let slowest = 0;
  while (!state.isOver) {
    const startMs = performance.now();
    await fetch(`${server.url}/healthz`);
    slowest = Math.max(slowest, performance.now() - startMs);
    await sleep(5);
  }
  return slowest;
}

const openRaw = async (token: string): Promise<RawSocket> => {
  const socket = await RawSocket.open(server, `/compose/webrtc/p2p?session_token=${token}`);
  await sleep(100); // until it is admitted
  return socket;
};

for (const [what, one, count] of [
  ['two bytes of audio', frame('binary', Uint8Array.of(1, 0)), 1_000_000],
  ['ping', frame('text', 'ping 1'), 500_000],
  ['SKIP', frame('text', 'SKIP'), 500_000],
  ['nonsense', frame('text', 'hello'), 500_000],
  ['offers that are none', frame('text', '{"type":"offer","sdp":5}'), 300_000],
  [
    'PLAY_IMMEDIATE',
    frame('binary', Buffer.concat([Buffer.from('PLAY_IMMEDIATE'), Buffer.alloc(640)])),
    300_000,
  ],
  ['brackets without end', frame('text', `{"type":${'['.repeat(100_000)}`), 2000],
] as const) {
  test(`a flood of ${what} gets RATE, then an error and the end; the server answers meanwhile`, async () => {
    const token = await createToken(server);
    const socket = await openRaw(token);
    const isEnded = socket.flood(one, count).then(() => socket.until('RATE_LIMITED'));
    const slowestMs = await slowestAnswer(isEnded);
    assert.ok(slowestMs < HELD_UP_MS * patience(), `/healthz took ${slowestMs.toFixed(0)} ms`);
    assert.match(socket.heard, /ERROR RATE_LIMITED/);
    socket.destroy();
    const again = await WsClient.open(server, token);
    await again.closed;
    assert.deepEqual(again.words, ['ERROR'], 'it may not come back at once and do it again');
  });
}

for (const [what, one, count] of [
  ['pings', frame('ping', ''), 2_000_000],
  ['pongs', frame('pong', ''), 2_000_000],
] as const) {
  test(`a flood of protocol ${what} does not stall the server`, async () => {
    const socket = await openRaw(await createToken(server));
    const state = { written: 0 };
    const slowestMs = await slowestAnswer(
      socket.flood(one, count).then((written) => {
        state.written = written;
      }),
    );
    assert.ok(slowestMs < HELD_UP_MS * patience(), `/healthz took ${slowestMs.toFixed(0)} ms`);
    if (what === 'pongs') {
      assert.ok(state.written < count, 'the socket is closed');
    }
    socket.destroy();
  });
}

test('dropped messages and ended sessions are counted', async () => {
  assert.ok(
    (await counted('mouthpiece_websocket_messages_dropped_total{reason="socket_rate"}')) > 20_000,
  );
  assert.equal(
    await counted('mouthpiece_sessions_ended_total{kind="p2p",reason="rate_limited"}'),
    7,
  );
  assert.ok(
    (await counted('mouthpiece_websocket_messages_total{direction="in",type="audio"}')) > 20_000,
  );
  assert.ok((await counted('mouthpiece_audio_received_seconds_total{input="socket"}')) > 1);
  const { body } = await call(server, '/metrics');
  assert.doesNotMatch(
    String(body),
    /mouthpiece_worker_restarts_total\{[^}]*\} [1-9]/,
    'no worker was ended',
  );
});

test('well-behaved clients, however fast, get an ACK for each message and no RATE', async () => {
  for (const [bytes, count] of [
    [6000, 640],
    [128_014, 15],
    [640, 3000],
    [32, 5000],
    [1 << 20, 8],
  ] as const) {
    const client = await WsClient.open(server, await createToken(server));
    client.send('ping a');
    await client.waitFor('pong a');
    for (let i = 0; i < count; i++) {
      client.send(new Uint8Array(bytes));
    }
    client.send('ping b');
    await client.waitFor('pong b', { limitMs: 20_000 });
    assert.equal(
      client.words.filter((word) => word === 'ACK').length,
      count,
      `${count} messages of ${bytes} bytes`,
    );
    assert.deepEqual([...new Set(client.words)].sort(), ['ACK', 'pong']);
    await client.close();
  }
});

test('DONE is obeyed from a client that exceeded its budget', async () => {
  const socket = await openRaw(await createToken(server));
  await socket.flood(frame('binary', Uint8Array.of(1, 0)), 32_000);
  await socket.until('RATE too_many_messages socket_rate');
  await socket.flood(frame('text', 'DONE'), 1);
  await socket.until('STOP');
  assert.match(socket.heard, /RATE too_many_messages socket_rate[^]*STOP/);
  socket.destroy();
});

// One token, several connections: which of them has the session.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { sleep } from '../../src/base/time.ts';
import { patience } from '../harness/machine.ts';
import { createToken, startServer, type TestServer } from '../harness/server.ts';
import { WsClient } from '../harness/ws-client.ts';

/**
 * A heartbeat of the server that holds the token (3 s), a ping's deadline (2 s), and the pauses
 * between the attempts of the new connection.
 */
const TAKEOVER_ELSEWHERE_MS = 7000;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server?.stop();
});

/** Opens the WebSocket of a session, and is never heard of again. */
function silentClient(token: string): net.Socket {
  const { hostname, port } = new URL(server.url);
  const silent = net.connect(Number(port), hostname);
  silent.write(
    `GET /compose/webrtc/p2p?session_token=${token} HTTP/1.1\r\nhost: x\r\nupgrade: ` +
      `websocket\r\nconnection: upgrade\r\nsec-websocket-key: ` +
      `AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13\r\n\r\n`,
  );
  return silent;
}

describe.concurrent('a token', () => {
  test('a token works again after its session ended, and is refused beside a live one', async () => {
    const token = await createToken(server);
    const first = await WsClient.open(server, token);
    first.send('ping a');
    await first.waitFor('pong a');
    const second = await WsClient.open(server, token);
    await second.closed;
    assert.deepEqual(
      second.messages.map(({ text }) => text),
      ['ERROR SESSION_IN_USE'],
    );
    first.send('ping b');
    await first.waitFor('pong b');
    await first.close();
    const third = await WsClient.open(server, token); // at once, as a page that is reloaded does
    third.send('ping c');
    await third.waitFor('pong c');
    await third.close();
  });

  test('of simultaneous connections with one token, one stays', async () => {
    const token = await createToken(server);
    const clients = await Promise.all(
      Array.from({ length: 3 }, () => WsClient.open(server, token)),
    );
    for (const client of clients) {
      client.send('ping a');
    }
    const answers = await Promise.all(
      clients.map((client) =>
        Promise.race([
          client.waitFor('pong a').then(
            () => 'lives',
            () => 'refused',
          ),
          client.closed.then(() => 'refused'),
        ]),
      ),
    );
    assert.deepEqual(answers.sort(), ['lives', 'refused', 'refused']);
    await Promise.all(clients.map((client) => client.close()));
  });

  test('a token is taken over from a client that does not respond any more', async () => {
    const token = await createToken(server);
    const silent = silentClient(token);
    let heard = '';
    silent.on('data', (data) => {
      heard += data.toString('latin1');
    });
    await once(silent, 'data');
    const next = await WsClient.open(server, token);
    next.send('ping a');
    await next.waitFor('pong a');
    await next.close();
    silent.destroy();
    assert.match(heard, /STOP taken_over/);
  });

  test('another server takes over a token only when its client no longer responds', async () => {
    const elsewhere = await startServer({
      env: {
        REDIS_URL: `unix://${server.dataDir}/redis/redis.sock`,
        SECRETS_KEY: (await readFile(path.join(server.dataDir, 'secrets.key'), 'utf8')).trim(),
      },
    });
    try {
      const [deadToken, liveToken] = [await createToken(server), await createToken(server)];
      const silent = silentClient(deadToken);
      silent.on('data', () => {});
      const alive = await WsClient.open(server, liveToken);
      await once(silent, 'data');
      const isLetIn = async (token: string): Promise<boolean> => {
        const client = await WsClient.open(elsewhere, token);
        client.send('ping a');
        const isIn = await Promise.race([
          client.waitFor('pong a').then(
            () => true,
            () => false,
          ),
          client.closed.then(() => false),
        ]);
        await client.close();
        return isIn;
      };
      const sinceMs = performance.now();
      let isIn = false;
      for (
        ;
        !isIn && performance.now() - sinceMs < TAKEOVER_ELSEWHERE_MS * patience();
        await sleep(100)
      ) {
        [isIn] = await Promise.all([
          isLetIn(deadToken),
          isLetIn(liveToken).then((wasIn) => {
            assert.ok(!wasIn, 'a live client was thrown out');
          }),
        ]);
      }
      assert.ok(isIn, `still in use after ${(performance.now() - sinceMs).toFixed(0)} ms`);
      alive.send('ping b');
      await alive.waitFor('pong b');
      await alive.close();
      silent.destroy();
    } finally {
      await elsewhere.stop();
    }
  });
});

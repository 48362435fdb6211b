// Readiness follows the memory of request bodies, and comes back with it.
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'vitest';
import { sleep } from '../../src/base/time.ts';
import { startTestFront } from './harness.ts';

const MIB = 1024 * 1024;

test('a server without memory for bodies is not ready until it is free again', async (context) => {
  const server = await startTestFront({
    bodyBudget: { maxBytes: 3 * MIB, unprovenBytes: 3 * MIB },
  });
  const sockets: net.Socket[] = [];
  context.onTestFinished(async () => {
    for (const socket of sockets) {
      socket.destroy();
    }
    await server.close();
  });
  const ready = async (): Promise<[number, boolean]> => {
    const reply = await fetch(`${server.url}/readyz`);
    const { checks } = (await reply.json()) as { checks: Record<string, boolean> };
    return [reply.status, checks['uploads']!];
  };
  assert.deepEqual(await ready(), [200, true]);
  const { port } = new URL(server.url);
  // Each key gets two thirds of what is free: three of them take more than nine tenths.
  for (const bytes of [2 * MIB, 0.66 * MIB, 0.2 * MIB].map(Math.floor)) {
    const { key } = await server.services.apiKeys.create('owner', 'uploads');
    const socket = net.connect(Number(port), '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    socket.write(
      `POST /static/audio HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n` +
        `x-service-api-key: ${key}\r\ncontent-length: ${80 * MIB}\r\n\r\n`,
    );
    const wanted = server.bodyBudget.held + bytes;
    socket.write(Buffer.alloc(bytes, ' '));
    for (let i = 0; i < 400 && server.bodyBudget.held < wanted; i++) {
      await sleep(5);
    }
    assert.equal(server.bodyBudget.held, wanted);
  }
  assert.deepEqual([await ready(), !server.bodyBudget.isFull], [[503, false], false]);
  for (const socket of sockets) {
    socket.destroy();
  }
  for (let i = 0; i < 400 && server.bodyBudget.held > 0; i++) {
    await sleep(5);
  }
  assert.deepEqual(await ready(), [200, true]);
});

// A flood of connections takes no more descriptors than are left beside the reserve: the server,
// its Redis and its scrapes go on.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { test } from 'vitest';
import { patience } from '../harness/machine.ts';
import { startServer } from '../harness/server.ts';
import { createLogger } from '../../src/base/log.ts';
import { sleep } from '../../src/base/time.ts';
import { DescriptorReserve, reserveOf } from '../../src/front/descriptor-reserve.ts';
import { Metrics } from '../../src/metrics/metrics.ts';

const FLOOD = 300;
/** Beyond what the server has open when it is ready. */
const ROOM = 100;

test('a server short of file descriptors refuses new connections and keeps the open ones', async (t) => {
  const server = await startServer();
  t.onTestFinished(async () => {
    await server.stop();
  });
  const pid = String(server.process.pid);
  // One connection of before the flood, as a scraper or a balancer holds it.
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  t.onTestFinished(() => {
    agent.destroy();
  });
  const get = (path: string): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const headers = { 'x-service-api-key': server.apiKey };
      http
        .get(server.url + path, { agent, headers }, (res) => {
          let text = '';
          res
            .setEncoding('utf8')
            .on('data', (part: string) => {
              text += part;
            })
            .on('end', () => {
              resolve({ status: res.statusCode ?? 0, text });
            });
        })
        .on('error', reject);
    });
  const figure = async (name: string): Promise<number> =>
    Number(new RegExp(`^${name} (.+)$`, 'm').exec((await get('/metrics')).text)?.[1] ?? Number.NaN);
  const limit = (await figure('process_open_fds')) + ROOM;
  assert.equal(spawnSync('prlimit', ['--pid', pid, `--nofile=${limit}:${limit}`]).status, 0);
  await sleep(1100); // the limit is read again

  const sockets = Array.from({ length: FLOOD }, () =>
    net.connect(server.port, '127.0.0.1').on('error', () => {}),
  );
  t.onTestFinished(() => {
    for (const socket of sockets) {
      socket.destroy();
    }
  });
  for (
    let waited = 0;
    (await figure('mouthpiece_connections_refused_total{reason="descriptors"}')) < FLOOD - ROOM;
    waited++
  ) {
    assert.ok(waited < 50 * patience(), 'too few were refused');
    await sleep(100);
  }
  const open = await figure('process_open_fds');
  assert.ok(open <= limit - reserveOf(limit) + 5, `${open} of ${limit} are open`);

  // What needs descriptors while the flood lasts: a redis-server that died and is started again.
  const redis = Number(
    /^Pid:\s+(\d+)$/m.exec(
      spawnSync('sh', ['-c', `cat /proc/$(pgrep -P $(pgrep -P ${pid} sh) redis-server)/status`], {
        encoding: 'utf8',
      }).stdout,
    )?.[1],
  );
  assert.ok(redis > 0);
  process.kill(redis, 'SIGKILL');
  await sleep(50);
  for (let waited = 0; (await get('/readyz')).status !== 200; waited++) {
    assert.ok(waited < 100 * patience(), 'Redis did not come back');
    await sleep(100);
  }
  assert.equal((await get('/faces')).status, 200);

  for (const socket of sockets) {
    socket.destroy();
  }
  await sleep(300);
  const answer = await fetch(`${server.url}/healthz`);
  assert.equal(answer.status, 200);
  assert.equal(server.process.exitCode, null);
  assert.ok(
    server.logs.some((line) => line.includes('file descriptors are short')),
    server.logs.join('\n'),
  );
  const ended = once(server.process, 'exit');
  assert.equal(await server.stop(), 0);
  await ended;
});

test('the reserve is counted at intervals, and ends with the shortage', async () => {
  let open = 50;
  let counts = 0;
  const count = {
    open: () => {
      counts++;
      return open;
    },
    max: () => 128,
  };
  const reserve = new DescriptorReserve(new Metrics(), createLogger('silent'), count);
  let admitted = 0;
  for (let i = 0; i < 500; i++) {
    if (reserve.admit()) {
      admitted++;
    }
  }
  assert.ok(
    admitted >= 128 - reserveOf(128) - 50 && admitted <= 128 - reserveOf(128) - 50 + 60,
    `${admitted}`,
  );
  assert.ok(counts < 60, `${counts} counts for 500 connections`);
  open = 120;
  await sleep(60);
  assert.equal(reserve.admit(), false);
  open = 20;
  await sleep(60);
  assert.equal(reserve.admit(), true);
});

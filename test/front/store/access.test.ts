// How a Redis is reached: behind Sentinels that fail over, and by TLS as a user with few rights.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import { monotonicMs, sleep } from '../../../src/base/time.ts';
import { ApiKeys } from '../../../src/front/accounts/api-keys.ts';
import { SessionQuota } from '../../../src/front/sessions/session-quota.ts';
import { SessionTokens } from '../../../src/front/sessions/session-tokens.ts';
import { RedisStore } from '../../../src/front/store/redis.ts';
import { patience } from '../../harness/machine.ts';
import { SENTINEL_MASTER, SENTINEL_PASSWORD, startSentinels } from '../redis-sentinels.ts';
import { end, freePort, launch } from '../redis-servers.ts';
import { code, GRANT } from './records.ts';

const log = createLogger('silent');

async function untilTrue(test: () => Promise<boolean>): Promise<void> {
  const startMs = monotonicMs();
  while (!(await test())) {
    assert.ok(monotonicMs() - startMs < 10_000 * patience());
    // A call that is refused at once leaves the event loop no turn, and the client none to connect.
    await sleep(20);
  }
}

test('behind Sentinels: a master that is killed is replaced, and what was stored is kept', async () => {
  const redis = await startSentinels();
  try {
    const access = {
      urls: redis.url.split(','),
      password: SENTINEL_PASSWORD,
      sentinelMaster: SENTINEL_MASTER,
    };
    await assert.rejects(
      RedisStore.connect({ ...access, sentinelMaster: 'other' }, log, 1000),
      /No such master.*correct REDIS_URL or REDIS_SENTINEL_MASTER/,
    );
    const store = await RedisStore.connect(access, log);
    const tokens = new SessionTokens(store, 600);
    const quota = new SessionQuota(store, 5);
    const token = await tokens.create(GRANT);
    await quota.acquire('key', 'session');
    // The replica has it: WAIT counts the replicas that acknowledged.
    await untilTrue(() =>
      store
        .use((client) => client.wait(1, 200))
        .then(
          (count) => count === 1,
          () => false,
        ),
    );

    const startMs = monotonicMs();
    await redis.killMaster();
    let refusedMs = 0;
    for (;;) {
      const askedMs = monotonicMs();
      try {
        await tokens.create(GRANT);
        break;
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'STORE_UNAVAILABLE');
        refusedMs = Math.max(refusedMs, monotonicMs() - askedMs);
        // Sentinels that a busy machine stalls for two seconds do nothing for the next 30 (TILT).
        if (monotonicMs() - startMs > 60_000) {
          assert.fail(`no other master; ${await redis.logged()}`);
        }
        await sleep(50);
      }
    }
    console.info(
      `another master after ${Math.round(monotonicMs() - startMs)} ms; ` +
        `the longest wait for a refusal ${Math.round(refusedMs)} ms`,
    );
    assert.ok(refusedMs < 2500 * patience(), `${refusedMs}`);
    // The client may connect once more when the Sentinels announce the new master.
    let found: unknown[] = [];
    await untilTrue(async () => {
      found = await Promise.all([tokens.find(token), quota.usage('key')]).catch(() => []);
      return found.length > 0;
    });
    assert.notEqual(found[0], undefined, 'the token outlived its server');
    assert.equal(found[1], 1, 'and so did the slot');
    await store.close();
  } finally {
    await redis.close();
  }
});

test('by TLS, with a client certificate, as a user who may touch the keys of Mouthpiece only', async () => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-redis-tls-'));
  const pem = (name: string): string => readFileSync(path.join(directory, name), 'utf8');
  makeCertificates(directory);
  const port = await freePort();
  const server = launch(directory, 0, [
    ...['--tls-port', String(port), '--tls-ca-cert-file', 'ca.crt'],
    ...['--tls-cert-file', 'redis.crt', '--tls-key-file', 'redis.key'],
    ...['--user', 'mouthpiece', 'on', '>a word', '~mp:*', '&*', '+@all', '-@dangerous', '+info'],
    ...['--user', 'default', 'off'],
  ]);
  const access = {
    urls: [`rediss://127.0.0.1:${port}`],
    username: 'mouthpiece',
    password: 'a word',
    ca: pem('ca.crt'),
    cert: pem('client.crt'),
    key: pem('client.key'),
  };
  try {
    const store = await RedisStore.connect(access, log);
    const apiKeys = new ApiKeys(store, 100);
    const { key } = await apiKeys.create('owner', 'laptop');
    assert.equal((await apiKeys.authenticate(key)).ownerId, 'owner');
    const tokens = new SessionTokens(store, 60);
    const token = await tokens.create(GRANT);
    assert.equal((await tokens.find(token))?.faceId, GRANT.faceId);
    await assert.rejects(
      store.use((client) => client.set('elsewhere', 1)),
      code('STORE_UNAVAILABLE'),
    );
    await store.close();
    for (const [change, reason] of [
      [{ ca: undefined }, /self-signed|unable to verify|certificate/i],
      [{ password: 'another' }, /WRONGPASS/],
      [{ cert: undefined, key: undefined }, /certificate|ECONNRESET|closed/i],
    ] as const) {
      await assert.rejects(
        RedisStore.connect({ ...access, ...change }, log, 1000),
        (error: Error) => {
          assert.match(error.message, reason);
          assert.ok(!error.message.includes('a word'));
          return true;
        },
      );
    }
  } finally {
    await end(server);
    rmSync(directory, { recursive: true });
  }
});

/** An authority, and certificates of a server on 127.0.0.1 and of a client. */
function makeCertificates(directory: string): void {
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { cwd: directory, stdio: 'ignore' });
  };
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const ca = ['-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=authority'];
  openssl('req', '-x509', ...newKey, ...ca, '-days', '2');
  for (const name of ['redis', 'client']) {
    openssl(
      ...['req', '-x509', ...newKey, '-CA', 'ca.crt', '-CAkey', 'ca.key', '-days', '2'],
      ...['-keyout', `${name}.key`, '-out', `${name}.crt`, '-subj', `/CN=${name}`],
      ...['-addext', 'subjectAltName=IP:127.0.0.1', '-addext', 'basicConstraints=CA:FALSE'],
    );
  }
}

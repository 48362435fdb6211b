// Signals to the running server: SIGHUP never kills, a closed terminal drains, and repeated Ctrl-C
// signals of one key press count as one.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'vitest';
import tls from 'node:tls';
import { patience } from '../harness/machine.ts';
import { ROOT, createToken, startServer, type TestServer } from '../harness/server.ts';
import { sleep } from '../../src/base/time.ts';
import { createCertificate } from '../../src/webrtc/dtls/certificate.ts';

async function untilLogged(server: Pick<TestServer, 'logs'>, text: RegExp): Promise<void> {
  for (let waitedMs = 0; !server.logs.some((line) => text.test(line)); waitedMs += 20) {
    assert.ok(waitedMs < 5000 * patience(), `not logged: ${text}\n${server.logs.join('\n')}`);
    await sleep(20);
  }
}

async function writeCertificate(
  folder: string,
): Promise<{ certFile: string; keyFile: string; fingerprint: string }> {
  const { der, privateKey } = createCertificate(Date.now());
  const files = { certFile: path.join(folder, 'cert.pem'), keyFile: path.join(folder, 'key.pem') };
  await writeFile(
    files.certFile,
    `-----BEGIN CERTIFICATE-----\n${der
      .toString('base64')
      .match(/.{1,64}/g)!
      .join('\n')}\n-----END CERTIFICATE-----\n`,
  );
  await writeFile(files.keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  return { ...files, fingerprint: new X509Certificate(der).fingerprint256 };
}

async function connectTls(port: number): Promise<tls.TLSSocket> {
  const socket = tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  return socket;
}

async function ask(socket: tls.TLSSocket): Promise<string> {
  socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const [reply] = (await once(socket, 'data')) as [Buffer];
  return reply.toString('latin1').split('\r\n')[0]!;
}

test('SIGHUP reads the certificate again, keeps connections, refuses a bad file', async (t) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-hup-'));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const old = await writeCertificate(folder);
  const server = await startServer({
    env: { TLS_CERT_FILE: old.certFile, TLS_KEY_FILE: old.keyFile, LOG_LEVEL: 'info' },
  });
  t.onTestFinished(async () => {
    await server.stop();
  });
  const kept = await connectTls(server.port);
  t.onTestFinished(() => {
    kept.destroy();
  });
  assert.equal(kept.getPeerCertificate().fingerprint256, old.fingerprint);

  const renewed = await writeCertificate(folder);
  server.process.kill('SIGHUP');
  await untilLogged(server, /get the new certificate/);
  const fresh = await connectTls(server.port);
  assert.equal(fresh.getPeerCertificate().fingerprint256, renewed.fingerprint);
  assert.match(await ask(fresh), / 200 /);
  assert.match(await ask(kept), / 200 /);
  fresh.destroy();

  await writeFile(old.certFile, 'not a certificate');
  server.process.kill('SIGHUP');
  await untilLogged(server, /certificate could not be read/);
  const after = await connectTls(server.port);
  assert.equal(after.getPeerCertificate().fingerprint256, renewed.fingerprint);
  after.destroy();
});

test('SIGHUP reads the settings again: limits and log level count at once, bad ones never', async (t) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-settings-'));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'settings');
  await writeFile(file, '# of the test\nRATE_LIMIT_RPS=1000\nLOG_LEVEL="silent"\nREGION=here\n');
  const server = await startServer({ env: { SETTINGS_FILE: file, LOG_LEVEL: '' } });
  t.onTestFinished(async () => {
    await server.stop();
  });
  const statuses = async (): Promise<number[]> => {
    const headers = { 'x-service-api-key': server.apiKey };
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => fetch(`${server.url}/faces`, { headers })),
    );
    return replies.map(({ status }) => status);
  };
  assert.ok((await statuses()).every((status) => status === 200));
  assert.deepEqual(
    server.logs.filter((line) => !line.includes('"ready"')),
    [],
  );

  await writeFile(file, 'RATE_LIMIT_RPS=1\nLOG_LEVEL=info\nREGION=there\n');
  server.process.kill('SIGHUP');
  await untilLogged(server, /SIGHUP: there is no certificate/);
  const line = server.logs.find((text) => text.includes('SIGHUP: settings'))!;
  const { now, atRestart } = JSON.parse(line) as Record<string, string[]>;
  assert.deepEqual([now!.toSorted(), atRestart], [['LOG_LEVEL', 'RATE_LIMIT_RPS'], ['REGION']]);
  assert.ok((await statuses()).includes(429), 'the new limit holds');

  await writeFile(file, 'RATE_LIMIT_RPS=many\n');
  server.process.kill('SIGHUP');
  await untilLogged(server, /RATE_LIMIT_RPS=many.*bad settings/);
  await writeFile(file, 'this is no setting\n');
  server.process.kill('SIGHUP');
  await untilLogged(server, /line 1 is not NAME=value/);
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
});

test('when its terminal closes the server drains and stops, although nobody reads its output', async (t) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-tty-'));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const logFile = path.join(folder, 'log');
  const command =
    `exec '${process.execPath}' --disable-warning=ExperimentalWarning src/main.ts ` +
    `2>'${logFile}'`;
  const env = {
    PATH: process.env['PATH'],
    HOST: '127.0.0.1',
    MEDIA_HOST: '127.0.0.1',
    PORT: '0',
    WORKERS: '1',
    DRAIN_SECONDS: '0',
    READY_JSON: '1',
    DATA_DIR: folder,
  };
  const terminal = spawn('script', ['-qfec', command, '/dev/null'], {
    cwd: ROOT,
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const lines = createInterface({ input: terminal.stdout });
  for await (const line of lines) {
    if (line.startsWith('{"ready"')) {
      break;
    }
  }
  terminal.kill('SIGKILL'); // closes the terminal: the kernel sends SIGHUP
  for (let waitedMs = 0; !/"msg":"stopped"/.test(await readFile(logFile, 'utf8')); waitedMs += 50) {
    assert.ok(waitedMs < 10_000 * patience(), await readFile(logFile, 'utf8'));
    await sleep(50);
  }
  assert.match(await readFile(logFile, 'utf8'), /"signal":"SIGHUP".*draining/);
});

test('Ctrl-C that arrives twice at once drains; only a later one stops at once', async (t) => {
  const server = await startServer({ env: { DRAIN_SECONDS: '20' } });
  t.onTestFinished(async () => {
    await server.stop();
  });
  const token = await createToken(server);
  const socket = new WebSocket(
    `${server.url.replace('http', 'ws')}/compose/webrtc/p2p?session_token=${token}`,
  );
  await once(socket, 'open');
  await sleep(200);
  const startMs = performance.now();
  const exited = once(server.process, 'exit');
  server.process.kill('SIGINT');
  await sleep(50);
  server.process.kill('SIGINT');
  await sleep(1200);
  assert.equal(server.process.exitCode, null, 'it still drains');
  server.process.kill('SIGINT');
  const [code] = (await exited) as [number | undefined];
  assert.equal(code, 0);
  assert.ok(performance.now() - startMs < 10_000 * patience());
});

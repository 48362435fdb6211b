// The server as its own TLS end: HTTPS and WSS with certificate files, addresses that say so, and
// files that cannot be used told in one line.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import tls from 'node:tls';
import { createCertificate } from '../../../src/webrtc/dtls/certificate.ts';
import { startTestFront, stubVideos, type TestFront } from '../harness.ts';

let folder: string;
let files: { TLS_CERT_FILE: string; TLS_KEY_FILE: string };
let server: TestFront;
let certificate: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-tls-'));
  const { der, privateKey } = createCertificate(Date.now());
  certificate = `-----BEGIN CERTIFICATE-----\n${der
    .toString('base64')
    .match(/.{1,64}/g)!
    .join('\n')}\n-----END CERTIFICATE-----\n`;
  files = {
    TLS_CERT_FILE: path.join(folder, 'cert.pem'),
    TLS_KEY_FILE: path.join(folder, 'key.pem'),
  };
  await writeFile(files.TLS_CERT_FILE, certificate);
  await writeFile(files.TLS_KEY_FILE, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  server = await startTestFront({
    config: files,
    videos: ({ services }) => stubVideos((name) => services.blobs.open(name)),
  });
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

/** This certificate alone is trusted; it names no host. */
const trust = (): tls.ConnectionOptions => ({
  ca: certificate,
  checkServerIdentity: () => undefined,
});

async function request(target: string, body?: string): Promise<{ status: number; body: string }> {
  const { port } = new URL(server.url);
  const sent = https.request({
    host: '127.0.0.1',
    port,
    path: target,
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'x-service-api-key': server.key, 'content-type': 'application/json' },
    ...trust(),
  });
  sent.end(body);
  const [reply] = (await once(sent, 'response')) as [IncomingMessage];
  return {
    status: reply.statusCode!,
    body: Buffer.concat((await reply.toArray()) as Buffer[]).toString(),
  };
}

test('HTTPS with the given certificate, and https in absolute links', async () => {
  assert.equal((await request('/healthz')).status, 200);
  const made = await request(
    '/static/audio',
    JSON.stringify({ faceId: 'ava', audioBase64: 'AAAA' }),
  );
  assert.match(
    (JSON.parse(made.body) as { mp4_url: string }).mp4_url,
    /^https:\/\/127\.0\.0\.1:\d+\/static\/mp4\//,
  );
});

test('WSS on the same port', async () => {
  const socket = tls.connect({
    host: '127.0.0.1',
    port: Number(new URL(server.url).port),
    ...trust(),
  });
  await once(socket, 'secureConnect');
  socket.write(
    'GET /compose/webrtc/livekit?session_token=x HTTP/1.1\r\nHost: ' +
      'localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: ' +
      '13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  );
  const [reply] = (await once(socket, 'data')) as [Buffer];
  assert.match(reply.toString('latin1'), /^HTTP\/1\.1 101 /);
  socket.destroy();
});

test('connections over the limit are closed before the handshake', async () => {
  const small = await startTestFront({ config: { ...files, MAX_CONNECTIONS: 2 } });
  const { port } = new URL(small.url);
  const open = await Promise.all(
    Array.from(
      { length: 5 },
      () =>
        new Promise<tls.TLSSocket | undefined>((resolve) => {
          const socket = tls.connect({ host: '127.0.0.1', port: Number(port), ...trust() });
          socket.once('secureConnect', () => {
            resolve(socket);
          });
          socket.once('error', () => {
            resolve(undefined);
          });
        }),
    ),
  );
  assert.equal(open.filter(Boolean).length, 2);
  for (const socket of open) {
    socket?.destroy();
  }
  await small.close();
});

test('a key that does not match the certificate is refused in one line with the files', async () => {
  const keyFile = path.join(folder, 'other.pem');
  await writeFile(
    keyFile,
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
      type: 'pkcs8',
      format: 'pem',
    }),
  );
  for (const bad of [
    { ...files, TLS_KEY_FILE: keyFile },
    { ...files, TLS_CERT_FILE: path.join(folder, 'missing.pem') },
  ]) {
    await assert.rejects(
      startTestFront({ config: bad }),
      (error: Error) => error.message.includes('TLS_CERT_FILE=') && !error.message.includes('\n'),
    );
  }
});

// A client whose media path fails is told why on its WebSocket, at once, and the metrics say the
// same.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { call, startServer, type TestServer } from '../harness/server.ts';
import { makeOffer, WeriftPeer } from '../harness/werift-peer.ts';
import { WsClient } from '../harness/ws-client.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
});

async function tokenOf(): Promise<string> {
  const { body } = await call(server, '/compose/token', { faceId: 'ava' });
  return String(body.session_token);
}

async function endsBy(reason: string): Promise<boolean> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return text
    .split('\n')
    .includes(`mouthpiece_sessions_ended_total{kind="p2p",reason="${reason}"} 1`);
}

test('a certificate other than the offer named is told as CERTIFICATE_MISMATCH, at once', async () => {
  const startMs = performance.now();
  // As somebody on the way would: another fingerprint in the offer than that of the certificate.
  const other = (_line: string, head: string, first: string): string =>
    head + (first === '00' ? '01' : '00');
  const otherFingerprint = (sdp: string): string =>
    sdp.replaceAll(/(a=fingerprint:\S+ )(..)/g, other);
  const peer = await WeriftPeer.open(server, await tokenOf(), otherFingerprint);
  const { text } = await peer.socket.waitFor('ERROR', { limitMs: 10_000 });
  assert.match(text, /^ERROR CERTIFICATE_MISMATCH/);
  assert.ok(
    performance.now() - startMs < 10_000,
    'long before the 15 s of one that never comes up',
  );
  await peer.close();
  assert.ok(await endsBy('certificate_mismatch'));
});

test('a client whose datagrams never arrive is told CONNECT_TIMEOUT after 15 s', async () => {
  const socket = await WsClient.open(server, await tokenOf());
  socket.send(JSON.stringify({ type: 'offer', sdp: await makeOffer() }));
  await socket.waitFor('{"sdp"');
  const startMs = performance.now();
  const { text } = await socket.waitFor('ERROR', { limitMs: 25_000 });
  assert.match(text, /^ERROR CONNECT_TIMEOUT/);
  const tookMs = performance.now() - startMs;
  assert.ok(tookMs > 13_000 && tookMs < 19_000, `after ${tookMs.toFixed(0)} ms`);
  await socket.close();
  assert.ok(await endsBy('connect_timeout'));
});

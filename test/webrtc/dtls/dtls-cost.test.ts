// The cost of a hostile DTLS client with valid ICE credentials: memory, CPU time, and datagrams
// sent.
import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { test } from 'vitest';
import {
  certificateFor,
  createCertificate,
  fingerprintOf,
  keyProblem,
} from '../../../src/webrtc/dtls/certificate.ts';
import { DtlsServer } from '../../../src/webrtc/dtls/dtls-server.ts';
import { LyingClient, type ClientIdentity } from '../../harness/dtls-client.ts';

const own = createCertificate(Date.now());
const client = createCertificate(Date.now());

interface Opened {
  readonly server: DtlsServer;
  readonly sent: Buffer[];
  readonly ends: string[];
}

function open(identity: ClientIdentity = client): Opened {
  const sent: Buffer[] = [];
  const ends: string[] = [];
  const server = new DtlsServer(
    own,
    [{ hash: 'sha256', value: fingerprintOf(identity.der, 'sha256') }],
    {
      send: (datagram) => {
        sent.push(datagram);
      },
      onConnected: () => {
        ends.push('connected');
      },
      onClosed: (reason, detail) => {
        ends.push(reason, detail);
      },
      onData: () => {},
    },
  );
  return { server, sent, ends };
}

/** Bytes held by V8 and Node, after a garbage collection if the test runner exposes it. */
function bytesHeld(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

test('a half-open handshake costs a few kilobytes and a fraction of a millisecond', () => {
  const count = 1_000;
  const hellos = Array.from({ length: count }, () => new LyingClient(client).hello());
  // Warm-up: the code is compiled before it is measured.
  for (const hello of hellos.slice(0, 100)) {
    open().server.receive(hello[0]!, 0);
  }
  const before = bytesHeld();
  const cpuBefore = process.cpuUsage();
  const held = hellos.map((hello) => {
    const opened = open();
    opened.server.receive(hello[0]!, 0);
    opened.sent.length = 0;
    return opened;
  });
  const { user, system } = process.cpuUsage(cpuBefore);
  const cpuMs = (user + system) / 1_000 / count;
  const kilobytes = (bytesHeld() - before) / 1_000 / count;
  console.info(
    `${kilobytes.toFixed(1)} kB and ${cpuMs.toFixed(2)} ms of CPU for each of ${held.length}`,
  );
  assert.ok(kilobytes < 25, `${kilobytes} kB`); // 6 measured, plus garbage that was not collected
  assert.ok(cpuMs < 3, `${cpuMs} ms`); // 0.17 measured on an idle core
});

/** One byte of a handshake message that claims to be long. */
function fragment(sequence: number, length: number): Buffer {
  const body = Buffer.from([11, 0, length >> 8, length & 255, 0, sequence, 0, 0, 0, 0, 0, 1, 7]);
  return Buffer.concat([
    Buffer.from([22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, body.length]),
    body,
  ]);
}

test('fragments of messages that are never completed take 30 kB at most', () => {
  const before = process.memoryUsage().arrayBuffers;
  const held = Array.from({ length: 100 }, () => {
    const { server } = open();
    for (let sequence = 0; sequence < 20; sequence++) {
      server.receive(fragment(sequence, 16_000), 0);
    }
    for (let sequence = 1; sequence < 20; sequence++) {
      server.receive(fragment(sequence, 4_000), 0);
    }
    return server;
  });
  const each = (process.memoryUsage().arrayBuffers - before) / held.length;
  assert.ok(each < 30_000, `${each} bytes`);
});

test('a flight is sent at most 20 times, however often the client repeats its own', () => {
  const { server, sent } = open();
  const [hello] = new LyingClient(client).hello();
  for (let nowMs = 0; nowMs < 60_000; nowMs += 20) {
    server.receive(hello!, nowMs);
    server.poll(nowMs);
  }
  assert.ok(sent.length >= 10 && sent.length <= 20, `${sent.length} flights`);
});

test('a replayed Finished is not a sign of life, and is answered at most 20 times', () => {
  const { server, sent, ends } = open();
  const dtls = new LyingClient(client);
  server.receive(dtls.hello()[0]!, 0);
  const flight = dtls.respond(sent.splice(0));
  for (const datagram of flight) {
    server.receive(datagram, 10);
  }
  assert.deepEqual(ends, ['connected']);
  sent.length = 0;
  for (let nowMs = 300; nowMs < 60_000; nowMs += 20) {
    assert.equal(server.receive(flight.at(-1)!, nowMs), 'repeated');
  }
  assert.ok(sent.length > 0 && sent.length <= 20, `${sent.length} answers`);
});

test('keys that are expensive to check are refused before they are used', () => {
  const weak = generateKeyPairSync('rsa', { modulusLength: 1_024 });
  const odd = generateKeyPairSync('ec', { namedCurve: 'brainpoolP512r1' });
  for (const [keys, problem] of [
    [weak, /RSA key of 1024 bits/],
    [odd, /brainpoolP512r1/],
  ] as const) {
    const identity = certificateFor(keys, Date.now());
    const { server, sent, ends } = open(identity);
    const dtls = new LyingClient(identity);
    server.receive(dtls.hello()[0]!, 0);
    for (const datagram of dtls.respond(sent.splice(0))) {
      server.receive(datagram, 10);
    }
    assert.equal(ends[0], 'dtls_failed');
    assert.match(ends[1]!, problem);
  }
  const { n } = generateKeyPairSync('rsa', { modulusLength: 2_048 }).publicKey.export({
    format: 'jwk',
  });
  const long = createPublicKey({
    key: { kty: 'RSA', n: n!, e: Buffer.alloc(256, 0x7f).toString('base64url') },
    format: 'jwk',
  });
  assert.match(keyProblem(long)!, /long exponent/);
  assert.equal(
    keyProblem(createPublicKey({ key: { kty: 'RSA', n: n!, e: 'AQAB' }, format: 'jwk' })),
    undefined,
  );
  assert.equal(keyProblem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey), undefined);
  assert.match(keyProblem(generateKeyPairSync('ed25519').publicKey)!, /ed25519/);
});

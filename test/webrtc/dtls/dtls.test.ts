// The DTLS server without a network: honest clients of every kind connect, others do not.
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { test } from 'vitest';
import * as fc from 'fast-check';
import { createSelfSignedCertificate, HashAlgorithm, SignatureAlgorithm } from 'werift';
import { createCertificate, fingerprintOf } from '../../../src/webrtc/dtls/certificate.ts';
import { DtlsServer } from '../../../src/webrtc/dtls/dtls-server.ts';
import { inputsIn, corpusOf } from '../../fuzz/catalogue.ts';
import { readScript } from '../../fuzz/engine/script.ts';
import { LyingClient, type ClientIdentity, type ClientQuirks } from '../../harness/dtls-client.ts';

const own = createCertificate(Date.now());
const client = createCertificate(Date.now());
const stranger = createCertificate(Date.now());

/** An RSA certificate, as GStreamer and older stacks create them. */
async function rsaIdentity(): Promise<ClientIdentity> {
  const { certPem, keyPem } = await createSelfSignedCertificate({
    signature: SignatureAlgorithm.rsa_1,
    hash: HashAlgorithm.sha256_4,
  });
  return { der: new X509Certificate(certPem).raw, privateKey: createPrivateKey(keyPem) };
}

class Harness {
  readonly sent: Buffer[] = [];
  readonly events: string[] = [];
  readonly server: DtlsServer;
  constructor(der: Buffer, hash = 'sha256') {
    this.server = new DtlsServer(own, [{ hash, value: fingerprintOf(der, hash) }], {
      send: (datagram) => {
        this.sent.push(datagram);
      },
      onConnected: () => {
        this.events.push('connected');
      },
      onClosed: (reason) => {
        this.events.push(reason);
      },
      onData: (data) => {
        this.events.push(`data ${data.toString()}`);
      },
    });
  }
  deliver(datagrams: readonly Buffer[], nowMs = 0): void {
    for (const datagram of datagrams) {
      this.server.receive(datagram, nowMs);
    }
  }
}

function handshake(
  identity: ClientIdentity,
  quirks: ClientQuirks = {},
  offered: Buffer = identity.der,
  hash = 'sha256',
): { harness: Harness; client: LyingClient } {
  const harness = new Harness(offered, hash);
  const dtls = new LyingClient(identity, quirks);
  harness.deliver(dtls.hello());
  const flight = harness.sent.splice(0);
  if (harness.server.isConnected || harness.events.length > 0) {
    return { harness, client: dtls };
  }
  harness.deliver(dtls.respond(flight));
  return { harness, client: dtls };
}

test('our certificate is a valid self-signed P-256 certificate', () => {
  const parsed = new X509Certificate(own.der);
  assert.ok(parsed.verify(parsed.publicKey));
  assert.ok(parsed.checkPrivateKey(own.privateKey));
  assert.equal(parsed.fingerprint256, own.fingerprint);
  assert.ok(
    Date.parse(parsed.validFrom) < Date.now() &&
      Date.parse(parsed.validTo) > Date.now() + 86_400_000 * 300,
  );
});

test('honest clients connect, with all supported keys, fragments and extensions', async () => {
  const rsa = await rsaIdentity();
  const cases: [ClientIdentity, ClientQuirks, string][] = [
    [client, {}, 'sha256'],
    [client, {}, 'sha384'],
    [client, {}, 'sha512'],
    [client, { scheme: 0x0503 }, 'sha256'],
    [rsa, {}, 'sha256'],
    [rsa, { scheme: 0x0401 }, 'sha256'],
    [client, { withoutExtendedMasterSecret: true }, 'sha256'],
    [client, { shuffleFragments: 17 }, 'sha256'],
    [rsa, { shuffleFragments: 100, padding: 3_000 }, 'sha256'],
    [client, { srtpProfiles: [1] }, 'sha256'],
    [client, { suites: [0x1301, 0xc02b, 0xff] }, 'sha256'],
  ];
  for (const [identity, quirks, hash] of cases) {
    const { harness, client: dtls } = handshake(identity, quirks, identity.der, hash);
    assert.deepEqual(harness.events, ['connected'], JSON.stringify(quirks));
    harness.deliver([dtls.seal(23, Buffer.from('hi'))]);
    assert.deepEqual(harness.events, ['connected', 'data hi']);
  }
});

test('clients without the certificate of the offer are refused as not authentic', () => {
  const attacks: [ClientIdentity, ClientQuirks, Buffer][] = [
    [stranger, {}, client.der], // another certificate
    // The right certificate, another key.
    [{ der: client.der, privateKey: stranger.privateKey }, {}, client.der],
    [client, { emptyCertificate: true }, client.der],
    [client, { wrongTranscript: true }, client.der],
    [client, { badFinished: true }, client.der],
    [client, { scheme: 0x0203 }, client.der], // SHA-1
    [client, { scheme: 0x0401 }, client.der], // a signature of another kind than the key
    [client, { plainFinished: true }, client.der],
  ];
  for (const [identity, quirks, offered] of attacks) {
    let events: readonly string[];
    try {
      events = handshake(identity, quirks, offered).harness.events;
    } catch (error) {
      assert.match(String(error), /sign|digest|padding/i);
      continue;
    }
    assert.deepEqual(events, ['not_authentic'], JSON.stringify(quirks));
  }
});

test('a handshake with a missing, misplaced or unsupported message never connects', () => {
  for (const quirks of [
    { skip: 'certificate' },
    { skip: 'clientKeyExchange' },
    { skip: 'certificateVerify' },
    { badPoint: true },
    { suites: [0xc02f] },
    { srtpProfiles: [2] },
    { groups: [29] },
    { version: 0xfeff },
    { version: 0x0303 },
  ] as const) {
    const { harness } = handshake(client, quirks);
    assert.equal(harness.server.isConnected, false, JSON.stringify(quirks));
    assert.ok(!harness.events.includes('connected'));
  }
});

test('a lost flight is retransmitted by the timer, and in answer to a repeated flight', () => {
  const harness = new Harness(client.der);
  const dtls = new LyingClient(client);
  const hello = dtls.hello();
  harness.deliver(hello, 0);
  const first = harness.sent.splice(0);
  harness.server.poll(400);
  assert.equal(harness.sent.length, 0);
  harness.server.poll(510);
  assert.equal(harness.sent.splice(0).length, first.length, 'by the timer');
  harness.deliver(hello, 1_000);
  assert.equal(harness.sent.splice(0).length, first.length, 'in answer to a repeated ClientHello');
  for (let count = 0; count < 50; count++) {
    harness.deliver(hello, 1_001);
  }
  assert.equal(harness.sent.splice(0).length, 0, 'the server is not an amplifier');
  const second = dtls.respond(first);
  harness.deliver(second.toReversed(), 2_000); // Finished overtook everything
  assert.deepEqual(harness.events, ['connected']);
  const finished = harness.sent.splice(0);
  assert.equal(finished.length, 1);
  harness.server.poll(60_000);
  assert.equal(harness.sent.length, 0, 'no retransmission once connected');
});

test('messages with excessive lengths and sequence numbers take no memory', () => {
  const harness = new Harness(client.der);
  const head = Buffer.from([22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 13]);
  const before = process.memoryUsage().arrayBuffers;
  for (let sequence = 0; sequence < 5_000; sequence++) {
    const body = Buffer.from([
      11,
      0xff,
      0xff,
      0xff,
      sequence >> 8,
      sequence & 255,
      0,
      0,
      0,
      0,
      0,
      1,
      7,
    ]);
    assert.equal(harness.server.receive(Buffer.concat([head, body]), 0), 'dtls_record');
    body.writeUIntBE(16_000, 1, 3);
    harness.server.receive(Buffer.concat([head, body]), 0);
  }
  assert.ok(process.memoryUsage().arrayBuffers - before < 2e6);
});

test('a flight with changed, dropped or repeated bytes never throws; only an intact one connects', () => {
  let connected = 0;
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 6 }),
      fc.array(fc.nat(10), { maxLength: 8 }),
      fc.boolean(),
      (edits, order, isHello) => {
        const harness = new Harness(client.der);
        const dtls = new LyingClient(client);
        const spoil = (datagrams: Buffer[]): Buffer[] => {
          for (const [at, value] of edits) {
            const datagram = datagrams[at % datagrams.length]!;
            datagram[at % datagram.length] = value;
          }
          return [...order.map((index) => datagrams[index % datagrams.length]!), ...datagrams];
        };
        const hello = dtls.hello();
        harness.deliver(isHello ? spoil(hello) : hello);
        if (harness.events.length === 0 && harness.sent.length > 0) {
          harness.deliver(isHello ? dtls.respond(harness.sent) : spoil(dtls.respond(harness.sent)));
        }
        assert.ok(harness.events.length <= 2, harness.events.join(' '));
        if (harness.events.includes('connected')) {
          connected++;
          assert.equal(harness.events[0], 'connected');
        }
      },
    ),
    { seed: 9, numRuns: 1_500 },
  );
  assert.ok(connected > 50, `${connected}`); // reordering alone is harmless
});

test('a malformed certificate is refused, even if the offer has its fingerprint', () => {
  for (const der of [
    Buffer.alloc(0),
    Buffer.alloc(300, 7),
    client.der.subarray(0, 100),
    Buffer.concat([client.der.subarray(0, 200), Buffer.alloc(client.der.length - 200)]),
  ]) {
    const { harness } = handshake({ der, privateKey: client.privateKey });
    assert.equal(harness.events.length, 1, harness.events.join(' '));
    assert.notEqual(harness.events[0], 'connected');
  }
});

test('a certificate with an expensive or unusual key ends the handshake at once', () => {
  const verdicts = new Map<string, string>();
  for (const { name, bytes } of inputsIn(corpusOf('dtls'))) {
    const kind = /^cert-(.*?)(-\w+)$/.exec(name)?.[1];
    const der = readScript(bytes)[1]?.payload;
    if (kind === undefined || der === undefined) {
      continue;
    }
    const harness = new Harness(der);
    const dtls = new LyingClient({ der, privateKey: client.privateKey });
    harness.deliver(dtls.hello());
    harness.deliver(dtls.respond(harness.sent.splice(0)).slice(0, 1)); // its Certificate alone
    verdicts.set(kind, harness.events.join(' '));
  }
  assert.deepEqual(Object.fromEntries(verdicts), {
    dh: 'dtls_failed',
    dsa: 'dtls_failed',
    ed25519: 'dtls_failed',
    ed448: 'dtls_failed',
    x25519: 'dtls_failed',
    'ec-binary': 'dtls_failed',
    'ec-explicit': '',
    'ec-p521': '',
    rsa2048: '',
    rsa4096: '',
    rsa16384: 'dtls_failed',
    rsa32768: 'dtls_failed',
    'rsa-pss': 'dtls_failed',
  });
});

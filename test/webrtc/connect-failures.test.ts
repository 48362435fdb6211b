// Connections that are never established: when they end, and with which reason.
import assert from 'node:assert/strict';
import { test, type TestContext, vi } from 'vitest';
import { monotonicMs } from '../../src/base/time.ts';
import { parseOffer } from '../../src/webrtc/sdp/offer.ts';
import { createCertificate } from '../../src/webrtc/dtls/certificate.ts';
import { createEndpoint, type Endpoint } from '../../src/webrtc/endpoint.ts';
import type { Peer } from '../../src/webrtc/peer.ts';
import { bindingSuccess } from '../../src/webrtc/ice/stun.ts';
import { LyingClient, type ClientIdentity, type ClientQuirks } from '../harness/dtls-client.ts';
import { Attacker, credentialsOf, stunRequest } from '../harness/attacker.ts';
import { createWeriftConnection } from '../harness/werift-connection.ts';
import { PEER_OPTIONS, RecordingListener } from '../harness/peer-pair.ts';
import { until } from '../harness/until.ts';

const identity = createCertificate(Date.now());
const stranger = createCertificate(Date.now());

/** A peer that the test polls, and a client that only does what the test tells it. */
class ManualConnection {
  readonly endpoint: Endpoint;
  readonly listener = new RecordingListener();
  readonly peer: Peer;
  readonly client: Attacker;
  #username = '';
  #serverPassword = '';
  #password = '';

  private constructor(endpoint: Endpoint, client: Attacker) {
    this.endpoint = endpoint;
    this.client = client;
    this.peer = endpoint.createPeer(PEER_OPTIONS, this.listener);
  }

  /** Exchanges offer and answer. The offer has the fingerprint of `identity`. */
  static async open(t: TestContext): Promise<ManualConnection> {
    const endpoint = await createEndpoint({
      bindAddress: '127.0.0.1',
      port: 0,
      announcedAddresses: [],
    });
    t.onTestFinished(() => endpoint.close());
    const connection = new ManualConnection(endpoint, await Attacker.against(t, endpoint));
    const werift = createWeriftConnection();
    t.onTestFinished(() => werift.close());
    const { sdp } = await werift.createOffer();
    const fingerprint = `a=fingerprint:sha-256 ${identity.fingerprint}`;
    const offer = sdp.replaceAll(/a=fingerprint:.*/g, fingerprint);
    const answer = await connection.peer.answer(parseOffer(offer));
    const [own, server] = [credentialsOf(offer), credentialsOf(answer)];
    connection.#username = `${server.ufrag}:${own.ufrag}`;
    connection.#serverPassword = server.password;
    connection.#password = own.password;
    return connection;
  }

  /** Sends a check with a new transaction id. */
  async sendCheck(): Promise<void> {
    await this.client.send(stunRequest(this.#username, this.#serverPassword));
  }

  /** Sends a check, and answers that of the server if `isAnswering`. */
  async check(isAnswering: boolean): Promise<void> {
    await this.sendCheck();
    await until(() => this.client.replies.length >= 2);
    if (!isAnswering) {
      return;
    }
    const ours = this.client.replies.find((data) => data.readUInt16BE(0) === 1)!;
    const { received } = this.endpoint.stats;
    await this.client.send(bindingSuccess(ours, '127.0.0.1', this.endpoint.port, this.#password));
    await until(() => this.endpoint.stats.received > received);
  }

  /** Runs the DTLS handshake of a client with these faults. */
  async handshake(who: ClientIdentity, quirks: ClientQuirks = {}): Promise<void> {
    const dtls = new LyingClient(who, quirks);
    const before = this.client.replies.length;
    for (const datagram of dtls.hello()) {
      await this.client.send(datagram);
    }
    await until(() => this.client.replies.length > before);
    const flight = this.client.replies.slice(before).filter((data) => data[0] === 22);
    if (flight.length === 0) {
      return;
    }
    for (const datagram of dtls.respond(flight)) {
      await this.client.send(datagram);
    }
  }
}

test('a connection that is never established ends after 15 s, with the step that failed', async (t) => {
  for (const stage of ['connect_timeout', 'ice_failed', 'dtls_failed'] as const) {
    const connection = await ManualConnection.open(t);
    if (stage !== 'connect_timeout') {
      await connection.check(stage === 'dtls_failed');
    }
    connection.peer.poll(monotonicMs() + 14_000);
    assert.equal(connection.listener.isClosed, false, stage);
    connection.peer.poll(monotonicMs() + 16_000);
    assert.equal(await connection.listener.closed.promise, stage);
  }
});

test('a failed handshake ends the peer at once, with its reason', async (t) => {
  const cases = [
    ['not_authentic', stranger, {}, /not the one in the offer/],
    ['not_authentic', { der: identity.der, privateKey: stranger.privateKey }, {}, /does not own/],
    ['dtls_failed', identity, { suites: [0xc02f] }, /cipher suite/],
    ['dtls_failed', identity, { srtpProfiles: [2] }, /SRTP profile/],
  ] as const;
  for (const [reason, who, quirks, detail] of cases) {
    const connection = await ManualConnection.open(t);
    await connection.check(true);
    await connection.handshake(who, quirks);
    assert.equal(await connection.listener.closed.promise, reason); // without a poll
    assert.match(connection.listener.detail, detail);
  }
});

const fatalAlert = Buffer.from([21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 42]);

test('a fatal alert in the clear ends the peer after 2 s, unless the handshake continues', async (t) => {
  const connection = await ManualConnection.open(t);
  await connection.check(true);
  await connection.client.send(fatalAlert);
  await until(() => connection.endpoint.stats.rejected.dtls_plaintext === 1);
  connection.peer.poll(monotonicMs() + 1_500);
  assert.equal(connection.listener.isClosed, false, 'anyone could have sent it');
  connection.peer.poll(monotonicMs() + 2_500);
  assert.equal(await connection.listener.closed.promise, 'dtls_failed');
  assert.match(connection.listener.detail, /alert 42/);

  const steady = await ManualConnection.open(t);
  await steady.check(true);
  await steady.client.send(fatalAlert);
  await until(() => steady.endpoint.stats.rejected.dtls_plaintext === 1);
  await steady.handshake(identity);
  await steady.listener.connected.promise;
  steady.peer.poll(monotonicMs() + 2_500);
  assert.equal(steady.listener.isClosed, false);
});

test('a client that sends checks but never answers ours gets no media after 30 s', async (t) => {
  let laterMs = 0;
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + laterMs);
  t.onTestFinished(() => {
    clock.mockRestore();
  });
  const connection = await ManualConnection.open(t);
  await connection.check(true);
  await connection.handshake(identity);
  await connection.listener.connected.promise;
  // Less than 8 s apart, so that the peer does not end for silence.
  for (const atMs of [6_000, 12_000, 18_000, 24_000, 31_000]) {
    laterMs = atMs;
    const { received } = connection.endpoint.stats;
    await connection.sendCheck();
    await until(() => connection.endpoint.stats.received > received);
    connection.peer.poll(monotonicMs());
    assert.equal(connection.listener.isClosed, atMs > 30_000, `after ${atMs} ms`);
  }
  assert.equal(await connection.listener.closed.promise, 'timeout');
});

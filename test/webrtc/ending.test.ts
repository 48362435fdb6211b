// Connections that do not come up: how soon they are given up, and what they say was wrong.
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

/** A peer that the test polls, and a client that does what the test says and no more. */
class Bare {
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

  /** Signals; the offer names the certificate `identity`. */
  static async open(t: TestContext): Promise<Bare> {
    const endpoint = await createEndpoint({
      bindAddress: '127.0.0.1',
      port: 0,
      announcedAddresses: [],
    });
    t.onTestFinished(() => endpoint.close());
    const bare = new Bare(endpoint, await Attacker.against(t, endpoint));
    const werift = createWeriftConnection();
    t.onTestFinished(() => werift.close());
    const { sdp } = await werift.createOffer();
    const fingerprint = `a=fingerprint:sha-256 ${identity.fingerprint}`;
    const offer = sdp.replaceAll(/a=fingerprint:.*/g, fingerprint);
    const answer = await bare.peer.answer(parseOffer(offer));
    const [own, server] = [credentialsOf(offer), credentialsOf(answer)];
    bare.#username = `${server.ufrag}:${own.ufrag}`;
    bare.#serverPassword = server.password;
    bare.#password = own.password;
    return bare;
  }

  /** Sends a check of its own, with a new id. */
  async sendCheck(): Promise<void> {
    await this.client.send(stunRequest(this.#username, this.#serverPassword));
  }

  /** Sends a check, and answers the server's when told to. */
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

  /** The DTLS handshake of a client with these faults. */
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

test('what never comes up is given up after 15 s, with the stage that it failed at', async (t) => {
  for (const stage of ['connect_timeout', 'ice_failed', 'dtls_failed'] as const) {
    const bare = await Bare.open(t);
    if (stage !== 'connect_timeout') {
      await bare.check(stage === 'dtls_failed');
    }
    bare.peer.poll(monotonicMs() + 14_000);
    assert.equal(bare.listener.isClosed, false, stage);
    bare.peer.poll(monotonicMs() + 16_000);
    assert.equal(await bare.listener.closed.promise, stage);
  }
});

test('a handshake that fails is told at once, and as what it was', async (t) => {
  const cases = [
    ['not_authentic', stranger, {}, /not the one in the offer/],
    ['not_authentic', { der: identity.der, privateKey: stranger.privateKey }, {}, /does not own/],
    ['dtls_failed', identity, { suites: [0xc02f] }, /cipher suite/],
    ['dtls_failed', identity, { srtpProfiles: [2] }, /SRTP profile/],
  ] as const;
  for (const [reason, who, quirks, detail] of cases) {
    const bare = await Bare.open(t);
    await bare.check(true);
    await bare.handshake(who, quirks);
    assert.equal(await bare.listener.closed.promise, reason); // nobody polled
    assert.match(bare.listener.detail, detail);
  }
});

const fatalAlert = Buffer.from([21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 42]);

test('a client that refuses with a plain alert is given up after 2 s, one that goes on is not', async (t) => {
  const bare = await Bare.open(t);
  await bare.check(true);
  await bare.client.send(fatalAlert);
  await until(() => bare.endpoint.stats.rejected.dtls_plaintext === 1);
  bare.peer.poll(monotonicMs() + 1_500);
  assert.equal(bare.listener.isClosed, false, 'anybody could have sent it');
  bare.peer.poll(monotonicMs() + 2_500);
  assert.equal(await bare.listener.closed.promise, 'dtls_failed');
  assert.match(bare.listener.detail, /alert 42/);

  const steady = await Bare.open(t);
  await steady.check(true);
  await steady.client.send(fatalAlert);
  await until(() => steady.endpoint.stats.rejected.dtls_plaintext === 1);
  await steady.handshake(identity);
  await steady.listener.connected.promise;
  steady.peer.poll(monotonicMs() + 2_500);
  assert.equal(steady.listener.isClosed, false);
});

test('a client that checks and never answers is no longer sent to after 30 s', async (t) => {
  let laterMs = 0;
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + laterMs);
  t.onTestFinished(() => {
    clock.mockRestore();
  });
  const bare = await Bare.open(t);
  await bare.check(true);
  await bare.handshake(identity);
  await bare.listener.connected.promise;
  // Less than 8 s apart, so that silence does not end it.
  for (const atMs of [6_000, 12_000, 18_000, 24_000, 31_000]) {
    laterMs = atMs;
    const { received } = bare.endpoint.stats;
    await bare.sendCheck();
    await until(() => bare.endpoint.stats.received > received);
    bare.peer.poll(monotonicMs());
    assert.equal(bare.listener.isClosed, atMs > 30_000, `after ${atMs} ms`);
  }
  assert.equal(await bare.listener.closed.promise, 'timeout');
});

// Attacks on the address that media goes to: who may claim one, and whom media follows.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { monotonicMs } from '../../src/base/time.ts';
import { createEndpoint } from '../../src/webrtc/endpoint.ts';
import { Attacker, credentialsOf, openEndpoint, record, stunRequest } from '../harness/attacker.ts';
import { Nat } from '../harness/nat.ts';
import { assertFlows, PeerPair } from '../harness/peer-pair.ts';
import { until } from '../harness/until.ts';

test('a client may use many addresses, but only a few are kept', async (t) => {
  const pair = await PeerPair.connect(t);
  const ufrag = /a=ice-ufrag:(\S+)/.exec(pair.answer)![1]!;
  const password = /a=ice-pwd:(\S+)/.exec(pair.answer)![1]!;
  for (let count = 0; count < 30; count++) {
    const other = await Attacker.against(t, pair.endpoint);
    await other.send(stunRequest(`${ufrag}:x`, password, false));
    await until(() => other.replies.length === 1);
    if (count < 20) {
      continue;
    }
    // The address is known now: the record is rejected for its content, not for its source.
    await other.send(record(21, 0, Buffer.from([1, 0])));
  }
  await until(() => pair.endpoint.stats.rejected.dtls_plaintext >= 10);
  await assertFlows(pair);
});

test('an address that another live peer uses cannot be claimed', async (t) => {
  const endpoint = await createEndpoint({
    bindAddress: '127.0.0.1',
    port: 0,
    announcedAddresses: [],
  });
  t.onTestFinished(() => endpoint.close());
  const victim = await PeerPair.connect(t, {}, endpoint);
  const mallory = await PeerPair.connect(t, {}, endpoint);
  const ufrag = /a=ice-ufrag:(\S+)/.exec(mallory.answer)![1]!;
  const password = /a=ice-pwd:(\S+)/.exec(mallory.answer)![1]!;
  // Mallory spoofs the victim's address, with the credentials of her own session.
  victim.sendRaw(stunRequest(`${ufrag}:x`, password));
  // The victim gets a response and a check, and does not answer the check of another session.
  await new Promise((resolve) => {
    setTimeout(resolve, 300);
  });
  // What came to Mallory's peer with the victim's keys would be rejected.
  const before = mallory.peer.stats.datagramsRejected;
  victim.sendRtcp(Buffer.from([0x80, 201, 0, 1, 0, 0, 0, 1]));
  victim.sendRaw(record(21, 0, Buffer.from([1, 0])));
  await until(
    () => victim.peer.stats.packetsReceived > 0 && victim.peer.stats.datagramsRejected > 0,
  );
  assert.equal(mallory.peer.stats.datagramsRejected, before);
  await assertFlows(victim);
  await assertFlows(mallory);
});

/** Sends a frame each 20 ms. @returns how many packets reached the client. */
async function sendFrames(pair: PeerPair, frames: number): Promise<number> {
  const before = pair.rtp.length;
  for (let frame = 0; frame < frames; frame++) {
    pair.peer.sendVideo(Buffer.alloc(3_000, 1), 3_000, frame === 0, monotonicMs(), monotonicMs());
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
  return pair.rtp.length - before;
}

test('media does not follow a replayed or captured check, and its sender gets few bytes', async (t) => {
  const { endpoint, socket } = await openEndpoint(t);
  const arrived: Buffer[] = [];
  socket.on('message', (data) => {
    if (data[0] === 0 && data[1] === 1) {
      arrived.push(data);
    }
  });
  const pair = await PeerPair.connect(t, {}, endpoint);
  const thief = await Attacker.against(t, endpoint);
  const { ufrag, password } = credentialsOf(pair.answer);
  const nominating = arrived.filter((data) => data.includes(Buffer.from([0, 0x25, 0, 0])));
  assert.ok(nominating.length > 0);
  for (const data of nominating) {
    await thief.send(data);
  }
  await until(() => endpoint.stats.rejected.stun_replayed === nominating.length);
  assert.equal(thief.replies.length, 0);
  thief.sentBytes = 0;
  // A check that the attacker kept from reaching us.
  await thief.send(stunRequest(`${ufrag}:x`, password));
  await until(() => thief.replies.length >= 2);
  assert.equal(await sendFrames(pair, 25), 75);
  await assertFlows(pair);
  const { receivedBytes, sentBytes } = thief;
  assert.ok(receivedBytes <= 3 * sentBytes, `${receivedBytes} bytes for ${sentBytes}`);
});

test('media follows a client to its new address, with or without a nomination', async (t) => {
  for (const isNominated of [true, false]) {
    const endpoint = await createEndpoint({
      bindAddress: '127.0.0.1',
      port: 0,
      announcedAddresses: [],
    });
    t.onTestFinished(() => endpoint.close());
    const nat = await Nat.before(t, endpoint);
    const pair = await PeerPair.connect(t, { relayPort: nat.port }, endpoint);
    const { ufrag, password } = credentialsOf(pair.answer);
    const client = /a=ice-ufrag:(\S+)/.exec(pair.client.localDescription!.sdp)![1]!;
    assert.equal(await sendFrames(pair, 2), 6);
    await nat.rebind();
    assert.equal(await sendFrames(pair, 2), 0, 'the old address is dead');
    const startMs = monotonicMs();
    const checks = setInterval(() => {
      nat.send(stunRequest(`${ufrag}:${client}`, password, isNominated));
    }, 500);
    t.onTestFinished(() => {
      clearInterval(checks);
    });
    const before = pair.rtp.length;
    await until(
      () => {
        pair.peer.sendVideo(Buffer.alloc(500, 1), 500, true, monotonicMs(), monotonicMs());
        return pair.rtp.length > before;
      },
      6_000,
      'media at the new address',
    );
    const tookMs = monotonicMs() - startMs;
    console.info(`${isNominated ? 'nominated' : 'not nominated'}: ${tookMs.toFixed(0)} ms`);
    clearInterval(checks);
    await assertFlows(pair);
  }
});

// How a connection ends: by the client, by silence, by the server.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { monotonicMs } from '../../src/base/time.ts';
import { PeerPair } from '../harness/peer-pair.ts';
import { until } from '../harness/until.ts';
import { ssrcOf } from './sdp/read-answer.ts';

test('close_notify ends the connection at once', async (t) => {
  const pair = await PeerPair.connect(t);
  const dtls = pair.transport.dtls as unknown as {
    dtls: { recordSequenceNumber: number };
    cipher: { encryptPacket(packet: unknown): { serialize(): Buffer } };
  };
  const { DtlsPlaintext } = await plaintext();
  const record = new DtlsPlaintext(
    {
      contentType: 21,
      protocolVersion: { major: 254, minor: 253 },
      epoch: 1,
      sequenceNumber: ++dtls.dtls.recordSequenceNumber,
      contentLen: 2,
    },
    Buffer.from([1, 0]),
  );
  pair.sendRaw(dtls.cipher.encryptPacket(record).serialize());
  assert.equal(await pair.listener.closed.promise, 'closed');
  assert.equal(pair.endpoint.peerCount, 0);
});

/** werift does not export its record type, and never sends the alert itself. */
const plaintext = async (): Promise<{
  DtlsPlaintext: new (header: unknown, fragment: Buffer) => unknown;
}> =>
  (await import(
    new URL('../../node_modules/werift/lib/dtls/src/record/message/plaintext.js', import.meta.url)
      .href
  )) as { DtlsPlaintext: new (header: unknown, fragment: Buffer) => unknown };

test('a silent client is checked, and the peer ends within ten seconds', async (t) => {
  const pair = await PeerPair.connect(t);
  pair.stopPolling();
  const nowMs = monotonicMs();
  const received = pair.endpoint.stats.received;
  pair.peer.poll(nowMs + 4_000);
  await until(() => pair.endpoint.stats.received > received, 5_000, 'a response to our check');
  assert.equal(
    pair.endpoint.stats.rejected.stun_integrity + pair.endpoint.stats.rejected.stun_unknown_user,
    0,
  );
  assert.equal(pair.listener.isClosed, false);
  pair.peer.poll(nowMs + 9_500);
  assert.equal(await pair.listener.closed.promise, 'timeout');
  assert.equal(pair.endpoint.peerCount, 0);
  assert.equal(pair.peer.sendVideo(Buffer.alloc(100), 100, true, 0, nowMs), 0);
});

test('close sends BYE and close_notify, frees the peer, and is idempotent', async (t) => {
  const pair = await PeerPair.connect(t);
  const states: string[] = [];
  const byes: Buffer[] = [];
  pair.transport.onStateChange.subscribe((state) => {
    states.push(state);
  });
  pair.transport.iceTransport.connection.onData.subscribe((data) => {
    if (data[0]! >> 6 === 2 && data[1] === 201) {
      byes.push(pair.transport.srtcp.decrypt(data)); // an empty receiver report, then BYE
    }
  });
  await pair.peer.close();
  await pair.peer.close();
  await until(() => states.includes('closed'));
  const bye = byes[0]!;
  assert.equal(bye[9], 203);
  assert.equal(bye.readUInt32BE(12), ssrcOf(pair.answer));
  assert.equal(pair.endpoint.peerCount, 0);
  assert.equal(pair.listener.isClosed, false, 'onClosed is not called for close()');
});

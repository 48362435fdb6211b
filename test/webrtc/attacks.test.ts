// Known attacks on WebRTC stacks: by strangers, by attackers who spoof the client's address, by the
// client.
import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { test } from 'vitest';
import { classes, crc32c, Message, methods } from 'werift';
import { createEndpoint } from '../../src/webrtc/endpoint.ts';
import type { PeerHost } from '../../src/webrtc/peer-host.ts';
import { Attacker, credentialsOf, openEndpoint, record, stunRequest } from '../harness/attacker.ts';
import { assertFlows, PeerPair } from '../harness/peer-pair.ts';
import { until } from '../harness/until.ts';

const tick = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });
const clientHello = (sequence = 0): Buffer => {
  const extensions = Buffer.from([0, 10, 0, 4, 0, 2, 0, 23, 0, 14, 0, 5, 0, 2, 0, 7, 0]);
  const body = Buffer.concat([
    Buffer.from([0xfe, 0xfd]),
    randomBytes(32),
    Buffer.from([0, 0, 0, 2, 0xc0, 0x2b, 1, 0, 0, extensions.length]),
    extensions,
  ]);
  const head = Buffer.from([1, 0, 0, body.length, 0, sequence, 0, 0, 0, 0, 0, body.length]);
  return record(22, 0, Buffer.concat([head, body]));
};

// Without it the heap holds as much garbage as the engine likes, which depends on the machine's load.
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('plaintext alerts, unknown records and a new ClientHello from any source have no effect', async (t) => {
  const pair = await PeerPair.connect(t);
  const stranger = await Attacker.against(t, pair.endpoint);
  const { rejected } = pair.endpoint.stats;
  const forged = [
    record(21, 0, Buffer.from([1, 0])),
    record(21, 0, Buffer.from([2, 40])),
    record(24, 0, Buffer.from([9, 9])),
    record(23, 0, randomBytes(50)),
    record(20, 0, Buffer.from([1])),
    record(22, 1, randomBytes(60)),
    record(21, 1, randomBytes(26)),
    record(23, 2, randomBytes(40)),
    clientHello(),
    clientHello(5),
  ];
  for (const datagram of forged) {
    await stranger.send(datagram);
  }
  await until(() => rejected.unknown_source >= forged.length);
  assert.equal(stranger.replies.length, 0, 'no answer to a stranger');
  const dtlsRejected = (): number =>
    rejected.dtls_plaintext + rejected.dtls_record + rejected.dtls_renegotiation;
  // On a busy machine the client may have repeated parts of its handshake.
  const before = dtlsRejected();
  const renegotiations = rejected.dtls_renegotiation;
  for (const datagram of forged) {
    pair.sendRaw(datagram);
  }
  await until(() => dtlsRejected() >= before + forged.length);
  assert.ok(rejected.dtls_renegotiation >= renegotiations + 2);
  await assertFlows(pair);
});

test('a replayed record is rejected', async (t) => {
  const pair = await PeerPair.connect(t, { dataChannel: true });
  await until(() => pair.client.sctpTransport?.sctp.state === 'connected');
  const { connection } = pair.transport.iceTransport;
  const original = connection.send.bind(connection);
  let sealed: Buffer | undefined = undefined;
  connection.send = async (data) => {
    if (data[0] === 23) {
      sealed ??= Buffer.from(data);
    }
    await original(data);
  };
  await pair.transport.dtls!.send(randomBytes(40));
  const before = pair.endpoint.stats.rejected.dtls_record;
  await until(() => sealed !== undefined);
  for (let count = 0; count < 5; count++) {
    pair.sendRaw(sealed!);
  }
  await until(() => pair.endpoint.stats.rejected.dtls_record >= before + 5);
  await assertFlows(pair);
});

test('STUN without the right username and integrity has no effect and gets no answer', async (t) => {
  const pair = await PeerPair.connect(t);
  const stranger = await Attacker.against(t, pair.endpoint);
  const ufrag = /a=ice-ufrag:(\S+)/.exec(pair.answer)![1]!;
  const password = /a=ice-pwd:(\S+)/.exec(pair.answer)![1]!;
  const good = stunRequest(`${ufrag}:x`, password);
  const tampered = Buffer.from(good);
  tampered[30]! ^= 1;
  const truncated = good.subarray(0, good.length - 3);
  for (const datagram of [
    stunRequest(undefined, undefined),
    stunRequest('zzzz:yyyy', undefined),
    stunRequest(`${ufrag}:x`, undefined),
    stunRequest(`${ufrag}:x`, 'wrong'),
    stunRequest('zzzz:x', password),
    tampered,
    truncated,
    stunRequest(`${ufrag}:x`, ''),
    stunRequest(ufrag.toLowerCase() + 'X:x', password),
  ]) {
    await stranger.send(datagram);
  }
  const { rejected } = pair.endpoint.stats;
  await until(
    () => rejected.stun_integrity + rejected.stun_malformed + rejected.stun_unknown_user >= 9,
  );
  // Forged responses from the client's own address, to checks that were never sent.
  const response = new Message(methods.BINDING, classes.RESPONSE);
  for (let count = 0; count < 20; count++) {
    pair.sendRaw(response.bytes);
  }
  await until(() => rejected.stun_unknown_user >= 20);
  assert.equal(stranger.replies.length, 0);
  await assertFlows(pair);
});

/** The client sends malformed SCTP packets, encrypted with its DTLS keys. */
test('SCTP with a bad checksum or length, or without a data channel, is dropped', async (t) => {
  for (const dataChannel of [true, false]) {
    const pair = await PeerPair.connect(t, { dataChannel });
    if (dataChannel) {
      await until(() => pair.client.sctpTransport?.sctp.state === 'connected');
    }
    const dtls = pair.transport.dtls!;
    const before = pair.endpoint.stats.rejected.sctp_malformed;
    const packet = (chunk: readonly number[], isGood: boolean): Buffer => {
      const out = Buffer.concat([
        Buffer.from([0x13, 0x88, 0x13, 0x88, 0, 0, 0, 0, 0, 0, 0, 0]),
        Buffer.from(chunk),
      ]);
      out.writeUInt32LE(crc32c(out) >>> 0, 8);
      if (!isGood) {
        out[8]! ^= 1;
      }
      return out;
    };
    const hostile = [
      packet([1, 0, 0, 20, ...randomBytes(16)], false),
      packet([0, 3, 0, 0], true),
      packet([0, 3, 0, 0, 0, 0, 0, 0], true),
      packet([3, 0, 255, 255], true),
      packet([10, 0, 0, 4], true),
      randomBytes(5),
      randomBytes(12),
      Buffer.alloc(0),
    ];
    for (const data of hostile) {
      await dtls.send(data);
    }
    for (let count = 0; count < 300; count++) {
      const chunk = randomBytes(4 + randomInt(80));
      chunk[0] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 130, 192][randomInt(15)]!;
      if (randomInt(2) === 0) {
        chunk.writeUInt16BE(chunk.length, 2);
      }
      await dtls.send(packet([...chunk], randomInt(4) > 0));
      if (count % 20 === 0) {
        await tick();
      }
    }
    await until(() => pair.endpoint.stats.rejected.sctp_malformed > before + hostile.length);
    await assertFlows(pair);
  }
});

test('a client that sends random authentic RTCP and RTP does not disturb others', async (t) => {
  const endpoint = await createEndpoint({
    bindAddress: '127.0.0.1',
    port: 0,
    announcedAddresses: [],
  });
  t.onTestFinished(() => endpoint.close());
  const bystander = await PeerPair.connect(t, {}, endpoint);
  const pair = await PeerPair.connect(t, { audio: 'sendrecv' }, endpoint);
  const ssrc = Number(/a=ssrc:(\d+)/.exec(pair.answer)![1]);
  for (let count = 0; count < 3_000; count++) {
    const parts: Buffer[] = [];
    for (let part = 0; part <= randomInt(3); part++) {
      const body = randomBytes(4 * randomInt(1, 20));
      if (body.length >= 8) {
        body.writeUInt32BE(ssrc, 4);
      }
      const words = randomInt(5) > 0 ? body.length / 4 : randomInt(65_536);
      parts.push(
        Buffer.from([
          0x80 | randomInt(32),
          [200, 201, 202, 203, 204, 205, 205, 206, 206, 207][randomInt(10)]!,
          words >> 8,
          words & 255,
        ]),
        body,
      );
    }
    pair.sendRtcp(Buffer.concat([...parts, Buffer.alloc(4)]));
    if (count % 30 === 0) {
      await tick();
    }
  }
  for (let count = 0; count < 500; count++) {
    pair.sendRaw(
      Buffer.concat([
        Buffer.from([0x80 | randomInt(64), randomInt(256)]),
        randomBytes(randomInt(10, 200)),
      ]),
    );
  }
  await until(() => endpoint.stats.received >= 3_000, 10_000);
  await assertFlows(bystander);
  await assertFlows(pair);
  assert.ok(pair.listener.keyFrameRequests <= 200, 'key-frame requests are rate-limited');
  assert.ok(pair.peer.stats.packetsRetransmitted < 500);
});

test('100 000 junk datagrams get no answer, take no memory, and do not disturb a session', async (t) => {
  const pair = await PeerPair.connect(t);
  const stranger = await Attacker.against(t, pair.endpoint);
  const ufrag = /a=ice-ufrag:(\S+)/.exec(pair.answer)![1]!;
  const makers = [
    () => randomBytes(randomInt(1, 1_400)),
    () => Buffer.alloc(0),
    () => stunRequest(`${ufrag}:${randomInt(1e6)}`, undefined),
    () => clientHello(),
    () =>
      Buffer.concat([
        Buffer.from([randomInt(128, 192), randomInt(256)]),
        randomBytes(randomInt(0, 100)),
      ]),
    () => record(randomInt(20, 64), randomInt(3), randomBytes(randomInt(200))),
    () => {
      const data = stunRequest(`${ufrag}:x`, 'y');
      data[randomInt(data.length)] = randomInt(256);
      return data;
    },
  ];
  const pool = Array.from({ length: 700 }, (_, index) => makers[index % makers.length]!());
  const heapOf = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = heapOf();
  let sent = 0;
  while (sent < 100_000) {
    for (let burst = 0; burst < 50; burst++, sent++) {
      void stranger.send(pool[sent % pool.length]!);
    }
    await tick();
  }
  // The kernel drops what arrives faster than it is read.
  await until(() => pair.endpoint.stats.received > 20_000, 20_000, 'the junk to arrive');
  assert.equal(stranger.replies.length, 0);
  assert.equal(pair.endpoint.peerCount, 1);
  assert.ok(heapOf() - before < 60e6, `heap grew by ${((heapOf() - before) / 1e6).toFixed(0)} MB`);
  await assertFlows(pair);
});

test("junk from the client's address, spoofed, does not end its session", async (t) => {
  const pair = await PeerPair.connect(t);
  for (let count = 0; count < 5_000; count++) {
    const data = randomBytes(randomInt(1, 300));
    data[0] = [randomInt(256), 20 + randomInt(44), 128 + randomInt(64)][count % 3]!;
    pair.sendRaw(data);
    if (count % 50 === 0) {
      await tick();
    }
  }
  await until(() => pair.peer.stats.datagramsRejected > 1_000);
  await assertFlows(pair);
});

test('a datagram from port 0 ends neither session nor worker', async (t) => {
  const { endpoint, socket } = await openEndpoint(t);
  const pair = await PeerPair.connect(t, {}, endpoint);
  const { ufrag, password } = credentialsOf(pair.answer);
  const before = endpoint.stats.rejected.unknown_source;
  const check = stunRequest(`${ufrag}:x`, password);
  socket.emit('message', check, {
    address: '127.0.0.1',
    family: 'IPv4',
    port: 0,
    size: check.length,
  });
  assert.equal(endpoint.stats.rejected.unknown_source, before + 1);
  await assertFlows(pair);
});

test('datagrams that the system refuses to send are counted, and end nothing', async (t) => {
  const { endpoint, socket } = await openEndpoint(t);
  const pair = await PeerPair.connect(t, {}, endpoint);
  const host = endpoint as unknown as PeerHost;
  host.send(Buffer.alloc(70_000), 70_000, '127.0.0.1', 9); // EMSGSIZE
  host.send(Buffer.alloc(10), 10, '255.255.255.255', 9); // EACCES: the broadcast address
  await until(() => endpoint.stats.unsent.refused === 2);
  socket.emit('error', Object.assign(new Error('ENOBUFS'), { code: 'ENOBUFS' }));
  assert.equal(endpoint.stats.unsent.refused, 3);
  await assertFlows(pair);
});

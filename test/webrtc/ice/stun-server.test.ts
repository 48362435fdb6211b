// The STUN server: answers Binding requests only (RFC 8489, RFC 5769), and is in the default ICE
// list.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { test, type TestContext } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import { AddressBudget } from '../../../src/base/address-budget.ts';
import {
  bindingResponse,
  startStunServer,
  type StunOutcome,
} from '../../../src/webrtc/ice/stun-server.ts';
import { socketsMadeBy } from '../../harness/udp-sockets.ts';
import { startTestFront } from '../../front/harness.ts';

const request = (id: Buffer): Buffer => Buffer.concat([Buffer.from('000100002112a442', 'hex'), id]);

test('XOR-MAPPED-ADDRESS is that of the test vectors of RFC 5769', () => {
  const id = Buffer.from('b7e7a701bc34d686fa87dfae', 'hex');
  assert.equal(
    bindingResponse(request(id), '192.0.2.1', 32853)?.subarray(20).toString('hex'),
    '002000080001a147e112a643',
  );
  assert.equal(
    bindingResponse(request(id), '2001:db8:1234:5678:11:2233:4455:6677', 32853)
      ?.subarray(20)
      .toString('hex'),
    '002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9',
  );
  assert.equal(bindingResponse(request(id), '::1', 1)?.length, 44);
  assert.deepEqual(
    bindingResponse(request(id), '::ffff:1.2.3.4', 1),
    bindingResponse(request(id), '1.2.3.4', 1),
    'an IPv4 client of a dual-stack socket gets an IPv4 address',
  );
});

test('nothing else is answered', () => {
  const good = request(randomBytes(12));
  for (const [offset, value] of [
    [0, 0x40],
    [1, 0x11],
    [4, 0],
    [3, 4],
  ] as const) {
    const bad = Buffer.from(good);
    bad[offset] = value;
    assert.equal(bindingResponse(bad, '127.0.0.1', 1), undefined);
  }
  for (let length = 0; length < 20; length++) {
    assert.equal(bindingResponse(good.subarray(0, length), '127.0.0.1', 1), undefined);
  }
  for (let i = 0; i < 10_000; i++) {
    assert.equal(bindingResponse(randomBytes(i % 100), '127.0.0.1', 1), undefined);
  }
});

for (const stun of [{}, { stunHost: '127.0.0.2' }]) {
  test(`without ICE_SERVERS a STUN server answers on ${stun.stunHost ?? 'HOST'}`, async () => {
    const server = await startTestFront({ config: { ICE_SERVERS: undefined }, ...stun });
    const client = createSocket('udp4');
    try {
      const [entry] = (await (await server.call('/compose/ice')).json()) as { urls: string }[];
      const [, host = '', port = ''] = /^stun:([\d.]+):(\d+)$/.exec(entry?.urls ?? '') ?? [];
      const id = randomBytes(12);
      const answer = await new Promise<Buffer>((resolve) => {
        client.once('message', resolve);
        client.send(request(id), Number(port), host);
      });
      assert.ok(answer.subarray(8, 20).equals(id));
      assert.equal(answer.readUInt16BE(26) ^ 0x2112, client.address().port);
    } finally {
      client.close();
      await server.close();
    }
  });
}

/** A server on loopback, its socket, and what it counted. */
interface Opened {
  readonly port: number;
  readonly socket: Socket;
  readonly counted: StunOutcome[];
}

async function openServer(t: TestContext): Promise<Opened> {
  const counted: StunOutcome[] = [];
  const count = (outcome: StunOutcome): void => {
    counted.push(outcome);
  };
  const log = createLogger('silent');
  const { made, value } = await socketsMadeBy(() => startStunServer('127.0.0.1', 0, log, count));
  t.onTestFinished(() => value!.close());
  return { port: value!.port, socket: made[0]!, counted };
}

async function ask(port: number, client: Socket): Promise<void> {
  client.send(request(randomBytes(12)), port, '127.0.0.1');
  await once(client, 'message');
}

test('a datagram that claims to come from port 0 does not end the server', async (t) => {
  const { port, socket, counted } = await openServer(t);
  // As the kernel delivers such a datagram. Sending one takes a raw socket.
  socket.emit('message', request(randomBytes(12)), { address: '127.0.0.1', port: 0 });
  assert.deepEqual(counted, ['not_stun']);
  const client = createSocket('udp4');
  t.onTestFinished(() => {
    client.close();
  });
  await ask(port, client);
  assert.deepEqual(counted, ['not_stun', 'answered']);
});

test('an answer that the system refuses to send is counted, and the server goes on', async (t) => {
  const { port, socket, counted } = await openServer(t);
  // The broadcast address needs SO_BROADCAST: EACCES.
  socket.emit('message', request(randomBytes(12)), { address: '255.255.255.255', port: 9 });
  const client = createSocket('udp4');
  t.onTestFinished(() => {
    client.close();
  });
  await ask(port, client);
  assert.deepEqual(counted, ['answered', 'send_failed', 'answered']);
});

test('one address gets a bounded number of answers, without effect on others', async (t) => {
  const { socket, counted } = await openServer(t);
  const from = (address: string): void => {
    socket.emit('message', request(randomBytes(12)), {
      address,
      family: 'IPv4',
      port: 9,
      size: 20,
    });
  };
  for (let i = 0; i < 2_000; i++) {
    from('127.0.0.3');
  }
  const answered = counted.filter((outcome) => outcome === 'answered').length;
  assert.ok(answered >= 200 && answered < 1_000, `${answered} answers at once`);
  // Several addresses: one of them may share a bucket with the first one.
  for (let i = 4; i < 14; i++) {
    from(`127.0.0.${i}`);
  }
  assert.ok(counted.slice(-10).filter((outcome) => outcome === 'answered').length >= 8);
});

test('a budget refills at its rate, and counts an IPv6 /64 as one address', () => {
  const budget = new AddressBudget(0, { perSecond: 10, burst: 5, buckets: 1 << 20 });
  const taken = (address: string, nowMs: number): number => {
    let count = 0;
    while (budget.take(address, nowMs)) {
      count++;
    }
    return count;
  };
  assert.equal(taken('192.0.2.1', 0), 5);
  assert.equal(taken('192.0.2.1', 300), 3);
  assert.equal(taken('192.0.2.1', 60_000), 5);
  assert.equal(taken('2001:db8:1:2::1', 0), 5);
  assert.equal(taken('2001:db8:1:2:3:4:5:6', 0), 0, 'the same /64');
  assert.equal(budget.take('2001:db8:1:3::1', 0), true, 'another /64');
  assert.equal(taken('::1', 0), 5);
  assert.equal(taken('::2', 0), 0);
});

test('which addresses share a bucket is different in each server', () => {
  const patterns = Array.from({ length: 10 }, () => {
    const budget = new AddressBudget(0, { perSecond: 1, burst: 1, buckets: 16 });
    return Array.from({ length: 20 }, (_, i) => budget.take(`192.0.2.${i}`, 0)).join();
  });
  assert.ok(new Set(patterns).size > 1, 'nobody can choose an address that blocks another one');
});

test('addresses spread evenly over the buckets', () => {
  const budget = new AddressBudget(0, { perSecond: 10, burst: 1, buckets: 16_384 });
  let answered = 0;
  for (let i = 0; i < 4_096; i++) {
    if (budget.take(`10.0.${i >> 8}.${i & 255}`, 0)) {
      answered++;
    }
  }
  assert.ok(answered > 3_300, `${answered} of 4096 addresses got a bucket of their own`);
});

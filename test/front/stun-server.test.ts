// The STUN server: answers Binding requests as RFC 8489 and RFC 5769 have it, nothing else, and is what the default ICE list names.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { test } from 'node:test';
import { bindingResponse } from '../../src/front/stun-server.ts';
import { startTestFront } from './harness.ts';

const request = (id: Buffer): Buffer => Buffer.concat([Buffer.from('000100002112a442', 'hex'), id]);

test('XOR-MAPPED-ADDRESS is that of the vectors of RFC 5769', () => {
  const id = Buffer.from('b7e7a701bc34d686fa87dfae', 'hex');
  assert.equal(bindingResponse(request(id), '192.0.2.1', 32853)?.subarray(20).toString('hex'), '002000080001a147e112a643');
  assert.equal(bindingResponse(request(id), '2001:db8:1234:5678:11:2233:4455:6677', 32853)?.subarray(20).toString('hex'), '002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9');
  assert.equal(bindingResponse(request(id), '::1', 1)?.length, 44);
  assert.equal(bindingResponse(request(id), '::ffff:1.2.3.4', 1)?.length, 44);
});

test('nothing else is answered', () => {
  const good = request(randomBytes(12));
  for (const [offset, value] of [[0, 0x40], [1, 0x11], [4, 0], [3, 4]] as const) {
    const bad = Buffer.from(good);
    bad[offset] = value;
    assert.equal(bindingResponse(bad, '127.0.0.1', 1), undefined);
  }
  for (let length = 0; length < 20; length += 1) assert.equal(bindingResponse(good.subarray(0, length), '127.0.0.1', 1), undefined);
  for (let i = 0; i < 10_000; i += 1) assert.equal(bindingResponse(randomBytes(i % 100), '127.0.0.1', 1), undefined);
});

for (const stun of [{}, { publicHost: '127.0.0.2', stunHost: '127.0.0.2' }]) test(`without ICE_SERVERS the list names a server that answers, on ${stun.stunHost ?? 'the address of HTTP'}`, async () => {
  const server = await startTestFront({ iceServers: undefined, ...stun });
  const client = createSocket('udp4');
  try {
    const [entry] = await (await server.call('/compose/ice')).json() as { urls: string }[];
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

// Which messages of a room reach the front: those of the agent, and few of strangers.
import assert from 'node:assert/strict';
import { DataPacket, DataStream_Chunk, RpcRequest } from '@livekit/protocol';
import { test } from 'vitest';
import { RoomMessages, senderOf } from '../../src/worker/room-messages.ts';

const packetOf = (participantIdentity: string): Buffer =>
  Buffer.from(
    new DataPacket({
      participantIdentity,
      destinationIdentities: ['avatar'],
      sequence: 70_000,
      value: { case: 'rpcRequest', value: new RpcRequest({ id: 'r', payload: 'x'.repeat(300) }) },
    }).toBinary(),
  );

test('a room full of strangers takes nothing from the agent', () => {
  const messages = new RoomMessages(0);
  assert.equal(messages.judge(packetOf('agent'), 0), 'dropped', 'before it is known who counts');
  messages.heed('agent');
  const strangers = Array.from({ length: 10_000 }, (_, i) =>
    messages.judge(packetOf(`stranger ${i % 100}`), i / 10),
  );
  const passed = strangers.filter((verdict) => verdict === 'other').length;
  assert.ok(passed > 50 && passed < 100, `${passed} of 10,000 in a second`);
  assert.ok(!strangers.includes('heeded'));
  for (let i = 0; i < 5000; i++) {
    assert.equal(messages.judge(packetOf('agent'), 1000), 'heeded');
  }
});

test('an agent may send ten minutes of speech at once, and then as it is spoken', () => {
  const messages = new RoomMessages(0);
  messages.heed('agent');
  const value = new DataStream_Chunk({ streamId: 's', content: new Uint8Array(48_000) });
  const chunk = Buffer.from(
    new DataPacket({
      participantIdentity: 'agent',
      value: { case: 'streamChunk', value },
    }).toBinary(),
  );
  const take = (count: number, nowMs: number): number =>
    Array.from({ length: count }, () => messages.judge(chunk, nowMs)).filter(
      (verdict) => verdict === 'heeded',
    ).length;
  assert.equal(take(1200, 0), 1200, 'ten minutes of 48 kHz');
  assert.ok(take(3000, 0) < 300);
  assert.equal(take(16, 1000), 16, 'a second of 192 kHz in stereo');
  assert.ok(take(3000, 2000) < 30);
});

test('the sender is found wherever it stands; noise has none', () => {
  assert.equal(String(senderOf(packetOf('agent'))), 'agent');
  const twice = Buffer.concat([packetOf('first'), packetOf('last')]);
  assert.equal(String(senderOf(twice)), 'last');
  for (const noise of [
    '',
    'ff',
    '22',
    '2205',
    '2205616765',
    '2380',
    '0880',
    '08ffffffffffffffffffff01',
  ]) {
    assert.equal(senderOf(Buffer.from(noise, 'hex')), undefined, noise);
  }
});

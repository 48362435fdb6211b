// audioInputFormat "opus": each binary message is one Opus packet; what is none does no harm.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, test } from 'vitest';
import { patience } from '../harness/machine.ts';
import { native } from '../../src/native/addon.ts';
import { createToken, startServer, type TestServer } from '../harness/server.ts';
import { synthesize } from '../harness/speech.ts';
import { LightPeer } from '../../bench/peers/light-peer.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
});

test('Opus packets over the socket are spoken, and garbage among them is not', async () => {
  assert.ok(await createToken(server, { audioInputFormat: 'opus' }));
  const peer = await LightPeer.connect({
    target: server,
    codec: 'vp8',
    faceId: 'ava',
    token: { audioInputFormat: 'opus' },
  });
  const { pcm } = await synthesize('Packets of Opus speak as well.');
  const encoder = new native.OpusEncoder({ sampleRate: 16_000, channels: 1, bitrate: 24_000 });
  const out = new Uint8Array(1500);
  const packets: Uint8Array<ArrayBuffer>[] = [randomBytes(37), randomBytes(900)];
  for (let at = 0; at + 320 <= pcm.length; at += 320) {
    packets.push(out.slice(0, encoder.encode(pcm.subarray(at, at + 320), out)));
  }
  encoder.close();
  const utterance = peer.sendMessages(packets);
  const deadline = performance.now() + 10_000;
  while (utterance.silentMs === undefined && performance.now() < deadline) {
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
  assert.notEqual(utterance.audibleMs, undefined, 'it is heard');
  const spokenMs = utterance.silentMs! - utterance.speakMs!;
  assert.ok(
    Math.abs(spokenMs - pcm.length / 16) < 900 * patience(),
    `spoken for ${spokenMs} ms of ${pcm.length / 16}`,
  );
  await peer.close();
});

// Bring your own network: offered as a model when it can hold the frame rate, spoken with, and
// refused in words when it can not be used.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, test } from 'vitest';
import { LightPeer } from '../../bench/peers/light-peer.ts';
import { createLogger } from '../../src/base/log.ts';
import { loadConfig } from '../../src/config.ts';
import { startServer as startHere } from '../../src/server.ts';
import { patience } from '../harness/machine.ts';
import { call, startServer } from '../harness/server.ts';
import { synthesize } from '../harness/speech.ts';
import { until } from '../harness/until.ts';
import { smallNetwork } from '../pipeline/wav2lip/small-network.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-wav2lip-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

test('a session with model "wav2lip" speaks', async () => {
  const file = path.join(folder, 'small.onnx');
  writeFileSync(file, smallNetwork(96));
  const server = await startServer({ env: { WAV2LIP_MODEL: file } });
  let peer: LightPeer | undefined;
  try {
    peer = await LightPeer.connect({
      target: server,
      codec: 'vp8',
      faceId: 'ava',
      token: { model: 'wav2lip' },
    });
    const { pcm } = await synthesize('A network of my own.');
    const utterance = await peer.speak(pcm, 'burst');
    await until(() => utterance.silentMs !== undefined, 8000 * patience(), 'the end of the speech');
    assert.notEqual(utterance.audibleMs, undefined);
    assert.ok(peer.figures.frames > 30, `${peer.figures.frames} frames`);
  } finally {
    await peer?.close();
    await server.stop();
  }
});

test('an unusable network is logged; sessions get the built-in renderer', async () => {
  const file = path.join(folder, 'other.onnx');
  writeFileSync(file, smallNetwork(96, { melRows: 40 }));
  const server = await startServer({ env: { WAV2LIP_MODEL: file } });
  try {
    assert.ok(server.logs.some((line) => /WAV2LIP_MODEL must take mel/.test(line)));
    // Clients also send the names of other services' models, so a model that is not offered means
    // the default.
    for (const model of ['wav2lip', 'rig']) {
      assert.equal((await call(server, '/compose/token', { faceId: 'ava', model })).status, 200);
    }
    const peer = await LightPeer.connect({
      target: server,
      codec: 'vp8',
      faceId: 'ava',
      token: { model: 'wav2lip' },
    });
    await peer.close();
  } finally {
    await server.stop();
  }
});

test(
  'a worker that dies while its network runs takes nobody along, and its successor has the ' +
    'network too',
  async () => {
    const file = path.join(folder, 'busy.onnx');
    writeFileSync(file, smallNetwork(96, { layers: 2 })); // about 5 ms of each frame on an idle core
    const server = await startHere(
      loadConfig({
        PORT: '0',
        DATA_DIR: path.join(folder, 'data'),
        WORKERS: '1',
        DRAIN_SECONDS: '0',
        WAV2LIP_MODEL: file,
      }),
      createLogger('warn'),
    );
    try {
      const { pcm } = await synthesize('A network of my own, and a worker that dies.');
      for (let round = 0; round < 3; round++) {
        const peer = await LightPeer.connect({
          target: server,
          codec: 'vp8',
          faceId: 'ava',
          token: { model: 'wav2lip' },
        });
        await peer.speak(pcm, 'burst');
        await new Promise((resolve) => {
          setTimeout(resolve, 500 + 11 * round);
        });
        const killed = server.pool.handles[0]!;
        killed.kill();
        await until(
          () => server.pool.handles[0] !== killed && server.pool.handles[0]!.isReady,
          20_000 * patience(),
          'the worker is replaced',
        );
        await until(() => peer.figures.ending !== undefined, 5_000 * patience(), 'the end is told');
        assert.match(peer.figures.ending!, /WORKER_LOST/);
        assert.ok(server.pool.renderers.includes('wav2lip'));
        await peer.close();
      }
    } finally {
      await server.stop(0);
    }
  },
);

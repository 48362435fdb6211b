import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, test } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import { ARTICULATION_SIZE } from '../../../src/media/articulation.ts';
import { native } from '../../../src/native/addon.ts';
import {
  WAV2LIP_COLUMNS,
  WAV2LIP_MELS,
  Wav2LipMel,
  slaneyFilters,
} from '../../../src/pipeline/wav2lip/wav2lip-mel.ts';
import { Wav2LipFace } from '../../../src/pipeline/wav2lip/wav2lip-face.ts';
import { measurePatchMs } from '../../../src/pipeline/wav2lip/patch-generator.ts';
import {
  Wav2LipNetwork,
  Wav2LipRefused,
  bindShapes,
} from '../../../src/pipeline/wav2lip/wav2lip-network.ts';
import { Wav2LipRenderer } from '../../../src/pipeline/wav2lip/wav2lip-renderer.ts';
import { ava } from '../../worker/sessions.ts';
import { startInference } from './inference.ts';
import { smallNetwork } from './small-network.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-wav2lip-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const write = (name: string, bytes: Uint8Array): string => {
  const file = path.join(folder, name);
  writeFileSync(file, bytes);
  return file;
};
const tone = (hz: number, amplitude: number, samples: number): Int16Array =>
  Int16Array.from({ length: samples }, (_, i) =>
    Math.round(32_767 * amplitude * Math.sin((2 * Math.PI * hz * i) / 16_000)),
  );

test('a column has the values of the published formula, computed here directly', () => {
  const pcm = tone(700, 0.4, 4000).map(
    (value, i) => value + Math.round(3000 * Math.sin((i * i) / 900)),
  );
  const mel = new Wav2LipMel();
  mel.push(pcm, pcm.length);
  const window = new Float32Array(WAV2LIP_MELS * WAV2LIP_COLUMNS);
  mel.window(1000 / 60 + 80, window); // columns 0 to 15
  const filters = slaneyFilters();
  for (const column of [4, 9, 15]) {
    const samples = Array.from({ length: 800 }, (_, i) => {
      const at = column * 200 - 400 + i;
      const value =
        at < 0 ? 0 : pcm[at]! / 32_768 - (at === 0 ? 0 : (0.97 * pcm[at - 1]!) / 32_768);
      return value * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / 800));
    });
    const magnitudes = Array.from({ length: 401 }, (_, bin) =>
      Math.hypot(
        samples.reduce((sum, value, i) => sum + value * Math.cos((2 * Math.PI * bin * i) / 800), 0),
        samples.reduce((sum, value, i) => sum - value * Math.sin((2 * Math.PI * bin * i) / 800), 0),
      ),
    );
    for (const band of [3, 12, 40, 79]) {
      const energy = filters[band]!.reduce(
        (sum, weight, bin) => sum + weight * magnitudes[bin]!,
        0,
      );
      const wanted = Math.min(
        4,
        Math.max(-4, (8 * (20 * Math.log10(Math.max(1e-5, energy)) - 20 + 100)) / 100 - 4),
      );
      assert.ok(
        Math.abs(window[band * WAV2LIP_COLUMNS + column]! - wanted) < 0.01,
        `column ${column} band ${band}: ${window[band * WAV2LIP_COLUMNS + column]} for ${wanted}`,
      );
    }
  }
});

test('silence is the floor, and a tone stands out in the band of its frequency', () => {
  const mel = new Wav2LipMel();
  const window = new Float32Array(WAV2LIP_MELS * WAV2LIP_COLUMNS);
  mel.push(new Int16Array(8000), 8000);
  mel.window(300, window);
  assert.ok(window.every((value) => value === -4));
  mel.reset();
  mel.push(tone(1000, 0.5, 8000), 8000);
  mel.window(250, window);
  const column = Array.from(
    { length: WAV2LIP_MELS },
    (_, band) => window[band * WAV2LIP_COLUMNS + 8]!,
  );
  const filters = slaneyFilters();
  assert.ok(filters[column.indexOf(Math.max(...column))]![50]! > 0, 'the loudest band holds 1 kHz');
});

test('shapes are bound by rank and size, whatever their names; others are refused by name', () => {
  const image = { name: 'x', shape: ['b', 6, 288, 288] };
  const mel = { name: 'y', shape: ['b', 1, 80, 16] };
  const out = { name: 'z', shape: ['b', 3, 288, 288] };
  assert.deepEqual(bindShapes([image, mel], [out]), {
    mel: 'y',
    image: 'x',
    output: 'z',
    side: 288,
  });
  assert.equal(
    bindShapes(
      [mel, { name: 'x', shape: ['b', 6, 'h', 'w'] }],
      [{ name: 'z', shape: ['b', 3, 'h', 'w'] }],
    ).side,
    96,
  );
  for (const [inputs, outputs] of [
    [[image], [out]],
    [[image, { name: 'y', shape: ['b', 1, 40, 16] }], [out]],
    [[image, mel], [{ name: 'z', shape: ['b', 1] }]],
    [[{ name: 'x', shape: [1, 6, 64, 64] }, mel], [out]],
  ] as const) {
    assert.throws(
      () => bindShapes(inputs, outputs),
      (error: unknown) => error instanceof Wav2LipRefused && /found inputs/.test(error.message),
    );
  }
});

test('a file that is not a network, another kind of network and a slow one are refused', async () => {
  await assert.rejects(
    Wav2LipNetwork.load(path.join(folder, 'none.onnx'), ['cpu']),
    Wav2LipRefused,
  );
  await assert.rejects(
    Wav2LipNetwork.load(write('junk.onnx', Buffer.from('version https://git-lfs')), ['cpu']),
    Wav2LipRefused,
  );
  await assert.rejects(
    Wav2LipNetwork.load(write('mel.onnx', smallNetwork(96, { melRows: 40 })), ['cpu']),
    /must take mel \[B,1,80,16\]/,
  );
  const good = await Wav2LipNetwork.load(write('slow.onnx', smallNetwork(96)), ['cpu']);
  const face = new Wav2LipFace(new Uint8Array(ava), 96);
  assert.ok((await measurePatchMs(good, face)) > 0);
  await assert.rejects(
    measurePatchMs(good, face, 0.0001),
    /takes \d+\.\d ms a frame on this machine with one thread \(WAV2LIP_THREADS\) and has 0\.0/,
  );
  const other = await Wav2LipNetwork.load(write('odd.onnx', smallNetwork(96, { isHalved: true })), [
    'cpu',
  ]);
  await assert.rejects(
    measurePatchMs(other, face),
    /gave float32 \[1,3,48,48\] instead of float32 \[1,3,96,96\]/,
  );
});

test('a thread that is told what the network costs does not time it', async (t) => {
  const file = write('timed.onnx', smallNetwork(96));
  const client = await startInference(t, file, { maxFrameMs: 0.0001, knownCost: 0.25 });
  assert.ok(Math.abs(client.costPerSession - 0.25) < 1e-9, `${client.costPerSession}`);
  await assert.rejects(startInference(t, file, { maxFrameMs: 0.0001 }), /frames a second/);
});

test('the patch follows the speech and covers the lower face alone', async (t) => {
  const wav2lipFace = new Wav2LipFace(new Uint8Array(ava), 96);
  const masked = wav2lipFace.image.subarray(0, 96 * 48);
  assert.ok(
    masked.some((value) => value > 0),
    'the upper half is there',
  );
  assert.ok(
    wav2lipFace.image.subarray(96 * 48, 96 * 96).every((value) => value === 0),
    'the lower half is masked',
  );

  const client = await startInference(t, write('good.onnx', smallNetwork(96, { gain: 0.4 })));
  assert.ok(client.costPerSession > 0 && client.costPerSession < 1);
  const asset = new native.FaceAsset(new Uint8Array(ava));
  let made = 0;
  const renderer = new Wav2LipRenderer(
    asset,
    ava,
    client,
    { seed: 1, emotion: 0, startFrame: 0 },
    {
      onPatch: () => {
        made++;
      },
      onInferenceFailure: (error) => {
        throw error;
      },
    },
  );
  const rest = new Float32Array(ARTICULATION_SIZE);
  renderer.draw(0, rest, false);
  const before = renderer.picture.slice();
  const speech = tone(300, 0.6, 16_000);
  for (let i = 1; i <= 12 || made < 6; i++) {
    renderer.pushAudio(speech.subarray((i % 20) * 533, ((i % 20) + 1) * 533), 533);
    renderer.requestFrame(i);
    await delay(20);
    renderer.draw(i, rest, true);
  }
  const { box } = wav2lipFace;
  const chin = box.y + Math.round(box.height * 0.85);
  const middle = box.x + box.width / 2;
  const brightness = (picture: Uint8Array): number =>
    Array.from(
      { length: 40 },
      (_, i) => picture[(chin + Math.floor(i / 8)) * 512 + middle - 4 + (i % 8)]!,
    ).reduce((sum, value) => sum + value, 0) / 40;
  assert.ok(
    brightness(renderer.picture) > brightness(before) + 5,
    'loud speech brightens the lower face',
  );
  for (let y = 0; y < 512; y++) {
    for (let x = 0; x < 512; x++) {
      const isInside = x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
      if (!isInside && y > box.y + box.height) {
        assert.equal(renderer.picture[y * 512 + x], before[y * 512 + x]);
      }
      if (renderer.picture[y * 512 + x] !== before[y * 512 + x] && y > box.y + box.height / 2) {
        assert.equal(renderer.dirty[(y >> 4) * 32 + (x >> 4)], 1);
      }
    }
  }
  renderer.draw(998, rest, true); // shows what is still ready
  const { repeatedFrames: repeated } = renderer;
  renderer.draw(999, rest, true);
  assert.equal(
    renderer.repeatedFrames,
    repeated + 1,
    'a frame without its patch shows the last one, and is counted',
  );
  for (let i = 0; i < 6; i++) {
    renderer.draw(1000 + i, rest, false);
  }
  assert.equal(
    brightness(renderer.picture),
    brightness(before),
    'the rig is shown alone after the speech',
  );
});

// What a joining session costs by step, on the thread that others wait for and off it: `node
// bench/micro/join.ts [face]`, a face of models/faces; default ava.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { ARTICULATION_SIZE } from '../../src/media/articulation.ts';
import { SPEECH_RATE } from '../../src/media/timeline.ts';
import { native } from '../../src/native/addon.ts';
import { VideoTrack } from '../../src/pipeline/encode/video-track.ts';
import { FaceCache } from '../../src/pipeline/render/face-cache.ts';
import { RigRenderer } from '../../src/pipeline/render/rig-renderer.ts';
import { quantile } from '../report/stats.ts';

const ROUNDS = 40;
const KBPS = 600;
/** Joins do not follow one another at once: in between the caches are somebody else's. */
const BETWEEN = new Float64Array(1 << 20);

const file = readFileSync(
  path.join(import.meta.dirname, '../../models/build/faces', `${process.argv[2] ?? 'ava'}.face`),
);
const face = new SharedArrayBuffer(file.length);
new Uint8Array(face).set(file);
const silence = new Float32Array(ARTICULATION_SIZE);

const steps = new Map<string, { thisThread: number[]; total: number[] }>();
async function step<T>(name: string, run: () => T | Promise<T>): Promise<T> {
  const [startMs, startCpuMs] = [performance.now(), native.threadCpuMs()];
  const result = await run();
  const taken = steps.get(name) ?? { thisThread: [], total: [] };
  steps.set(name, taken);
  taken.thisThread.push(native.threadCpuMs() - startCpuMs);
  taken.total.push(performance.now() - startMs);
  return result;
}

for (let round = 0; round < ROUNDS; round++) {
  BETWEEN.fill(round);
  const cache = new FaceCache();
  await step('face, new to the worker: here', () => new native.FaceAsset(new Uint8Array(face)));
  await step('face, new to the worker: prepared', () => cache.load('face', face));
  const asset = cache.take('face', face);
  const stage = await step(
    'renderer',
    () => new RigRenderer(asset, { seed: round, emotion: 0, startFrame: 0 }),
  );
  const opus = await step(
    'Opus encoder',
    () => new native.OpusEncoder({ sampleRate: SPEECH_RATE, channels: 1, bitrate: 32_000 }),
  );
  await step('first picture drawn', () => {
    stage.draw(0, silence, false);
  });
  for (const codec of ['vp8', 'h264'] as const) {
    const here = new VideoTrack(codec, KBPS);
    await step(`${codec} set up, first picture coded: here`, () =>
      here.encode(stage.picture, stage.dirty),
    );
    here.close();
    const prepared = new VideoTrack(codec, KBPS);
    await step(`${codec} set up, first picture coded: prepared`, () =>
      prepared.prepare(stage.picture),
    );
    await step(`${codec} closed`, () => {
      prepared.close();
    });
  }
  opus.close();
}

console.log(`${'median of'.padEnd(48)} this thread ms   in all ms`);
for (const [name, { thisThread, total }] of steps) {
  console.log(
    `${name.padEnd(48)} ${quantile(thisThread, 0.5).toFixed(2).padStart(14)} ` +
      quantile(total, 0.5).toFixed(2).padStart(11),
  );
}

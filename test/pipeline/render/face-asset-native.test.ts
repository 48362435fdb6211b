// The native reader of face assets: shared memory, several threads, and damaged files.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'vitest';
import { Worker } from 'node:worker_threads';
import { decodeFaceAsset, encodeFaceAsset } from '../../../src/media/face-asset.ts';
import { native } from '../../../src/native/addon.ts';
import { FaceCache } from '../../../src/pipeline/render/face-cache.ts';
import { VISEMES } from '../../../src/pipeline/render/visemes.ts';
import { checksumOf } from './checksum.ts';
import { Canvas, SIZE, syntheticAsset } from './synthetic-face.ts';

const bytes = syntheticAsset();

const shared = (): Uint8Array<SharedArrayBuffer> => {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
};

test('reads an asset and its size', () => {
  const asset = new native.FaceAsset(bytes);
  assert.deepEqual([asset.width, asset.height], [SIZE, SIZE]);
  assert.throws(
    () => new (native.FaceAsset as unknown as new (x: unknown) => unknown)('x'),
    TypeError,
  );
  assert.throws(
    () => new (native.FaceRenderer as unknown as new (x: unknown) => unknown)({}),
    TypeError,
  );
});

test('a file without the limit of the brows is read as one with limit 1', () => {
  const older = bytes.slice();
  const entry = Buffer.from(older.buffer).indexOf('limits\0');
  const length = new DataView(older.buffer, entry + 20, 4);
  assert.equal(length.getUint32(0, true), 28);
  length.setUint32(0, 24, true);
  assert.deepEqual(decodeFaceAsset(older).limits, { ...decodeFaceAsset(bytes).limits, brow: 1 });
  assert.deepEqual(
    new Canvas(new native.FaceAsset(older)).show(VISEMES.aa).picture,
    new Canvas(new native.FaceAsset(bytes)).show(VISEMES.aa).picture,
  );
});

test('keeps its own bytes alive, shared or not', async () => {
  const plain = bytes.slice();
  const asset = new native.FaceAsset(plain);
  structuredClone(plain.buffer, { transfer: [plain.buffer] }); // detaches it on this thread
  const canvas = new Canvas(asset).show(VISEMES.aa);
  assert.ok(canvas.opening() > 100);
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  assert.ok(canvas.show(VISEMES.oh).opening() > 10);
});

test('two threads draw the same face from one buffer at once', async () => {
  const memory = shared();
  const source = `
    import { parentPort, workerData } from 'node:worker_threads';
    const { checksumOf } = await import(workerData.module);
    parentPort.postMessage(checksumOf(workerData.memory));`;
  const results = await Promise.all(
    [0, 1].map(async () => {
      const worker = new Worker(source, {
        eval: true,
        workerData: { memory, module: new URL('./checksum.ts', import.meta.url).href },
      });
      const [message] = (await once(worker, 'message')) as [string];
      await worker.terminate();
      return message;
    }),
  );
  assert.deepEqual(results, [checksumOf(bytes), checksumOf(bytes)]);
});

test('the same face is parsed once per thread, and the cache is bounded', () => {
  const shelf = new FaceCache();
  const ava = shelf.take('ava', shared().buffer);
  assert.equal(
    shelf.take('ava', shared().buffer),
    ava,
    'memory that crosses threads is a new object each time',
  );
  assert.notEqual(shelf.take('noah', shared().buffer), ava);
  for (let i = 0; i < 100; i++) {
    shelf.take(`face-${i}`, shared().buffer);
  }
  assert.ok(shelf.size <= 32);
});

test('a face prepared on another thread is the same, and costs this thread next to nothing', async () => {
  const shelf = new FaceCache();
  const cpuMs = native.threadCpuMs();
  const coming = Promise.all([
    shelf.load('ava', shared().buffer),
    shelf.load('ava', shared().buffer),
  ]);
  const startedMs = native.threadCpuMs() - cpuMs;
  assert.equal(shelf.has('ava'), false);
  await coming;
  assert.equal(shelf.has('ava'), true);
  const asset = shelf.take('ava', shared().buffer);
  await shelf.load('ava', shared().buffer);
  assert.equal(shelf.take('ava', shared().buffer), asset);
  const beforeMs = native.threadCpuMs();
  const plain = new native.FaceAsset(shared());
  const plainMs = native.threadCpuMs() - beforeMs;
  assert.ok(startedMs < plainMs / 2, `${startedMs} ms to begin, ${plainMs} ms to do it here`);
  assert.deepEqual(
    new Canvas(asset).show(VISEMES.aa).picture,
    new Canvas(plain).show(VISEMES.aa).picture,
  );
});

test('while a face is being prepared it cannot be drawn; a malformed one is refused', async () => {
  const asset = new native.FaceAsset(shared(), true);
  const coming = asset.prepare();
  assert.throws(() => new native.FaceRenderer(asset), /is being prepared/);
  assert.throws(() => {
    void asset.prepare();
  }, /is being prepared/);
  await coming;
  await asset.prepare();
  assert.ok(new native.FaceRenderer(asset));
  assert.ok(
    new native.FaceRenderer(new native.FaceAsset(bytes, true)),
    'without prepare, the renderer derives it',
  );

  const parts = decodeFaceAsset(bytes);
  const flat = encodeFaceAsset({ ...parts, landmarks: parts.landmarks.map(() => 100) });
  assert.throws(() => new native.FaceAsset(flat), /landmarks do not make a face/);
  await assert.rejects(new native.FaceAsset(flat, true).prepare(), /landmarks do not make a face/);
  assert.throws(
    () => new native.FaceRenderer(new native.FaceAsset(flat, true)),
    /landmarks do not make a face/,
  );
  const shelf = new FaceCache();
  await assert.rejects(
    shelf.load('flat', new Uint8Array(new SharedArrayBuffer(flat.length)).buffer),
    /not a usable face asset/,
  );
  assert.equal(shelf.size, 0);
});

test('both readers accept a cut or corrupted asset, or say what is wrong', () => {
  let state = 12345;
  const random = (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % below;
  };
  for (let round = 0; round < 300; round++) {
    const broken = round % 3 === 0 ? bytes.slice(0, random(bytes.length)) : bytes.slice();
    // Damage to the prefix, the section table and the landmarks matters; pixels can have any value.
    for (let flips = random(6); flips > 0 && broken.length > 0; flips--) {
      broken[random(Math.min(broken.length, 400))] = random(256);
    }
    for (const read of [
      (): unknown => new Canvas(new native.FaceAsset(broken)).show(VISEMES.aa),
      (): unknown => decodeFaceAsset(broken),
    ]) {
      try {
        read();
      } catch (error) {
        assert.ok(
          error instanceof Error &&
            (/^not a usable face asset: ./.test(error.message) ||
              error.message.includes('picture must have')),
          String(error),
        );
      }
    }
  }
});

test('wrong buffers are refused', () => {
  const renderer = new native.FaceRenderer(new native.FaceAsset(bytes));
  const good = {
    articulation: new Float32Array(14),
    pose: new Float32Array(12),
    picture: new Uint8Array(SIZE * SIZE * 1.5),
    dirty: new Uint8Array(1024),
  };
  const render = (changes: Partial<typeof good>): void => {
    const { articulation, pose, picture, dirty } = { ...good, ...changes };
    renderer.render(articulation, pose, picture, dirty);
  };
  render({});
  for (const changes of [
    { articulation: new Float32Array(13) },
    { pose: new Float32Array(11) },
    { picture: new Uint8Array(1) },
    { dirty: new Uint8Array(0) },
  ]) {
    assert.throws(() => {
      render(changes);
    }, TypeError);
  }
  assert.throws(() => {
    renderer.setEmotion(6, 1);
  }, RangeError);
  assert.throws(() => {
    renderer.setEmotion(1, Number.NaN);
  }, RangeError);
});

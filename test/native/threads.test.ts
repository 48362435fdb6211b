// Thread functions of the addon, and concurrent use of the addon by worker threads.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'vitest';
import { Worker } from 'node:worker_threads';
import { native } from '../../src/native/addon.ts';

const ADDON = new URL('../../src/native/addon.ts', import.meta.url).href;

/**
 * Runs code in a worker thread.
 * @param body the text of an async function of `native` and `input`
 * @returns its result
 */
async function inWorker(body: string, input?: unknown): Promise<unknown> {
  const source = `
    const { parentPort, workerData } = require('node:worker_threads');
    import('${ADDON}')
      .then(({ native }) => (async (native, input) => {${body}})(native, workerData))
      .then((value) => parentPort.postMessage(value));`;
  const worker = new Worker(source, { eval: true, workerData: input });
  const [value] = (await once(worker, 'message')) as [unknown];
  await worker.terminate();
  return value;
}

test('allowedCpus returns what the kernel allows, also in a pinned thread', async () => {
  const list = /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]!;
  const wanted = list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last! - first! + 1 }, (_, i) => first! + i);
  });
  assert.deepEqual(native.allowedCpus(), wanted);
  assert.deepEqual(
    await inWorker(
      'native.pinThread(Int32Array.of(native.allowedCpus().at(-1))); return native.allowedCpus();',
    ),
    wanted,
  );
});

test('pinThread and setThreadName change the calling thread only, as /proc shows', async () => {
  const status = (await inWorker(`
    native.pinThread(Int32Array.of(native.allowedCpus()[0]));
    native.setThreadName('mouthpiece-w0-and-more');
    const file = '/proc/self/task/' + native.threadId() + '/status';
    return process.getBuiltinModule('node:fs').readFileSync(file, 'utf8');`)) as string;
  assert.match(status, new RegExp(`^Cpus_allowed_list:\\s*${native.allowedCpus()[0]}$`, 'm'));
  assert.match(status, /^Name:\s*mouthpiece-w0-a$/m);
  assert.match(
    readFileSync(`/proc/self/task/${native.threadId()}/status`, 'utf8'),
    new RegExp(`^Cpus_allowed_list:\\s*${native.allowedCpus().length > 1 ? '.*[-,]' : '\\d'}`, 'm'),
  );
  assert.throws(() => {
    native.pinThread(Int32Array.of(8191));
  }, /Cannot pin the thread to CPU 8191: Invalid argument/);
  assert.throws(() => {
    native.pinThread(Int32Array.of(-1));
  }, RangeError);
  assert.throws(() => {
    native.pinThread(new Int32Array());
  }, /Invalid argument/);
  assert.throws(() => {
    native.setThreadName(7 as unknown as string);
  }, TypeError);
});

test('makeThreadRealtime changes the calling thread only, or throws without the permission', async () => {
  const policy = (await inWorker(`
    try { native.makeThreadRealtime(); } catch (error) { return error.message; }
    const file = '/proc/self/task/' + native.threadId() + '/stat';
    return process.getBuiltinModule('node:fs').readFileSync(file, 'utf8');`)) as string;
  // proc(5): field 41 is the policy (2: SCHED_RR). The name in field 2 may have spaces.
  const policyOf = (stat: string): string | undefined =>
    stat.slice(stat.lastIndexOf(')') + 2).split(' ')[38];
  if (policy.startsWith('Cannot')) {
    assert.match(policy, /^Cannot make the thread a real-time one: Operation not permitted$/);
  } else {
    assert.equal(policyOf(policy), '2');
  }
  assert.equal(policyOf(readFileSync(`/proc/self/task/${native.threadId()}/stat`, 'utf8')), '0');
});

test("threadCpuMs counts the thread's CPU time, not its sleep", async () => {
  const [busy, idle, foreign] = (await inWorker(`
    const start = native.threadCpuMs();
    while (native.threadCpuMs() - start < 40) Math.sqrt(Math.random());
    const middle = native.threadCpuMs();
    await new Promise((resolve) => setTimeout(resolve, 60));
    return [middle - start, native.threadCpuMs() - middle, native.threadId()];`)) as [
    number,
    number,
    number,
  ];
  assert.ok(busy >= 40 && busy < 60, `${busy}`);
  assert.ok(idle < 30, `${idle}`);
  assert.notEqual(foreign, native.threadId());
});

test('two worker threads encode concurrently with the result of one, and end independently', async () => {
  const body = `
    const { createHash } = process.getBuiltinModule('node:crypto');
    const hash = createHash('sha256'), out = new Uint8Array(1 << 17);
    const picture = new Uint8Array(128 * 128 * 3 / 2);
    const settings = { width: 128, height: 128, fps: 30, bitrateKbps: 200 };
    const encoders = ['vp8', 'h264'].map((codec) => new native.VideoEncoder({ codec, ...settings }));
    const opus = new native.OpusEncoder({ sampleRate: 48000, channels: 1, bitrate: 32000 });
    const pcm = new Int16Array(960);
    for (let frame = 0; frame < 60; frame++) {
      for (let i = 0; i < picture.length; i++) picture[i] = (i * 7 + frame * (i >> 9)) & 255;
      for (let i = 0; i < pcm.length; i++) pcm[i] = 9000 * Math.sin((frame * 960 + i) * 0.02);
      for (const encoder of encoders) {
        hash.update(out.subarray(0, encoder.encode(picture, out, false, null) & 0xffffff));
      }
      hash.update(out.subarray(0, opus.encode(pcm, out)));
    }
    // Not closed: the end of the thread must free them.
    return hash.digest('hex');`;
  const alone = await inWorker(body);
  const together = await Promise.all([inWorker(body), inWorker(body), inWorker(body)]);
  assert.deepEqual(together, [alone, alone, alone]);
});

test('a thread may end while it prepares an encoder', async () => {
  for (let i = 0; i < 5; i++) {
    await inWorker(`
      const settings = { width: 512, height: 512, fps: 30, bitrateKbps: 600 };
      for (const codec of ['vp8', 'h264']) {
        const encoder = new native.VideoEncoder({ codec, ...settings });
        encoder.prepare(new Uint8Array(512 * 512 * 3 / 2)).catch(() => {});
      }
      return 1;`);
  }
});

test('allocatedBytes counts allocated memory until it is freed', () => {
  const before = native.allocatedBytes();
  const encoder = new native.VideoEncoder({
    codec: 'vp8',
    width: 512,
    height: 512,
    fps: 30,
    bitrateKbps: 600,
  });
  encoder.setBitrate(500);
  const held = native.allocatedBytes() - before;
  encoder.close();
  const left = native.allocatedBytes() - before;
  assert.ok(held > 0.3e6 && held < 5e6, `${held} bytes for an encoder`);
  assert.ok(left < 0.1e6, `${left} bytes after its end`);
});

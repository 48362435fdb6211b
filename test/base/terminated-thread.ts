// Starts threads that do nothing but run the speech model, and terminates each of them. A process
// of its own: it may be aborted.
import { once } from 'node:events';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { setTimeout as sleep } from 'node:timers/promises';
import { NativeRuns, createNativeRuns, terminateBetweenRuns } from '../../src/base/native-runs.ts';
import { SpeechModel } from '../../src/pipeline/inference/speech-model.ts';

const THREADS = 12;

async function terminateThreads(): Promise<void> {
  for (let count = 0; count < THREADS; count++) {
    const memory = createNativeRuns();
    const thread = new Worker(new URL(import.meta.url), { workerData: memory });
    await once(thread, 'message');
    await sleep(3 * count);
    await terminateBetweenRuns(thread, memory);
  }
}

async function runForever(): Promise<void> {
  const model = await SpeechModel.load({
    maxBatch: 1,
    runs: new NativeRuns(workerData as SharedArrayBuffer),
  });
  const states = [model.createState()];
  parentPort!.postMessage('running');
  for (;;) {
    await model.run(states);
  }
}

await (isMainThread ? terminateThreads() : runForever());

// An inference thread for a test, as the front starts one for a worker.
import type { TestContext } from 'vitest';
import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { Wav2LipInit } from '../../../src/link/worker-init.ts';
import { InferenceClient } from '../../../src/pipeline/wav2lip/inference-client.ts';
import { ava } from '../../worker/sessions.ts';

/** @param limits of the time that a patch takes; by default as in the server */
export async function startInference(
  t: TestContext,
  file: string,
  limits: Pick<Wav2LipInit, 'maxFrameMs' | 'knownCost'> = {},
): Promise<InferenceClient> {
  const { port1, port2 } = new MessageChannel();
  const init: Wav2LipInit = {
    file,
    providers: ['cpu'],
    threads: 1,
    face: ava,
    port: port2,
    ...limits,
  };
  const thread = new Worker(
    new URL('../../../src/pipeline/wav2lip/inference-thread.ts', import.meta.url),
    {
      workerData: init,
      transferList: [port2],
    },
  );
  const client = await InferenceClient.connect(port1);
  // The thread must end by itself: to end it during a run would abort the process.
  t.onTestFinished(async () => {
    const exited = once(thread, 'exit');
    client.stop();
    await exited;
  });
  return client;
}

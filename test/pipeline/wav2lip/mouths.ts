// An inference thread for a test, as the front starts one for a worker.
import type { TestContext } from 'vitest';
import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { Wav2LipInit } from '../../../src/link/worker-init.ts';
import { InferenceClients } from '../../../src/pipeline/wav2lip/inference-clients.ts';
import { ava } from '../../worker/sessions.ts';

/** @param maxFrameMs most that a mouth may take; as the server's by default */
export async function startMouths(
  t: TestContext,
  file: string,
  maxFrameMs?: number,
): Promise<InferenceClients> {
  const { port1, port2 } = new MessageChannel();
  const birth: Wav2LipInit = {
    file,
    providers: ['cpu'],
    threads: 1,
    face: ava,
    port: port2,
    ...(maxFrameMs === undefined ? {} : { maxFrameMs }),
  };
  const thread = new Worker(new URL('../../../src/pipeline/wav2lip/thread.ts', import.meta.url), {
    workerData: birth,
    transferList: [port2],
  });
  const mouths = await InferenceClients.connect(port1);
  // That it ends by itself is part of what is tested: to end it would abort the process in the middle of a run.
  t.onTestFinished(async () => {
    const exited = once(thread, 'exit');
    mouths.stop();
    await exited;
  });
  return mouths;
}

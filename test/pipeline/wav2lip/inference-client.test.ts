// The worker's end of the port to its inference thread; this test is the thread.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { test, vi } from 'vitest';
import {
  InferenceClient,
  type InferenceClientListener,
} from '../../../src/pipeline/wav2lip/inference-client.ts';
import type {
  FromInferenceThread,
  ToInferenceThread,
} from '../../../src/pipeline/wav2lip/messages.ts';
import { Wav2LipRefused } from '../../../src/pipeline/wav2lip/wav2lip-network.ts';

const FACE = new SharedArrayBuffer(1);

async function connect(
  first: FromInferenceThread,
): Promise<{ client: InferenceClient; thread: MessagePort }> {
  const { port1, port2: thread } = new MessageChannel();
  thread.postMessage(first);
  return { client: await InferenceClient.connect(port1), thread };
}

/** Notes what it is told, as text. */
class Notes implements InferenceClientListener {
  readonly told: string[] = [];
  opened(): void {
    this.told.push('opened');
  }
  patchDone(slot: number, tookMs: number | undefined): void {
    this.told.push(`patch ${slot} ${tookMs}`);
  }
  failed(why: string): void {
    this.told.push(`failed ${why}`);
  }
}

const received = async (thread: MessagePort): Promise<ToInferenceThread> =>
  ((await once(thread, 'message')) as [ToInferenceThread])[0];

test('the cost of a session is measured time x threads x frame rate', async () => {
  const { client } = await connect({ type: 'ready', msPerFrame: 10, threads: 2 });
  assert.equal(client.costPerSession, 0.6);
  client.stop();
});

test('a refused network, a defect and a thread that ends are different errors', async () => {
  const refused = (isDefect: boolean): Promise<unknown> =>
    connect({ type: 'refused', why: 'no picture', isDefect });
  await assert.rejects(refused(false), (error) => error instanceof Wav2LipRefused);
  await assert.rejects(
    refused(true),
    (error: Error) => !(error instanceof Wav2LipRefused) && error.message === 'no picture',
  );
  const { port1, port2 } = new MessageChannel();
  port2.close();
  await assert.rejects(InferenceClient.connect(port1), /has ended/);
});

test('each answer reaches its own session, and none a session that is closed', async () => {
  const { client, thread } = await connect({ type: 'ready', msPerFrame: 1, threads: 1 });
  const [a, b] = [new Notes(), new Notes()];
  const idA = client.open(FACE, 5, a);
  const idB = client.open(FACE, 5, b);
  client.sendSpeech(idB, true, Int16Array.of(1, 2), []);
  client.close(idA);
  client.close(idA);
  const messages: ToInferenceThread[] = [];
  while (messages.length < 4) {
    messages.push(await received(thread));
  }
  assert.deepEqual(
    messages.map(({ type, id }) => [type, id]),
    [
      ['open', idA],
      ['open', idB],
      ['speech', idB],
      ['close', idA],
    ],
  );
  thread.postMessage({ type: 'patch', id: idA, slot: 1, tookMs: 2 } satisfies FromInferenceThread);
  thread.postMessage({ type: 'patch', id: idB, slot: 3, tookMs: 4 } satisfies FromInferenceThread);
  thread.postMessage({ type: 'failed', id: idB, why: 'broken' } satisfies FromInferenceThread);
  thread.close();
  await vi.waitUntil(() => b.told.length === 3);
  assert.deepEqual(a.told, []);
  assert.deepEqual(b.told.slice(0, 2), ['patch 3 4', 'failed broken']);
  assert.match(b.told[2]!, /^failed The inference thread of WAV2LIP_MODEL has ended/);
  assert.throws(() => client.open(FACE, 5, a), /has ended/);
});

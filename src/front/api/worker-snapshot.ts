// The heap snapshot of another thread, through its inspector. It does not use worker.getHeapSnapshot():
// Node 22 crashes when what that gives is collected after the thread has ended.
import { type NodeWorker, Session } from 'node:inspector/promises';
import { Readable } from 'node:stream';
import type { Worker } from 'node:worker_threads';
import { after } from '../../base/guard.ts';

type FromThread = NodeWorker.ReceivedMessageFromWorkerEventDataType;

/**
 * The snapshot is held in memory: some 50 MB for a media worker.
 * @throws Error when the thread does not answer in time, or ends
 */
export async function workerSnapshot(worker: Worker, limitMs: number): Promise<Readable> {
  const session = new Session();
  const chunks: string[] = [];
  const done = Promise.withResolvers<void>();
  done.promise.catch(() => {});
  const timer = after(limitMs, 'the heap snapshot of a thread', () => {
    done.reject(new Error('the thread does not answer its inspector'));
  });
  const end = (): void => {
    done.reject(new Error('the thread has ended'));
  };
  worker.once('exit', end);
  const receive = ({ message }: FromThread): void => {
    const { method, params, id, error } = JSON.parse(message) as {
      readonly method?: string;
      readonly params?: { readonly chunk: string };
      readonly id?: number;
      readonly error?: { readonly message: string };
    };
    if (method === 'HeapProfiler.addHeapSnapshotChunk') {
      chunks.push(params!.chunk);
    } else if (error !== undefined) {
      done.reject(new Error(error.message));
    } else if (id !== undefined) {
      done.resolve();
    }
  };
  session.connect();
  try {
    const sessionId = await attach(session, worker);
    session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
      if (params.sessionId === sessionId) {
        receive(params);
      }
    });
    const method = 'HeapProfiler.takeHeapSnapshot';
    const message = JSON.stringify({ id: 1, method, params: { reportProgress: false } });
    // Not awaited: a thread that ends amid this may leave the request without an answer.
    session.post('NodeWorker.sendMessageToWorker', { sessionId, message }).catch(done.reject);
    await done.promise;
    return Readable.from(chunks);
  } finally {
    clearTimeout(timer);
    worker.off('exit', end);
    session.disconnect();
  }
}

/** @returns the inspector's session with the thread. @throws Error when it has ended */
async function attach(session: Session, { threadId }: Worker): Promise<string> {
  let found: string | undefined;
  session.on('NodeWorker.attachedToWorker', ({ params }) => {
    // The title is `[worker 3] name`; workerId counts anew in each session.
    if (params.workerInfo.title.startsWith(`[worker ${threadId}]`)) {
      found = params.sessionId;
    }
  });
  await session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  if (found === undefined) {
    throw new Error('the thread has ended');
  }
  return found;
}

// Debugging, on ADMIN_PORT only: CPU profiles and heap snapshots of the main thread and of the
// threads beside it.
import { Session } from 'node:inspector/promises';
import type { Readable } from 'node:stream';
import { getHeapSnapshot } from 'node:v8';
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { after } from '../../base/guard.ts';
import type { NamedThread } from '../../jobs/job-pool.ts';
import { type Reply, stream, text } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { invalidField } from '../http/validate.ts';
import { workerSnapshot } from './worker-snapshot.ts';

const MAX_SECONDS = 60;
/** How long a thread may take to answer. One that hangs in native code never does. */
const ANSWER_LIMIT_MS = 30_000;
const MAIN = 'main';

/** What can be taken of a thread. */
interface Target {
  /** @returns a function that ends the profile and gives it as JSON */
  startProfile(): Promise<() => Promise<string>>;
  /** Stops the thread while the snapshot is made. */
  snapshot(limitMs: number): Promise<Readable>;
}

/**
 * @param threads the threads beside the main one that run now
 * @param answerLimitMs how long a thread may take to answer
 */
export function debugRoutes(
  threads: () => readonly NamedThread[],
  answerLimitMs = ANSWER_LIMIT_MS,
): Route[] {
  let isBusy = false;

  /** @throws ServiceError CONFLICT while another one runs: each slows a thread down */
  function occupy(): () => void {
    if (isBusy) {
      throw new ServiceError('CONFLICT', 'A profile or snapshot is being made. Try again later.');
    }
    isBusy = true;
    return () => {
      isBusy = false;
    };
  }

  /** @throws ValidationError with the names of the threads */
  function find(name: string): Target {
    if (name === MAIN) {
      return mainThread;
    }
    const running = threads();
    const worker = running.find((thread) => thread.name === name)?.worker;
    if (worker === undefined) {
      const names = [MAIN, ...running.map((thread) => thread.name)].join(', ');
      throw invalidField('query', 'thread', `There is no thread of this name. There are: ${names}`);
    }
    return {
      startProfile: async () => {
        const profile = await worker.startCpuProfile('debug');
        return () => profile.stop();
      },
      snapshot: (limitMs) =>
        workerSnapshot(worker, limitMs).catch(() => {
          throw noAnswer();
        }),
    };
  }

  const thread = z
    .string()
    .max(30)
    .default(MAIN)
    .describe(
      '`main`, `worker-0` and so on, `inference-0`, `talk`, `detector`; of jobs that run now ' +
        '`face-job-7`, `video-job-8`, `audio-job-9`, `body-job-10`, with the number of the thread. ' +
        'The refusal of an unknown name lists all.',
    );
  return [
    route({
      method: 'GET',
      path: '/debug/cpu-profile',
      tag: 'Operation',
      auth: 'operator',
      summary: 'CPU profile of a thread, for the DevTools of Chrome',
      query: z.object({
        thread,
        seconds: z.coerce.number().min(0.1).max(MAX_SECONDS).default(10),
      }),
      responses: { 200: { description: 'A .cpuprofile.', contentType: 'application/json' } },
      refusals: ['CONFLICT', 'NODE_UNREACHABLE'],
      timeoutMs: MAX_SECONDS * 1000 + 2 * ANSWER_LIMIT_MS + 5000,
      audit: 'debug.cpu-profile',
      handler: async ({ query, signal }) => {
        const target = find(query.thread);
        const release = occupy();
        try {
          return await profileReply(target, query.seconds * 1000, signal, answerLimitMs);
        } finally {
          release();
        }
      },
    }),
    route({
      method: 'GET',
      path: '/debug/heap-snapshot',
      tag: 'Operation',
      auth: 'operator',
      summary: 'Heap snapshot of a thread, which stands still meanwhile',
      query: z.object({ thread }),
      responses: { 200: { description: 'A .heapsnapshot.', contentType: 'application/json' } },
      refusals: ['CONFLICT', 'NODE_UNREACHABLE'],
      timeoutMs: 60_000,
      audit: 'debug.heap-snapshot',
      handler: async ({ query }) => {
        const target = find(query.thread);
        const release = occupy();
        try {
          const snapshot = await answerOf(target.snapshot(answerLimitMs), answerLimitMs, (late) => {
            late.destroy();
          });
          return await stream('application/json', chunksOf(snapshot, release));
        } catch (error) {
          release();
          throw error;
        }
      },
    }),
  ];
}

const mainThread: Target = {
  startProfile: async () => {
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    return async () => {
      try {
        return JSON.stringify((await session.post('Profiler.stop')).profile);
      } finally {
        session.disconnect();
      }
    };
  },
  snapshot: () => Promise.resolve(getHeapSnapshot()),
};

/** Ends early when the client leaves. */
async function profileReply(
  target: Target,
  durationMs: number,
  signal: AbortSignal,
  limitMs: number,
): Promise<Reply> {
  const stop = await answerOf(target.startProfile(), limitMs, (late) => {
    void late().catch(() => {});
  });
  await new Promise<void>((resolve) => {
    const timer = after(durationMs, 'the end of a CPU profile', resolve);
    const leave = (): void => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener('abort', leave, { once: true });
  });
  return text('application/json', await answerOf(stop(), limitMs));
}

/**
 * What a thread answers.
 * @param drop gets the answer that comes too late
 * @throws ServiceError NODE_UNREACHABLE when it does not answer
 */
async function answerOf<T>(
  asked: Promise<T>,
  limitMs: number,
  drop: (late: T) => void = () => {},
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_resolve, reject) => {
    timer = after(limitMs, 'the answer of a thread', () => {
      asked.then(drop, () => {});
      reject(noAnswer());
    });
  });
  const ended = (error: NodeJS.ErrnoException): never => {
    throw error.code === 'ERR_WORKER_NOT_RUNNING' ? noAnswer() : error;
  };
  try {
    return await Promise.race([asked.catch(ended), silence]);
  } finally {
    clearTimeout(timer);
  }
}

const noAnswer = (): ServiceError =>
  new ServiceError('NODE_UNREACHABLE', 'The thread does not answer: it hangs, or has ended.');

/** @param onEnd called once the last chunk was taken, or the client left */
async function* chunksOf(snapshot: Readable, onEnd: () => void): AsyncGenerator<string> {
  snapshot.setEncoding('utf8');
  try {
    yield* snapshot as AsyncIterable<string>;
  } finally {
    onEnd();
  }
}

// Debugging of the main thread, on ADMIN_PORT only: a CPU profile and a heap snapshot.
import { Session } from 'node:inspector/promises';
import { getHeapSnapshot } from 'node:v8';
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { sleep } from '../../base/time.ts';
import { json, stream } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';

const MAX_SECONDS = 60;

/** Routes of debugging. */
export function debugRoutes(): Route[] {
  let isBusy = false;

  /** @throws ServiceError CONFLICT while another one runs: each slows the main thread down */
  async function alone<T>(work: () => Promise<T>): Promise<T> {
    if (isBusy) {
      throw new ServiceError('CONFLICT', 'A profile or snapshot is being made. Try again later.');
    }
    isBusy = true;
    try {
      return await work();
    } finally {
      isBusy = false;
    }
  }

  return [
    route({
      method: 'GET',
      path: '/debug/cpu-profile',
      tag: 'Operation',
      auth: 'operator',
      summary: 'CPU profile of the main thread, for the DevTools of Chrome',
      query: z.object({ seconds: z.coerce.number().min(0.1).max(MAX_SECONDS).default(10) }),
      responses: { 200: { description: 'A .cpuprofile.', contentType: 'application/json' } },
      refusals: ['CONFLICT'],
      timeoutMs: (MAX_SECONDS + 15) * 1000,
      audit: 'debug.cpu-profile',
      handler: ({ query }) => alone(async () => json(await cpuProfile(query.seconds * 1000))),
    }),
    route({
      method: 'GET',
      path: '/debug/heap-snapshot',
      tag: 'Operation',
      auth: 'operator',
      summary: 'Heap snapshot of the main thread, which stands still meanwhile',
      responses: { 200: { description: 'A .heapsnapshot.', contentType: 'application/json' } },
      refusals: ['CONFLICT'],
      timeoutMs: 60_000,
      audit: 'debug.heap-snapshot',
      handler: () =>
        alone(async () => {
          const snapshot = getHeapSnapshot();
          snapshot.setEncoding('utf8');
          return await stream(
            'application/json',
            snapshot[Symbol.asyncIterator]() as AsyncIterator<string>,
          );
        }),
    }),
  ];
}

async function cpuProfile(durationMs: number): Promise<unknown> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await sleep(durationMs);
    return (await session.post('Profiler.stop')).profile;
  } finally {
    session.disconnect();
  }
}

// One route of each kind that the tests of the HTTP layer need, on a server.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { ServiceError } from '../../../src/base/errors.ts';
import { sleep } from '../../../src/base/time.ts';
import { uploadedFile } from '../../../src/front/http/body.ts';
import { file, json, stream } from '../../../src/front/http/reply.ts';
import { route, type Route } from '../../../src/front/http/route.ts';
import { integerText } from '../../../src/front/http/validate.ts';
import { FileBlobs } from '../../../src/front/store/blobs.ts';
import { serve, type TestHttp } from './server.ts';

/** The bytes of /file. */
export const content = randomBytes(5 * 1024 * 1024 + 123);
/** What the handlers did. */
export const state = { openFiles: 0, waiting: 0, abortsSeen: 0, chunksMade: 0 };

/** Starts the server. `close` also removes the files that it serves. */
export async function serveExamples(): Promise<TestHttp> {
  const directory = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-http-'));
  const blobs = new FileBlobs(directory);
  await blobs.put('big', content);
  const base = { tag: 't', summary: 's', responses: {}, auth: 'none' } as const;
  const routes: Route[] = [
    route({
      ...base,
      method: 'POST',
      path: '/echo',
      body: {
        kind: 'json',
        schema: z.object({ text: z.string(), deep: z.object({ n: z.int() }).optional() }),
        limitBytes: 1024,
      },
      handler: ({ body }) => json(body),
    }),
    route({
      ...base,
      method: 'POST',
      path: '/private',
      auth: 'key',
      body: { kind: 'json', schema: z.object({ n: z.int() }), limitBytes: 1024 },
      handler: ({ caller }) => json(caller),
    }),
    route({
      ...base,
      method: 'POST',
      path: '/upload',
      body: {
        kind: 'multipart',
        schema: z.object({ image: uploadedFile, note: z.string().optional() }),
        limitBytes: 1024 * 1024,
      },
      handler: ({ body }) =>
        json({ size: body.image.bytes.length, name: body.image.fileName, note: body.note }),
    }),
    route({
      ...base,
      method: 'GET',
      path: '/item/{id}',
      params: z.object({ id: z.string().max(10) }),
      query: z.object({ n: integerText({ min: 1, max: 5 }).optional() }),
      handler: ({ params, query }) => json({ ...params, ...query }),
      aliases: [{ method: 'GET', path: '/OldItem/{id}' }],
    }),
    route({
      ...base,
      method: 'GET',
      path: '/old',
      deprecated: true,
      successor: '/item/{id}',
      handler: () => json({}),
    }),
    route({
      ...base,
      method: 'GET',
      path: '/breaks',
      handler: () => {
        throw new Error('secret detail in /etc/passwd');
      },
    }),
    route({
      ...base,
      method: 'GET',
      path: '/refuses',
      handler: () => {
        throw new ServiceError('RATE_LIMITED', undefined, 2.2);
      },
    }),
    route({
      ...base,
      method: 'GET',
      path: '/hangs',
      timeoutMs: 50,
      handler: () => new Promise(() => {}),
    }),
    route({
      ...base,
      method: 'GET',
      path: '/waits',
      async handler({ signal }) {
        state.waiting++;
        signal.addEventListener('abort', () => {
          state.abortsSeen++;
        });
        await sleep(200);
        return json({});
      },
    }),
    route({
      ...base,
      method: 'GET',
      path: '/file',
      async handler() {
        const reader = await blobs.open('big');
        if (!reader) {
          throw new ServiceError('NOT_FOUND');
        }
        state.openFiles++;
        return file(
          {
            ...reader,
            close: async () => {
              state.openFiles--;
              await reader.close();
            },
          },
          'application/octet-stream',
          'no-cache',
        );
      },
    }),
    route({
      ...base,
      method: 'GET',
      path: '/stream',
      handler: () => stream('application/json', makeChunks()),
    }),
    route({
      ...base,
      method: 'GET',
      path: '/stream-breaks-early',
      handler: () => stream('application/json', breaks(0)),
    }),
    route({
      ...base,
      method: 'GET',
      path: '/stream-breaks-late',
      handler: () => stream('application/json', breaks(2)),
    }),
  ];
  const server = await serve(routes, [{ path: '/Removed', reason: 'Use something else.' }]);
  return {
    ...server,
    close: async () => {
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function* makeChunks(): AsyncGenerator<string> {
  for (let i = 0; i < 100; i++) {
    state.chunksMade++;
    yield await Promise.resolve(`${i}`.padStart(100_000, ' '));
  }
}

async function* breaks(afterChunks: number): AsyncGenerator<string> {
  for (let i = 0; i < afterChunks; i++) {
    yield await Promise.resolve('x'.repeat(1000));
  }
  throw new Error('the database went away');
}

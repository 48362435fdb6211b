// kill -9 of the server in the middle of a face job, of agent updates and of a session: afterwards
// nothing is lost or half there.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, test } from 'vitest';
import { newUuid } from '../../src/base/ids.ts';
import { sleep } from '../../src/base/time.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
let dataDir: string;
let child: ChildProcess;
let url: string;

beforeAll(async () => {
  dataDir = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-crash-'));
  await mkdir(path.join(dataDir, 'fixtures'));
  await writeFile(path.join(dataDir, 'fixtures/faces.json'), '{"faces":[]}');
});
afterAll(async () => {
  await kill();
  await sleep(200); // its redis-server ends by itself
  await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

async function start(sessionId = ''): Promise<void> {
  child = spawn(
    process.execPath,
    [path.join(import.meta.dirname, 'front-process.ts'), dataDir, sessionId],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [line] = (await once(
    createInterface({ input: child.stdout as NodeJS.ReadableStream }),
    'line',
  )) as [string];
  ({ url } = JSON.parse(line) as { url: string });
}

async function kill(): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  child.kill('SIGKILL');
  await once(child, 'exit');
}

async function call(
  target: string,
  init: RequestInit & { json?: unknown } = {},
): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set('x-service-api-key', 'the key of the crash test');
  if (init.json !== undefined) {
    headers.set('content-type', 'application/json');
  }
  return await fetch(url + target, {
    ...init,
    headers,
    ...(init.json === undefined
      ? {}
      : { method: init.method ?? 'POST', body: JSON.stringify(init.json) }),
  });
}

test('kill -9 loses nothing that was acknowledged', async () => {
  const sessionId = newUuid();
  await start(sessionId);

  const form = new FormData();
  form.set(
    'image',
    new File([await readFile(path.join(ROOT, 'models/faces/samuel.webp'))], 'samuel.webp'),
  );
  const faces = await Promise.all(
    [1, 2].map(
      async () =>
        (
          (await (await call('/faces/legacy', { method: 'POST', body: form })).json()) as {
            face_id: string;
          }
        ).face_id,
    ),
  );
  const status = async (id: string): Promise<string> =>
    (
      (await (await call(`/faces/legacy/generation_status?face_id=${id}`)).json()) as {
        status: string;
      }
    ).status;
  // Either may have come first.
  const statuses = async (): Promise<string[]> => await Promise.all(faces.map(status));
  for (let tries = 0; tries < 200 && !(await statuses()).includes('processing'); tries++) {
    await sleep(5);
  }
  assert.ok((await statuses()).includes('processing'));

  const agent = (await (
    await call('/auto/agent', { json: { face_id: 'ava', name: '0', prompt: '0' } })
  ).json()) as { id: string };
  const progress = { answered: 0 };
  const updates = (async () => {
    for (let n = 1; ; n++) {
      const reply = await call(`/auto/agent/${agent.id}`, {
        method: 'PUT',
        json: { name: String(n), prompt: String(n) },
      }).catch(() => undefined);
      if (!reply?.ok) {
        return;
      }
      progress.answered = n;
    }
  })();
  for (let tries = 0; tries < 400 && progress.answered < 10; tries++) {
    await sleep(5);
  }
  await kill();
  await updates;
  const { answered } = progress;
  assert.ok(answered > 0);

  await start();
  const after9 = (await (await call(`/auto/agent/${agent.id}`)).json()) as {
    name: string;
    prompt: string;
  };
  assert.equal(after9.name, after9.prompt, 'an update is there as a whole');
  assert.ok(
    Number(after9.name) >= answered && Number(after9.name) <= answered + 1,
    `answered ${answered}, found ${after9.name}`,
  );

  for (const id of faces) {
    for (let tries = 0; tries < 600 && (await status(id)) !== 'completed'; tries++) {
      assert.notEqual(await status(id), 'failed');
      await sleep(50);
    }
    assert.equal(await status(id), 'completed');
    const preview = Buffer.from(await (await call(`/faces/${id}/preview`)).arrayBuffer());
    assert.ok(preview.length > 1000);
  }

  const { sessions } = (await (await call('/history/sessions')).json()) as {
    sessions: { id: string; sessionTotalTime: number }[];
  };
  assert.deepEqual(
    sessions.map(({ id }) => id),
    [sessionId],
    'the session that ran has its record',
  );
});

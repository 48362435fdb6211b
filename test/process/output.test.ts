// Output: a log that cannot be written does not end the server; a new API key is shown once, and
// only at a terminal.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test, type TestContext } from 'vitest';
import { ROOT } from '../harness/server.ts';

const LOGGER = `
  import { createLogger } from './src/base/log.ts';
  const log = createLogger('info');
  let lines = 0;
  const timer = setInterval(() => {
    for (let i = 0; i < 200; i++) log.info({ filler: 'x'.repeat(1000), lines: lines += 1 }, 'a line');
    if (lines < 20_000) return;
    clearInterval(timer);
    process.stdout.write(JSON.stringify(process.memoryUsage()));
    process.exit(0);
  }, 5);
`;

test('on a full disk log lines are lost; the process and its memory are not affected', () => {
  const command =
    `exec '${process.execPath}' --disable-warning=ExperimentalWarning --input-type=module ` +
    '-e "$PROGRAM" 2>/dev/full';
  const child = spawnSync('sh', ['-c', command], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, PROGRAM: LOGGER },
    timeout: 60_000,
  });
  assert.equal(child.status, 0);
  const { rss } = JSON.parse(child.stdout) as { rss: number };
  assert.ok(rss < 200e6, `${Math.round(rss / 1e6)} MB`);
});

/**
 * Starts the server and waits for its greeting.
 * @param isTerminal whether stdin and stdout are a terminal
 * @returns what it wrote to stdout
 */
async function greeting(t: TestContext, dataDir: string, isTerminal: boolean): Promise<string> {
  const env = {
    PATH: process.env['PATH'],
    HOST: '127.0.0.1',
    MEDIA_HOST: '127.0.0.1',
    PORT: '0',
    WORKERS: '1',
    DRAIN_SECONDS: '0',
    DATA_DIR: dataDir,
  };
  const node = ['--disable-warning=ExperimentalWarning', 'src/main.ts'];
  const child = isTerminal
    ? spawn(
        'script',
        ['-qfec', `exec '${process.execPath}' ${node.join(' ')} 2>/dev/null`, '/dev/null'],
        { cwd: ROOT, env, stdio: ['pipe', 'pipe', 'ignore'] },
      )
    : spawn(process.execPath, node, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'] });
  const exited = once(child, 'exit');
  t.onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let text = '';
  await new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (/API key [^\n]+\n/.test(text)) {
        resolve();
      }
    });
  });
  if (isTerminal) {
    child.stdin!.end('\x03');
  } // Ctrl-C
  else {
    child.kill('SIGTERM');
  }
  await exited;
  return text;
}

test('a new API key is shown at a terminal, and nowhere else', async (t) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-key-'));
  t.onTestFinished(() =>
    rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }),
  );
  const [ours, theirs] = [path.join(folder, 'ours'), path.join(folder, 'theirs')];
  const keyOf = async (dataDir: string): Promise<string> =>
    (await readFile(path.join(dataDir, 'api-key'), 'utf8')).trim();

  const first = await greeting(t, ours, true);
  const key = await keyOf(ours);
  assert.ok(first.includes(`/#key=${key}`), first);
  const second = await greeting(t, ours, true);
  assert.ok(!second.includes(key) && second.includes(path.join(ours, 'api-key')), second);
  const daemon = await greeting(t, theirs, false);
  assert.ok(
    !daemon.includes(await keyOf(theirs)) && daemon.includes(path.join(theirs, 'api-key')),
    daemon,
  );
});

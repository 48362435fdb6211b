import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'vitest';
import { sessionHistory } from '../../scripts/logs-session.ts';

const A = '3f2a9c11-0000-4000-8000-000000000001';
const B = '3f2a9c22-0000-4000-8000-000000000002';
const LOG = [
  {
    level: 30,
    time: '2030-01-01T00:00:00.000Z',
    session: A,
    face: 'ava',
    worker: 1,
    msg: 'session opened',
  },
  { level: 30, time: '2030-01-01T00:00:00.100Z', session: B, worker: 0, msg: 'session opened' },
  { level: 40, time: '2030-01-01T00:00:01.000Z', worker: 1, msg: 'frames late' },
  { level: 40, time: '2030-01-01T00:00:01.500Z', worker: 0, msg: 'another worker' },
  { level: 30, time: '2030-01-01T00:00:01.600Z', worker: 1, msg: 'nothing of note' },
  {
    level: 50,
    time: '2030-01-01T00:00:02.250Z',
    session: A,
    worker: 1,
    err: { message: 'it broke', stack: 'Error: it broke\n    at here (file.ts:1:1)' },
    msg: 'session failed',
  },
  {
    level: 30,
    time: '2030-01-01T00:00:02.300Z',
    sessionId: A,
    reason: 'error',
    seconds: 2.3,
    msg: 'session ended',
  },
  { level: 40, time: '2030-01-01T01:00:00.000Z', worker: 1, msg: 'an hour later' },
].map((line) => JSON.stringify(line));
const TEXT = ['> npm start', ...LOG, '{"level":30,"time":"2030-01-01T00:0'].join('\n');

test("a session's lines become a history, with the warnings of its worker", async () => {
  const history = await sessionHistory('3f2a9c11', [Readable.from([TEXT])]);
  assert.equal(
    history,
    [
      `session ${A}, from 2030-01-01T00:00:00.000Z`,
      '   +0.000 s  session opened  face=ava worker=1',
      '   +1.000 s  WARN (worker 1) frames late  worker=1',
      '   +2.250 s  ERROR session failed  worker=1 error="it broke"',
      '             at here (file.ts:1:1)',
      '   +2.300 s  session ended  reason=error seconds=2.3',
      '',
    ].join('\n'),
  );
});

test('an id that matches several sessions is an error; one that matches none gives undefined', async () => {
  await assert.rejects(sessionHistory('3f2a9c', [Readable.from([TEXT])]), /matches 2 sessions/);
  assert.equal(await sessionHistory('ffff', [Readable.from([TEXT])]), undefined);
});

test('from the command line, over stdin', () => {
  const run = (args: string[], input = ''): ReturnType<typeof spawnSync> =>
    spawnSync(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        path.resolve(import.meta.dirname, '../../scripts/logs-session.ts'),
        ...args,
      ],
      { input, encoding: 'utf8' },
    );
  assert.match(String(run([A], TEXT).stdout), /session ended/);
  assert.equal(run(['ffff'], TEXT).status, 1);
  assert.equal(run([]).status, 2);
});

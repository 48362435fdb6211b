// What `npm test` prints: every step runs, and what failed comes last.
import assert from 'node:assert/strict';
import path from 'node:path';
import process from 'node:process';
import { test } from 'vitest';

const STEPS = path.resolve(import.meta.dirname, '../../scripts/steps.mjs');
const { runSteps } = (await import(STEPS)) as {
  runSteps: (
    groups: { name: string; args: string[] }[][],
    context: { cwd: string; env: NodeJS.ProcessEnv; node: string; print: (text: string) => void },
  ) => Promise<number>;
};

const step = (name: string, script: string) => ({ name, args: ['-e', script] });

async function run(groups: ReturnType<typeof step>[][]): Promise<{ code: number; text: string }> {
  let text = '';
  const print = (part: string): void => {
    text += part;
  };
  const code = await runSteps(groups, {
    cwd: import.meta.dirname,
    env: process.env,
    node: process.execPath,
    print,
  });
  return { code, text };
}

test('every step runs after a failed one, and the last lines of the failed one end the output', async () => {
  const { code, text } = await run([
    [
      step('checks', 'for (let i = 0; i < 1000; i++) console.log(`line ${i}`); process.exit(3)'),
      step('format', 'console.log("well formatted")'),
    ],
    [step('tests', 'console.log("all passed")')],
  ]);
  assert.equal(code, 1);
  assert.match(text, /\[mouthpiece\] checks: FAILED in [\d.]+ s/);
  assert.match(text, /well formatted\n\[mouthpiece\] format: ok/);
  const end = text.slice(text.indexOf('[mouthpiece] tests: ok'));
  assert.match(
    end,
    /the last lines of the failed step 'checks':\nline 920\n(line \d+\n)+\[mouthpiece\] failed: checks\n$/,
  );
});

test('steps of one group do not mix their lines', async () => {
  const talk = (word: string): string =>
    `for (let i = 0; i < 3; i++) setTimeout(() => console.log("${word}"), 20 * i)`;
  const { code, text } = await run([[step('one', talk('one')), step('two', talk('two'))]]);
  assert.equal(code, 0);
  assert.match(text, /one\none\none\n\[mouthpiece\] one: ok/);
  assert.match(text, /two\ntwo\ntwo\n\[mouthpiece\] two: ok/);
  assert.doesNotMatch(text, /last lines/);
});

test('a step that a signal ends, or that cannot start, has failed', async () => {
  const { code, text } = await run([
    [step('killed', 'process.kill(process.pid, "SIGKILL")')],
    [step('fine', '')],
  ]);
  assert.equal(code, 1);
  assert.match(text, /killed: FAILED[^]*fine: ok[^]*failed: killed\n$/);
});

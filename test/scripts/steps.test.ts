// What `npm test` prints: every step runs, and what failed comes last.
import assert from 'node:assert/strict';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { test } from 'vitest';

const STEPS = path.resolve(import.meta.dirname, '../../scripts/steps.mjs');
const { runSteps } = (await import(STEPS)) as {
  runSteps: (
    lanes: Step[][],
    context: { cwd: string; env: NodeJS.ProcessEnv; node: string; print: (text: string) => void },
  ) => Promise<number>;
};

interface Step {
  name: string;
  args: string[];
  isBackground?: boolean;
  niceness?: number;
}

const step = (name: string, script: string): Step => ({ name, args: ['-e', script] });

async function run(lanes: Step[][]): Promise<{ code: number; text: string }> {
  let text = '';
  const print = (part: string): void => {
    text += part;
  };
  const code = await runSteps(lanes, {
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
  assert.match(text, /all passed\n\[mouthpiece\] tests: ok/);
  assert.match(
    text,
    /the last lines of the failed step 'checks':\nline 920\n(line \d+\n)+\[mouthpiece\] failed: checks\n$/,
  );
});

const talk = (word: string): string =>
  `for (let i = 0; i < 3; i++) setTimeout(() => console.log("${word}"), 20 * i)`;

test('steps side by side do not mix their lines', async () => {
  const { code, text } = await run([[step('one', talk('one'))], [step('two', talk('two'))]]);
  assert.equal(code, 0);
  assert.match(text, /one\none\none\n\[mouthpiece\] one: ok/);
  assert.match(text, /two\ntwo\ntwo\n\[mouthpiece\] two: ok/);
  assert.doesNotMatch(text, /last lines/);
});

test('a step may have a low priority, and its lines come at its end in the background', async () => {
  const priority = 'console.log(os.getPriority());';
  const { code, text } = await run([
    [step('tests', priority)],
    [{ ...step('checks', priority + talk('checked')), isBackground: true, niceness: 5 }],
    [{ ...step('waiting', priority + talk('waited')), isBackground: true }],
  ]);
  assert.equal(code, 0);
  // The steps in the background may end between the two.
  assert.match(text, new RegExp(`${os.getPriority()}\n[^]*\\[mouthpiece\\] tests: ok`));
  const low = Math.min(19, os.getPriority() + 5);
  assert.match(text, new RegExp(`${low}\\n(checked\\n){3}\\[mouthpiece\\] checks: ok`));
  const usual = os.getPriority();
  assert.match(text, new RegExp(`${usual}\\n(waited\\n){3}\\[mouthpiece\\] waiting: ok`));
});

test('a step that a signal ends, or that cannot start, has failed', async () => {
  const { code, text } = await run([
    [step('killed', 'process.kill(process.pid, "SIGKILL")')],
    [step('fine', '')],
  ]);
  assert.equal(code, 1);
  // Steps in a lane of their own end in any order.
  assert.match(text, /fine: ok/);
  assert.match(text, /killed: FAILED[^]*failed: killed\n$/);
});

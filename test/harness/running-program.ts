// Programs as a newcomer runs them: those of examples/ and of READMEs.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { patience } from './machine.ts';
import { ROOT } from './server.ts';
import { until } from './until.ts';

/** A running program, and what it printed. */
export class RunningProgram {
  output = '';
  readonly child: ChildProcess;

  constructor(command: string, args: string[], options: { cwd: string; env: NodeJS.ProcessEnv }) {
    this.child = spawn(command, args, options);
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.on('data', (text) => {
        this.output += String(text);
      });
    }
  }

  /** What the pattern finds in the output. */
  async says(pattern: RegExp): Promise<string> {
    const limitMs = 20_000 * patience();
    await until(() => pattern.test(this.output), limitMs, `${pattern} in: ${this.output}`);
    return pattern.exec(this.output)![1]!;
  }
}

/** The first block of code of a language in a README that has a text. */
export async function codeOf(readme: string, language: string, text: string): Promise<string> {
  const whole = await readFile(path.join(ROOT, readme), 'utf8');
  const blocks = [...whole.matchAll(/^```(\w+)\n([^]*?)^```$/gm)];
  return blocks.find(([, name, code]) => name === language && code!.includes(text))![2]!;
}

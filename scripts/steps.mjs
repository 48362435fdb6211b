// Runs the steps of `npm test` and `npm run lint`, and repeats at the end what the failed ones said.
import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { StringDecoder } from 'node:string_decoder';

/** How much of a failed step is repeated: logs that are cut keep their last lines. */
const TAIL_LINES = 80;

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {readonly string[]} args program and arguments for Node
 * @property {boolean} [isBackground] what it writes comes at its end
 * @property {number} [niceness] of the process, 0 to 19; 0 is normal
 *
 * @typedef {object} Context
 * @property {string} cwd
 * @property {NodeJS.ProcessEnv} env
 * @property {string} node the executable
 * @property {(text: string) => void} print
 */

/** How often the output of a running step is looked at. */
const POLL_MS = 100;

/**
 * A file for a step's output. Not a pipe: a program that ends itself by process.exit() loses what
 * is still on its way into a pipe.
 */
class OutputFile {
  /** All that was read so far. */
  text = '';
  #folder = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-step-'));
  #decoder = new StringDecoder('utf8');
  #buffer = Buffer.alloc(64 * 1024);
  fd = openSync(path.join(this.#folder, 'output'), 'a+');
  #position = 0;

  /** @returns what was written since the last call */
  read() {
    let added = '';
    for (let bytes = this.#next(); bytes > 0; bytes = this.#next()) {
      added += this.#decoder.write(this.#buffer.subarray(0, bytes));
      this.#position += bytes;
    }
    this.text += added;
    return added;
  }

  close() {
    closeSync(this.fd);
    rmSync(this.#folder, { recursive: true });
  }

  #next() {
    return readSync(this.fd, this.#buffer, 0, this.#buffer.length, this.#position);
  }
}

/**
 * Runs one step. Its output goes to the terminal as it comes, or at its end when steps beside it
 * write there too.
 * @param {Step} step
 * @param {Context & { streams: boolean, isOnly: boolean }} context
 * @returns {Promise<{ isFine: boolean, tail: string }>}
 */
async function runStep({ name, args, niceness = 0 }, { cwd, env, node, streams, isOnly, print }) {
  const startMs = Date.now();
  const output = new OutputFile();
  const nice = niceness > 0 ? ['nice', '-n', String(niceness)] : [];
  const [program, ...rest] = [...nice, node, ...args];
  const child = spawn(program, rest, {
    cwd,
    // A file is not a terminal: without this the colours would be lost.
    env: process.stdout.isTTY ? { FORCE_COLOR: '1', ...env } : env,
    stdio: ['inherit', isOnly ? 'inherit' : output.fd, isOnly ? 'inherit' : output.fd],
  });
  const poll = setInterval(() => {
    const text = output.read();
    if (streams && text !== '') {
      print(text);
    }
  }, POLL_MS);
  const status = await new Promise((resolve) => {
    child.once('error', (error) => {
      output.text += `${error.message}\n`;
      resolve(1);
    });
    child.once('close', (code, signal) => {
      resolve(code ?? 128 + os.constants.signals[signal]);
    });
  });
  clearInterval(poll);
  const last = output.read();
  print(streams ? last : output.text);
  output.close();
  const seconds = ((Date.now() - startMs) / 1000).toFixed(1);
  print(`[mouthpiece] ${name}: ${status === 0 ? 'ok' : 'FAILED'} in ${seconds} s\n`);
  return {
    isFine: status === 0,
    tail: output.text.trimEnd().split('\n').slice(-TAIL_LINES).join('\n'),
  };
}

/**
 * Runs all steps, also after a failed one: the lanes side by side, the steps of a lane one after the
 * other. What failed is repeated at the end, each with its last lines.
 * @param {readonly (readonly Step[])[]} lanes
 * @param {Omit<Context, 'print'> & Partial<Pick<Context, 'print'>>} context `print` writes to the
 *   terminal unless told
 * @returns {Promise<number>} the exit code
 */
export async function runSteps(lanes, { print = (text) => process.stdout.write(text), ...rest }) {
  const isOnly = lanes.flat().length === 1;
  const foreground = lanes.filter((steps) => steps.some(({ isBackground }) => !isBackground));
  /** @type {{ name: string, tail: string }[]} */
  const failed = [];
  const runLane = async (steps) => {
    for (const step of steps) {
      const streams = foreground.length === 1 && !step.isBackground;
      const { isFine, tail } = await runStep(step, { ...rest, print, streams, isOnly });
      if (!isFine) {
        failed.push({ name: step.name, tail });
      }
    }
  };
  await Promise.all(lanes.map(runLane));
  if (!isOnly) {
    for (const { name, tail } of failed) {
      print(`\n[mouthpiece] the last lines of the failed step '${name}':\n${tail}\n`);
    }
  }
  if (failed.length > 0) {
    print(`[mouthpiece] failed: ${failed.map(({ name }) => name).join(', ')}\n`);
  }
  return failed.length === 0 ? 0 : 1;
}

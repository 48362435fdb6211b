// Programs of the bench in child processes: commands with numbers, each with one answer, over
// Node's IPC. The parent's side and the child's.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';

interface Request<Command> {
  readonly id: number;
  readonly command: Command;
}
type Response =
  | { readonly id: number; readonly ok: true; readonly answer: unknown }
  | { readonly id: number; readonly ok: false; readonly error: string };

/** A child process that has not ended so long after its channel was closed is killed. */
const END_MS = 3000;

/** The parent's side. `Command`: what the program understands, plain data. */
export class ProgramProcess<Command> {
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #waiting = new Map<
    number,
    { resolve: (answer: unknown) => void; reject: (error: Error) => void }
  >();
  #nextId = 0;

  /**
   * Starts `program`, a TypeScript file that calls `answerCommands`.
   * @param name for error messages: "a peer process"
   * @param prefix put before the command, for instance `taskset -c 3`
   */
  constructor(name: string, program: string, prefix: readonly string[] = []) {
    this.#name = name;
    const [command, ...args] = [
      ...prefix,
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      program,
    ];
    this.#child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#child.on('message', (response: Response) => {
      const waiter = this.#waiting.get(response.id);
      this.#waiting.delete(response.id);
      if (response.ok) {
        waiter?.resolve(response.answer);
      } else {
        waiter?.reject(new Error(response.error));
      }
    });
    this.#child.once('exit', (code) => {
      for (const { reject } of this.#waiting.values()) {
        reject(new Error(`${name} ended with ${code}`));
      }
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /**
   * @param limitMs how long the answer may take; without it there is no limit
   * @throws Error with the program's message, or when the process ended or took too long
   */
  ask(command: Command, limitMs?: number): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = this.#nextId++;
    this.#waiting.set(id, { resolve, reject });
    this.#child.send({ id, command } satisfies Request<Command>, (error) => {
      if (error !== null) {
        reject(error);
      }
    });
    if (limitMs === undefined) {
      return promise;
    }
    const timer = setTimeout(() => {
      reject(new Error(`${this.#name} did not answer within ${limitMs} ms`));
    }, limitMs);
    return promise.finally(() => {
      clearTimeout(timer);
    });
  }

  /** Closes the channel, upon which the program ends; kills it if it does not. */
  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
      return;
    }
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), END_MS);
    await exited;
    clearTimeout(timer);
  }
}

/**
 * The child's side: answers each command with what `obey` returns, or with its error. The process
 * ends with its channel. A rejection that nobody handles is logged and ends nothing: one broken
 * connection must not end the others.
 * @param name for the log: "peer process"
 */
export function answerCommands<Command>(
  name: string,
  obey: (command: Command) => Promise<unknown>,
): void {
  process.on('message', ({ id, command }: Request<Command>) => {
    const answer = (response: Response): void => {
      if (process.connected) {
        process.send!(response);
      }
    };
    obey(command).then(
      (result) => {
        answer({ id, ok: true, answer: result });
      },
      (error: unknown) => {
        answer({ id, ok: false, error: error instanceof Error ? error.message : String(error) });
      },
    );
  });
  process.on('disconnect', () => process.exit(0));
  process.on('unhandledRejection', (reason) => {
    console.error(`${name}: ${String(reason)}`);
  });
}

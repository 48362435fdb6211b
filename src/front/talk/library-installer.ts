// Installs the library of conversations at the first one: most servers never need its 290 MB.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { ServiceError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, sleep } from '../../base/time.ts';

/** A request waits this long for the installation. */
const WAIT_MS = 10_000;
/** After a failure the next attempt waits this long. */
const RETRY_MS = 60_000;
const MARKER = 'scripts/talk/node_modules/.package-lock.json';

/** The installer of this server. */
export class TalkLibraryInstaller {
  readonly #root: string;
  readonly #log: Logger;
  #running: Promise<void> | undefined = undefined;
  #failedMs = -Infinity;

  /** @param root folder of the server's files */
  constructor(root: string, log: Logger) {
    this.#root = root;
    this.#log = log;
  }

  /**
   * Returns at once when the library is installed.
   * @throws ServiceError CONVERSATIONS_INSTALLING, CONVERSATIONS_UNAVAILABLE
   */
  async install(): Promise<void> {
    if (this.#running === undefined && existsSync(path.join(this.#root, MARKER))) {
      return;
    }
    if (this.#running === undefined && monotonicMs() - this.#failedMs < RETRY_MS) {
      throw new ServiceError('CONVERSATIONS_UNAVAILABLE');
    }
    this.#running ??= this.#run();
    let isDone = false;
    await Promise.race([
      this.#running.finally(() => {
        isDone = true;
      }),
      sleep(WAIT_MS),
    ]);
    if (!isDone) {
      throw new ServiceError('CONVERSATIONS_INSTALLING', undefined, 20);
    }
  }

  async #run(): Promise<void> {
    this.#log.info('installing the libraries of conversations: npm, 290 MB');
    const child = spawn(process.execPath, [path.join(this.#root, 'scripts/install-talk.mjs')], {
      cwd: this.#root,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString('utf8')).slice(-2000);
    });
    const code = await new Promise<number | null>((resolve) => {
      child.once('error', () => {
        resolve(-1);
      });
      child.once('close', resolve);
    });
    this.#running = undefined;
    if (code !== 0) {
      this.#failedMs = monotonicMs();
      this.#log.error(
        { errors: errors.trim() },
        'the libraries of conversations could not be installed',
      );
      throw new ServiceError('CONVERSATIONS_UNAVAILABLE');
    }
    this.#log.info('the libraries of conversations are installed');
  }
}

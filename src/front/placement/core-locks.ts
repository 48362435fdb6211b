// Lock files with which servers in different containers of one host claim cores.
import { closeSync, constants, existsSync, fchmodSync, mkdirSync, openSync } from 'node:fs';
import path from 'node:path';
import { native } from '../../native/addon.ts';

/** Servers may run as different users; only the lock counts, never what is in the file. */
const FILE_MODE = 0o666;

/** The locks of one server in a directory that several share. */
export class CoreLocks {
  readonly #directory: string;
  /** Descriptors that hold a lock. */
  readonly #held: number[] = [];

  /** @throws Error that says what to set when the directory is missing and cannot be made */
  constructor(directory: string) {
    this.#directory = directory;
    if (!existsSync(directory)) {
      this.#explained(() => {
        mkdirSync(directory);
      });
    }
  }

  /** Claims a core until `release` or the end of the process. @returns false: another has it */
  claim(cpu: number): boolean {
    const descriptor = this.#open(cpu);
    if (this.#explained(() => native.lockFile(descriptor))) {
      this.#held.push(descriptor);
      return true;
    }
    closeSync(descriptor);
    return false;
  }

  /** Whether another server has claimed a core. */
  isClaimed(cpu: number): boolean {
    const descriptor = this.#open(cpu);
    try {
      return this.#explained(() => native.isFileLocked(descriptor));
    } finally {
      closeSync(descriptor);
    }
  }

  release(): void {
    for (const descriptor of this.#held.splice(0)) {
      closeSync(descriptor);
    }
  }

  #open(cpu: number): number {
    return this.#explained(() => {
      const file = path.join(this.#directory, `core-${cpu}.lock`);
      try {
        return openSync(file, constants.O_RDWR);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
          throw error;
        }
      }
      // Only here: in a sticky directory Linux refuses O_CREAT on a file of another user
      // (fs.protected_regular, proc_sys_fs(5)).
      const descriptor = openSync(file, constants.O_RDWR | constants.O_CREAT, FILE_MODE);
      try {
        fchmodSync(descriptor, FILE_MODE); // past the umask
      } catch {
        // Another server was faster, and is its owner.
      }
      return descriptor;
    });
  }

  #explained<T>(act: () => T): T {
    try {
      return act();
    } catch (error) {
      throw new Error(
        `CORE_LOCK_DIR=${this.#directory} cannot be used (${(error as Error).message}). ` +
          'Name a directory that every server on this host may write to, or leave it unset.',
        { cause: error },
      );
    }
  }
}

// Blobs: data that is too large for Redis, by key. Here in a folder; s3-blobs.ts has those in S3.
// Callers do not know which.
import type { Stats } from 'node:fs';
import {
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  type FileHandle,
} from 'node:fs/promises';
import path from 'node:path';
import { newUuid } from '../../base/ids.ts';

/** What is known of a blob without reading it. */
export interface BlobStat {
  readonly sizeBytes: number;
  /** A strong entity tag (RFC 9110 section 8.8.3), with its quotes. */
  readonly etag: string;
  /** Time of the last change, in Unix milliseconds. */
  readonly modifiedMs: number;
}

/** An open blob. Close it after use. */
export interface BlobReader extends BlobStat {
  /**
   * Signs a URL from which anybody may fetch the blob for an hour. Undefined: clients get it from
   * this server.
   */
  readonly link?: (() => Promise<string>) | undefined;
  /**
   * Reads into `into` from byte `position`. Returns the number of bytes read; 0 only at the end.
   */
  read(into: Uint8Array, position: number): Promise<number>;
  close(): Promise<void>;
}

/** Stores blobs by key. A key is a path of letters, digits, `_`, `-` and `.`. */
export interface BlobStore {
  /** Stores a blob atomically: after a crash it exists completely or not at all. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** A path where a tool can write a file that `adopt` then moves into the store. */
  draft(key: string): Promise<string>;
  /** Moves a finished file into the store. */
  adopt(key: string, file: string): Promise<void>;
  /** The whole blob; undefined when there is none. */
  get(key: string): Promise<Buffer | undefined>;
  open(key: string): Promise<BlobReader | undefined>;
  /** Undefined when there is no such blob. */
  stat(key: string): Promise<BlobStat | undefined>;
  /** Deletes a blob, or all blobs below `key/`. */
  delete(key: string): Promise<void>;
  /** Names of the entries directly below `prefix/`. */
  list(prefix: string): Promise<string[]>;
}

const KEY = /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/;

/** @throws RangeError when it is no key of a blob */
export function checkKey(key: string): string {
  if (key.length > 300 || !KEY.test(key)) {
    throw new RangeError(`not a blob key: ${key.slice(0, 50)}`);
  }
  return key;
}

/** Stores blobs as files below a directory. */
export class FileBlobs implements BlobStore {
  readonly #root: string;
  readonly #process = newUuid().slice(0, 8);

  constructor(root: string) {
    this.#root = path.resolve(root);
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    const target = this.#path(key);
    await mkdir(path.dirname(target), { recursive: true });
    const temporary = `${target}.${newUuid().slice(0, 8)}.part`;
    const handle = await open(temporary, 'wx', 0o600);
    try {
      try {
        await handle.writeFile(bytes);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(temporary, target);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  /**
   * On the same file system, so that adopting it is a rename. Each process has a name of its own:
   * one that was taken for dead may still write.
   */
  async draft(key: string): Promise<string> {
    const file = `${this.#path(key)}.${this.#process}.part`;
    await mkdir(path.dirname(file), { recursive: true });
    return file;
  }

  async adopt(key: string, file: string): Promise<void> {
    const handle = await open(file, 'r+');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    const target = this.#path(key);
    await mkdir(path.dirname(target), { recursive: true });
    await rename(file, target);
  }

  async get(key: string): Promise<Buffer | undefined> {
    return await readFile(this.#path(key)).catch(absent);
  }

  async open(key: string): Promise<BlobReader | undefined> {
    const handle = await open(this.#path(key), 'r').catch(absent);
    if (!handle) {
      return undefined;
    }
    return await readerOf(handle);
  }

  async stat(key: string): Promise<BlobStat | undefined> {
    const status = await stat(this.#path(key)).catch(absent);
    return status?.isFile() === true ? statOf(status) : undefined;
  }

  async delete(key: string): Promise<void> {
    await rm(this.#path(key), { recursive: true, force: true });
  }

  async list(prefix: string): Promise<string[]> {
    const names = (await readdir(this.#path(prefix)).catch(absent)) ?? [];
    return names.filter((name) => !name.endsWith('.part'));
  }

  #path(key: string): string {
    return path.join(this.#root, checkKey(key));
  }
}

async function readerOf(handle: FileHandle): Promise<BlobReader | undefined> {
  const status = await handle.stat().catch(async (error: unknown) => {
    await handle.close();
    throw error;
  });
  if (!status.isFile()) {
    await handle.close();
    return undefined;
  }
  return {
    ...statOf(status),
    read: async (into, position) => (await handle.read(into, 0, into.length, position)).bytesRead,
    close: () => handle.close(),
  };
}

const statOf = ({ size, mtimeMs, ino }: Stats): BlobStat => ({
  sizeBytes: size,
  etag: `"${size.toString(36)}-${Math.round(mtimeMs).toString(36)}-${ino.toString(36)}"`,
  modifiedMs: mtimeMs,
});

/** Opens any file for reading, for example one that is installed with the server. */
export async function openFile(file: string): Promise<BlobReader | undefined> {
  const handle = await open(file, 'r').catch(absent);
  return handle && (await readerOf(handle));
}

/** Whether a file or directory exists and can be reached. */
export const fileExists = async (file: string): Promise<boolean> =>
  await stat(file).then(
    () => true,
    () => false,
  );

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error.code === 'EISDIR') {
    return undefined;
  }
  throw error;
}

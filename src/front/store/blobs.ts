// Bytes that are too large for Redis, behind an interface that an object store can implement: put whole or in pieces, read anywhere.
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

/** An open blob. Close it. */
export interface BlobReader {
  readonly sizeBytes: number;
  /** A strong validator, quotes included. */
  readonly etag: string;
  readonly modifiedMs: number;
  /** Fills `into` from byte `position`; returns how many bytes it got, 0 only at the end. */
  read(into: Uint8Array, position: number): Promise<number>;
  close(): Promise<void>;
}

/** A blob in the making: nobody sees it before `commit`. */
export interface BlobWriter {
  write(bytes: Uint8Array): Promise<void>;
  commit(): Promise<void>;
  abort(): Promise<void>;
}

export interface BlobStore {
  /** Stores a blob whole: after a crash it is there entirely or not at all. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  writer(key: string): Promise<BlobWriter>;
  /** Stores a finished file as a blob; the file is gone afterwards. */
  adopt(key: string, file: string): Promise<void>;
  /** All of a blob; undefined when there is none. */
  get(key: string): Promise<Buffer | undefined>;
  open(key: string): Promise<BlobReader | undefined>;
  /** Whether there is such a blob, without opening it. */
  has(key: string): Promise<boolean>;
  /** A blob, or all blobs below `key/`. */
  delete(key: string): Promise<void>;
  /** Names directly below `prefix/`. */
  list(prefix: string): Promise<string[]>;
}

const KEY = /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/;

/** Blobs as files below a directory. */
export class FileBlobs implements BlobStore {
  readonly #root: string;

  constructor(root: string) {
    this.#root = path.resolve(root);
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    const writer = await this.writer(key);
    try {
      await writer.write(bytes);
    } catch (error) {
      await writer.abort();
      throw error;
    }
    await writer.commit();
  }

  async writer(key: string): Promise<BlobWriter> {
    const target = this.#path(key);
    await mkdir(path.dirname(target), { recursive: true });
    const temporary = `${target}.${newUuid().slice(0, 8)}.part`;
    const handle = await open(temporary, 'wx', 0o600);
    return {
      async write(bytes) {
        await handle.writeFile(bytes);
      },
      async commit() {
        await handle.sync();
        await handle.close();
        await rename(temporary, target);
      },
      async abort() {
        await handle.close();
        await rm(temporary, { force: true });
      },
    };
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

  async has(key: string): Promise<boolean> {
    return (await stat(this.#path(key)).catch(absent))?.isFile() === true;
  }

  async delete(key: string): Promise<void> {
    await rm(this.#path(key), { recursive: true, force: true });
  }

  async list(prefix: string): Promise<string[]> {
    const names = (await readdir(this.#path(prefix)).catch(absent)) ?? [];
    return names.filter((name) => !name.endsWith('.part'));
  }

  /** Where a key's bytes lie, for tools that write files themselves. The directory may not exist yet. */
  pathOf(key: string): string {
    return this.#path(key);
  }

  #path(key: string): string {
    if (key.length > 300 || !KEY.test(key)) {
      throw new RangeError(`not a blob key: ${key.slice(0, 50)}`);
    }
    return path.join(this.#root, key);
  }
}

async function readerOf(handle: FileHandle): Promise<BlobReader | undefined> {
  const status = await handle.stat();
  if (!status.isFile()) {
    await handle.close();
    return undefined;
  }
  return {
    sizeBytes: status.size,
    etag: `"${status.size.toString(36)}-${Math.round(status.mtimeMs).toString(36)}-${status.ino.toString(36)}"`,
    modifiedMs: status.mtimeMs,
    read: async (into, position) => (await handle.read(into, 0, into.length, position)).bytesRead,
    close: () => handle.close(),
  };
}

/** Opens any file for reading, such as one that is shipped with the program. */
export async function openFile(file: string): Promise<BlobReader | undefined> {
  const handle = await open(file, 'r').catch(absent);
  return handle && (await readerOf(handle));
}

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

// Blobs: data that is too large for Redis. The interface can be implemented by an object store.
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

/** An open blob. Close it after use. */
export interface BlobReader {
  readonly sizeBytes: number;
  /** A strong entity tag (RFC 9110 section 8.8.3), with its quotes. */
  readonly etag: string;
  /** Time of the last change, in Unix milliseconds. */
  readonly modifiedMs: number;
  /**
   * Reads into `into` from byte `position`. Returns the number of bytes read; 0 only at the end.
   */
  read(into: Uint8Array, position: number): Promise<number>;
  close(): Promise<void>;
}

/** Writes a blob, which is not visible before `commit`. */
export interface BlobWriter {
  write(bytes: Uint8Array): Promise<void>;
  commit(): Promise<void>;
  abort(): Promise<void>;
}

/** Stores blobs by key. A key is a path of letters, digits, `_`, `-` and `.`. */
export interface BlobStore {
  /** Stores a blob atomically: after a crash it exists completely or not at all. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  writer(key: string): Promise<BlobWriter>;
  /** Moves a finished file into the store. */
  adopt(key: string, file: string): Promise<void>;
  /** The whole blob; undefined when there is none. */
  get(key: string): Promise<Buffer | undefined>;
  open(key: string): Promise<BlobReader | undefined>;
  /** Whether the blob exists. */
  has(key: string): Promise<boolean>;
  /** Deletes a blob, or all blobs below `key/`. */
  delete(key: string): Promise<void>;
  /** Names of the entries directly below `prefix/`. */
  list(prefix: string): Promise<string[]>;
}

const KEY = /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/;

/** Stores blobs as files below a directory. */
export class FileBlobs implements BlobStore {
  readonly #root: string;

  constructor(root: string) {
    this.#root = path.resolve(root);
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    const writer = await this.writer(key);
    try {
      await writer.write(bytes);
      await writer.commit();
    } catch (error) {
      await writer.abort();
      throw error;
    }
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

  /** The file of a key, for tools that write files themselves. Its directory may not exist yet. */
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
  const status = await handle.stat().catch(async (error: unknown) => {
    await handle.close();
    throw error;
  });
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

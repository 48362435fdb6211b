// Copies of remote blobs on the local disk, within a number of bytes, the least recently used
// dropped first. What was used lately can be had while the remote store is away.
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { newUuid } from '../../base/ids.ts';
import { monotonicMs, sleep } from '../../base/time.ts';
import { openFile, type BlobReader, type BlobStat, type BlobStore } from './blobs.ts';

/**
 * How a request for a blob was answered. stale: the remote store did not answer; bypass: not kept.
 */
export type CacheOutcome = 'hit' | 'miss' | 'stale' | 'bypass';

/** Options of CachedBlobs. */
export interface CacheOptions {
  /** Folder of the copies. It is emptied at the start: meanwhile blobs may have been deleted. */
  readonly directory: string;
  readonly maxBytes: number;
  /** Whether a blob with this key never changes, and may be kept. */
  readonly isKept: (key: string) => boolean;
  /** Called after each request for a blob. */
  readonly observe: (outcome: CacheOutcome) => void;
}

/** Larger blobs are not kept: they are passed on as they come. */
const MAX_BLOB_BYTES = 16 << 20;
/** A copy is used for so long without asking whether the blob still exists. */
const FRESH_MS = 30_000;
/** An older copy is used if the remote store has not answered by then. */
const STALE_AFTER_MS = 1000;
const CHUNK_BYTES = 256 * 1024;

interface Copy extends BlobStat {
  readonly file: string;
  checkedMs: number;
}

/** A remote store with copies of its blobs. */
export class CachedBlobs implements BlobStore {
  readonly #remote: BlobStore;
  readonly #options: CacheOptions;
  /** By key, in order of their last use, the oldest first. */
  readonly #copies = new Map<string, Copy>();
  readonly #loads = new Map<string, Promise<Copy | undefined>>();
  #bytes = 0;

  private constructor(remote: BlobStore, options: CacheOptions) {
    this.#remote = remote;
    this.#options = options;
  }

  /** Opens the cache, which is empty then. */
  static async open(remote: BlobStore, options: CacheOptions): Promise<CachedBlobs> {
    await rm(options.directory, { recursive: true, force: true });
    await mkdir(options.directory, { recursive: true, mode: 0o700 });
    return new CachedBlobs(remote, options);
  }

  /** Bytes of all copies. */
  get bytes(): number {
    return this.#bytes;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    await this.#remote.put(key, bytes);
    await this.evict(key);
  }
  draft(key: string): Promise<string> {
    return this.#remote.draft(key);
  }
  async adopt(key: string, file: string): Promise<void> {
    await this.#remote.adopt(key, file);
    await this.evict(key);
  }
  get(key: string): Promise<Buffer | undefined> {
    return this.#remote.get(key);
  }
  stat(key: string): Promise<BlobStat | undefined> {
    return this.#remote.stat(key);
  }
  async delete(key: string): Promise<void> {
    await this.evict(key);
    await this.#remote.delete(key);
    await this.evict(key); // a copy that was made meanwhile
  }
  list(prefix: string): Promise<string[]> {
    return this.#remote.list(prefix);
  }

  async open(key: string): Promise<BlobReader | undefined> {
    if (!this.#options.isKept(key)) {
      this.#options.observe('bypass');
      return await this.#remote.open(key);
    }
    const copy = await this.#usable(key);
    const file = copy && (await openFile(copy.file));
    if (copy !== undefined && file !== undefined) {
      this.#copies.delete(key);
      this.#copies.set(key, copy);
      return readerOf(copy, file);
    }
    return await this.#fetch(key);
  }

  /** Drops the copy of a blob, or of all blobs below `key/`. */
  async evict(key: string): Promise<void> {
    const doomed = [...this.#copies.keys()].filter(
      (name) => name === key || name.startsWith(`${key}/`),
    );
    for (const name of this.#loads.keys()) {
      if (name === key || name.startsWith(`${key}/`)) {
        this.#loads.delete(name); // its copy is not kept
      }
    }
    await Promise.all(doomed.map((name) => this.#drop(name)));
  }

  /** A copy that is known to be of the blob as it is, or that must do. */
  async #usable(key: string): Promise<Copy | undefined> {
    const copy = this.#copies.get(key);
    if (copy === undefined) {
      return undefined;
    }
    if (monotonicMs() - copy.checkedMs < FRESH_MS) {
      this.#options.observe('hit');
      return copy;
    }
    const known = this.#remote.stat(key).then(
      (found) => found?.etag ?? 'none',
      () => undefined,
    );
    const etag = await Promise.race([known, sleep(STALE_AFTER_MS)]);
    if (etag === undefined) {
      this.#options.observe('stale');
      return copy;
    }
    if (etag !== copy.etag) {
      await this.#drop(key);
      return undefined;
    }
    copy.checkedMs = monotonicMs();
    this.#options.observe('hit');
    return copy;
  }

  /** From the remote store, by way of a copy where that can be made. */
  async #fetch(key: string): Promise<BlobReader | undefined> {
    let load = this.#loads.get(key);
    if (load === undefined) {
      load = this.#copy(key).finally(() => this.#loads.delete(key));
      this.#loads.set(key, load);
    }
    const copy = await load;
    const file = copy && (await openFile(copy.file));
    this.#options.observe(file === undefined ? 'bypass' : 'miss');
    if (copy === undefined || file === undefined) {
      return await this.#remote.open(key);
    }
    return readerOf(copy, file);
  }

  /** @returns undefined when the blob does not exist, is too large, or the disk fails */
  async #copy(key: string): Promise<Copy | undefined> {
    const reader = await this.#remote.open(key);
    if (reader === undefined) {
      return undefined;
    }
    const { sizeBytes, etag, modifiedMs } = reader;
    const { directory, maxBytes } = this.#options;
    const name = `${createHash('sha256').update(key).digest('hex')}-${newUuid().slice(0, 8)}`;
    const file = path.join(directory, name);
    const part = `${file}.part`;
    let remoteError: unknown;
    try {
      if (sizeBytes > Math.min(MAX_BLOB_BYTES, maxBytes)) {
        return undefined;
      }
      const chunks = chunksOf(reader, (error) => {
        remoteError = error;
      });
      await pipeline(Readable.from(chunks), createWriteStream(part, { mode: 0o600 }));
      await rename(part, file);
    } catch {
      await rm(part, { force: true }).catch(() => {});
      if (remoteError !== undefined) {
        throw remoteError;
      }
      return undefined;
    } finally {
      await reader.close();
    }
    if (!this.#loads.has(key)) {
      await rm(file, { force: true });
      return undefined;
    }
    const copy = { sizeBytes, etag, modifiedMs, file, checkedMs: monotonicMs() };
    await this.#drop(key);
    this.#copies.set(key, copy);
    this.#bytes += sizeBytes;
    await this.#makeRoom(key);
    return copy;
  }

  async #makeRoom(keep: string): Promise<void> {
    for (const key of this.#copies.keys()) {
      if (this.#bytes <= this.#options.maxBytes) {
        return;
      }
      if (key !== keep) {
        await this.#drop(key);
      }
    }
  }

  /** Readers of the file keep it. */
  async #drop(key: string): Promise<void> {
    const copy = this.#copies.get(key);
    if (copy !== undefined) {
      this.#copies.delete(key);
      this.#bytes -= copy.sizeBytes;
      await rm(copy.file, { force: true });
    }
  }
}

/** Reads the file of a copy, under the tag and the time of its blob. */
const readerOf = ({ etag, modifiedMs }: Copy, file: BlobReader): BlobReader => ({
  sizeBytes: file.sizeBytes,
  etag,
  modifiedMs,
  read: (into, position) => file.read(into, position),
  close: () => file.close(),
});

/** The whole blob. @param onError called with an error of the reader, before it is thrown */
async function* chunksOf(
  reader: BlobReader,
  onError: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < reader.sizeBytes;) {
    const into = new Uint8Array(CHUNK_BYTES);
    let got: number;
    try {
      got = await reader.read(into, at);
      if (got === 0) {
        throw new Error('a blob is shorter than it was said to be');
      }
    } catch (error) {
      onError(error);
      throw error;
    }
    at += got;
    yield into.subarray(0, got);
  }
}

// Watches a blob store: times its operations, counts their errors, turns them into
// STORAGE_UNAVAILABLE (with the cause, while it was thought to work), and finds out whether it works.
// While it does not, operations are refused at once, so that no request waits for a storage that is
// away.
import { ServiceError } from '../../base/errors.ts';
import { after, every } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import type { StorageOperation } from '../../base/storage-operations.ts';
import { monotonicMs, sleep } from '../../base/time.ts';
import type { BlobReader, BlobStat, BlobStore } from './blobs.ts';

/** Options of WatchedBlobs. */
export interface WatchOptions {
  /** Called after each operation. */
  readonly observe: (operation: StorageOperation, seconds: number, isGood: boolean) => void;
  readonly log: Logger;
}

/** Written and read by every server. */
const PROBE_KEY = 'health/probe';
const PROBE_LIMIT_MS = 5000;
/** How often a storage that fails is tried. */
const RETRY_MS = 1000;
/** A storage that was not used for so long is tried. */
const IDLE_MS = 30_000;
/** An operation that takes so long makes the storage be tried. */
const SLOW_MS = 2000;
const LOG_INTERVAL_MS = 10_000;
const RETRY_AFTER_SECONDS = 5;

/** A blob store whose failures are known. */
export class WatchedBlobs implements BlobStore {
  readonly #inner: BlobStore;
  readonly #options: WatchOptions;
  readonly #timer: NodeJS.Timeout;
  #isUp = true;
  #goodMs = monotonicMs();
  #loggedMs = Number.NEGATIVE_INFINITY;
  #probe: Promise<void> | undefined;

  constructor(inner: BlobStore, options: WatchOptions) {
    this.#inner = inner;
    this.#options = options;
    this.#timer = every(RETRY_MS, 'the trial of the storage', () => {
      if (!this.#isUp || monotonicMs() - this.#goodMs > IDLE_MS) {
        void this.check();
      }
    });
    this.#timer.unref();
  }

  /** Whether the last trial succeeded. */
  get isUp(): boolean {
    return this.#isUp;
  }

  put(key: string, bytes: Uint8Array): Promise<void> {
    return this.#run('put', () => this.#inner.put(key, bytes));
  }
  draft(key: string): Promise<string> {
    return this.#inner.draft(key);
  }
  adopt(key: string, file: string): Promise<void> {
    return this.#run('put', () => this.#inner.adopt(key, file));
  }
  get(key: string): Promise<Buffer | undefined> {
    return this.#run('get', () => this.#inner.get(key));
  }
  stat(key: string): Promise<BlobStat | undefined> {
    return this.#run('stat', () => this.#inner.stat(key));
  }
  delete(key: string): Promise<void> {
    return this.#run('delete', () => this.#inner.delete(key));
  }
  list(prefix: string): Promise<string[]> {
    return this.#run('list', () => this.#inner.list(prefix));
  }

  async open(key: string): Promise<BlobReader | undefined> {
    const reader = await this.#run('open', () => this.#inner.open(key));
    return (
      reader && {
        sizeBytes: reader.sizeBytes,
        etag: reader.etag,
        modifiedMs: reader.modifiedMs,
        link: reader.link,
        read: (into, position) => this.#run('read', () => reader.read(into, position)),
        close: () => reader.close(),
      }
    );
  }

  /** Tries the storage now. Resolves when it is known whether it works. */
  check(): Promise<void> {
    this.#probe ??= this.#try().finally(() => {
      this.#probe = undefined;
    });
    return this.#probe;
  }

  /**
   * Tries the storage when the server starts. One that is away may come back; one that refuses is
   * a matter of the settings.
   * @throws the error of a storage that refuses
   */
  async checkAtStart(): Promise<void> {
    try {
      await this.#writeAndRead();
    } catch (error) {
      if (isRefusal(error)) {
        throw error;
      }
      this.#fails('probe', error);
      this.#isUp = false;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #run<T>(operation: StorageOperation, work: () => Promise<T>): Promise<T> {
    if (!this.#isUp) {
      throw unavailable();
    }
    const startMs = monotonicMs();
    const slow = after(SLOW_MS, 'an operation of the storage', () => this.check());
    try {
      const result = await work();
      this.#goodMs = monotonicMs();
      this.#options.observe(operation, (this.#goodMs - startMs) / 1000, true);
      return result;
    } catch (error) {
      if (error instanceof RangeError) {
        throw error; // not a key: a defect of the caller
      }
      this.#options.observe(operation, (monotonicMs() - startMs) / 1000, false);
      this.#fails(operation, error);
      void this.check();
      throw Object.assign(unavailable(), { cause: error });
    } finally {
      clearTimeout(slow);
    }
  }

  async #try(): Promise<void> {
    const startMs = monotonicMs();
    const wasUp = this.#isUp;
    try {
      await Promise.race([this.#writeAndRead(), sleep(PROBE_LIMIT_MS).then(tooSlow)]);
      this.#isUp = true;
      this.#goodMs = monotonicMs();
      if (!wasUp) {
        this.#options.log.info('the storage works again');
      }
    } catch (error) {
      this.#isUp = false;
      this.#fails('probe', error);
    }
    this.#options.observe('probe', (monotonicMs() - startMs) / 1000, this.#isUp);
  }

  async #writeAndRead(): Promise<void> {
    await this.#inner.put(PROBE_KEY, Buffer.from('ok'));
    if ((await this.#inner.stat(PROBE_KEY)) === undefined) {
      throw new Error('what was written cannot be read');
    }
  }

  #fails(operation: StorageOperation, error: unknown): void {
    const nowMs = monotonicMs();
    if (nowMs - this.#loggedMs > LOG_INTERVAL_MS) {
      this.#loggedMs = nowMs;
      const { name, message } = error as Error;
      this.#options.log.error({ operation, reason: `${name}: ${message}` }, 'the storage fails');
    }
  }
}

/** Takes STORAGE_UNAVAILABLE as `answer`; other errors are thrown on. */
export const whileAway =
  <T>(answer: T) =>
  (error: unknown): T => {
    if (error instanceof ServiceError && error.code === 'STORAGE_UNAVAILABLE') {
      return answer;
    }
    throw error;
  };

const unavailable = (): ServiceError =>
  new ServiceError('STORAGE_UNAVAILABLE', undefined, RETRY_AFTER_SECONDS);

function tooSlow(): never {
  throw new Error(`no answer within ${PROBE_LIMIT_MS / 1000} s`);
}

/** Whether S3 answered that these settings or credentials will not do. */
function isRefusal(error: unknown): boolean {
  const { name, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode ?? 0;
  return name === 'CredentialsProviderError' || (status >= 300 && status < 500 && status !== 429);
}

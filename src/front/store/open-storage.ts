// Opens the storage of faces and videos: a folder, or a bucket of S3 with copies on the local disk.
import { type BlobStore, FileBlobs } from './blobs.ts';
import { CachedBlobs, type CacheOptions } from './cached-blobs.ts';
import { S3Blobs, type S3Options } from './s3-blobs.ts';
import { WatchedBlobs, type WatchOptions } from './watched-blobs.ts';

/** Where the files are. */
export interface StorageOptions {
  readonly folder: string;
  /** Undefined: in the folder. */
  readonly s3: S3Options | undefined;
  /** The local copies of what is in S3. */
  readonly cache: Pick<CacheOptions, 'directory' | 'maxBytes'>;
}

/** Who is told of operations, and of requests to the cache. */
export interface StorageObserver extends WatchOptions {
  readonly observeCache: CacheOptions['observe'];
}

/** An open storage. */
export interface Storage {
  readonly blobs: BlobStore;
  /** Whether it works. */
  readonly isUp: boolean;
  /** Of local copies. */
  readonly cacheBytes: number;
  /** Drops the local copies of a blob, or of all blobs below `key/`: another server deleted it. */
  evict(key: string): Promise<void>;
  close(): void;
}

/** What is written once: all but playlists that grow, and uploads that are read once. */
const isKept = (key: string): boolean => !/\.m3u8$|\/upload$/.test(key);

/**
 * Opens the storage. One that does not answer is waited for while the server runs.
 * @throws Error that says what to do when it refuses these settings
 */
export async function openStorage(
  { folder, s3, cache }: StorageOptions,
  { observeCache, ...watch }: StorageObserver,
): Promise<Storage> {
  const remote = s3 && (await S3Blobs.open(s3));
  const watched = new WatchedBlobs(remote ?? new FileBlobs(folder), watch);
  const close = (): void => {
    watched.close();
    remote?.close();
  };
  try {
    await watched.checkAtStart();
  } catch (error) {
    close();
    const { name, message } = error as Error;
    throw new Error(
      `The storage refuses (${name}: ${message}). ` +
        (s3 === undefined
          ? 'Correct DATA_DIR.'
          : `The bucket ${s3.bucket} must exist. Correct the S3_ settings, or the credentials and ` +
            'what they permit: s3:ListBucket, GetObject, PutObject and DeleteObject.'),
      { cause: error },
    );
  }
  const copies =
    remote &&
    (await CachedBlobs.open(watched, {
      ...cache,
      isKept: (key) => isKept(key) && s3?.links?.isLinked(key) !== true,
      observe: observeCache,
    }));
  return {
    blobs: copies ?? watched,
    get isUp() {
      return watched.isUp;
    },
    get cacheBytes() {
      return copies?.bytes ?? 0;
    },
    evict: async (key) => {
      await copies?.evict(key);
    },
    close,
  };
}

// Opens the storage of faces and videos: a folder, or a bucket of S3.
import { FileBlobs } from './blobs.ts';
import { S3Blobs, type S3Options } from './s3-blobs.ts';
import { WatchedBlobs, type WatchOptions } from './watched-blobs.ts';

/** Where the files are. */
export interface StorageOptions {
  readonly folder: string;
  /** Undefined: in the folder. */
  readonly s3: S3Options | undefined;
}

/** An open storage. */
export interface Storage {
  readonly blobs: WatchedBlobs;
  close(): void;
}

/**
 * Opens the storage. One that does not answer is waited for while the server runs.
 * @throws Error that says what to do when it refuses these settings
 */
export async function openStorage(
  { folder, s3 }: StorageOptions,
  watch: WatchOptions,
): Promise<Storage> {
  const remote = s3 && (await S3Blobs.open(s3));
  const blobs = new WatchedBlobs(remote ?? new FileBlobs(folder), watch);
  const close = (): void => {
    blobs.close();
    remote?.close();
  };
  try {
    await blobs.checkAtStart();
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
  return { blobs, close };
}

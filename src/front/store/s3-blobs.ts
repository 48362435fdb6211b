// Blobs as objects of an S3 bucket: AWS, or a server that speaks its protocol (MinIO, Garage, R2).
// The client is loaded only where a bucket is set: it takes 0.2 s and 30 MB.
import { createReadStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type * as sdk from '@aws-sdk/client-s3';
import { type BlobReader, type BlobStat, type BlobStore, checkKey } from './blobs.ts';

type Sdk = typeof sdk;

/** The URLs that are signed for clients. */
export interface S3Links {
  /** Where clients reach S3; undefined: where this server does. */
  readonly endpoint: string | undefined;
  /** Whether clients get a URL of this blob. */
  readonly isLinked: (key: string) => boolean;
}

/** Where the objects are. Credentials come from the client's usual chain. */
export interface S3Options {
  readonly bucket: string;
  /** Undefined: AWS, in its region. */
  readonly endpoint: string | undefined;
  /** Undefined: from the client's usual chain. */
  readonly region: string | undefined;
  /** The bucket is in the path of a URL instead of its host name. */
  readonly isPathStyle: boolean;
  /** What every key begins with; '' for nothing. */
  readonly prefix: string;
  /** Undefined: no URLs are signed for clients. */
  readonly links: S3Links | undefined;
  /** Folder for files that are written before they are stored. */
  readonly draftDir: string;
}

/** Limits of time. A request is tried three times within its limit. */
const CONNECT_LIMIT_MS = 2000;
/** Nothing was sent or received for so long. */
const IDLE_LIMIT_MS = 5000;
const REQUEST_LIMIT_MS = 10_000;
const TRANSFER_LIMIT_MS = 50_000;
const ATTEMPTS = 3;
/** Life of a signed URL: as long as clients may keep the file. */
const LINK_SECONDS = 3600;
/** Bytes of one request of a reader: what is asked for and not read is lost. */
const PIECE_BYTES = 4 << 20;
/** Deletions under way at a time. */
const DELETIONS = 8;

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.jpg': 'image/jpeg',
  '.mp4': 'video/mp4',
  '.m4s': 'video/iso.segment',
  '.m3u8': 'application/vnd.apple.mpegurl',
};

/** Stores blobs as objects of one bucket. Methods reject with the errors of the client. */
export class S3Blobs implements BlobStore {
  readonly #sdk: Sdk;
  readonly #client: sdk.S3Client;
  /** Signs URLs, and sends nothing. */
  readonly #signer: sdk.S3Client;
  readonly #options: S3Options;

  private constructor(library: Sdk, options: S3Options) {
    const { endpoint, region, isPathStyle, links } = options;
    this.#sdk = library;
    this.#options = options;
    const config: sdk.S3ClientConfig = {
      ...(endpoint !== undefined && { endpoint }),
      ...(region !== undefined && { region }),
      forcePathStyle: isPathStyle,
      maxAttempts: ATTEMPTS,
      // Not every server knows the newer checksums. The signature covers what is stored.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: CONNECT_LIMIT_MS, socketTimeout: IDLE_LIMIT_MS },
    };
    this.#client = new library.S3Client(config);
    this.#signer =
      links?.endpoint === undefined
        ? this.#client
        : new library.S3Client({ ...config, endpoint: links.endpoint });
  }

  /** Loads the client. Asks nothing of the server yet. */
  static async open(options: S3Options): Promise<S3Blobs> {
    await rm(options.draftDir, { recursive: true, force: true });
    return new S3Blobs(await import('@aws-sdk/client-s3'), options);
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    await this.#client.send(
      new this.#sdk.PutObjectCommand({ ...this.#object(key), ...typeOf(key), Body: bytes }),
      within(TRANSFER_LIMIT_MS),
    );
  }

  async draft(key: string): Promise<string> {
    const file = path.join(this.#options.draftDir, checkKey(key));
    await mkdir(path.dirname(file), { recursive: true });
    return file;
  }

  async adopt(key: string, file: string): Promise<void> {
    const { size } = await stat(file);
    for (let attempt = 1; ; attempt++) {
      // The client repeats no request whose body is a stream.
      const body = createReadStream(file);
      try {
        await this.#client.send(
          new this.#sdk.PutObjectCommand({
            ...this.#object(key),
            ...typeOf(key),
            Body: body,
            ContentLength: size,
          }),
          within(TRANSFER_LIMIT_MS),
        );
        break;
      } catch (error) {
        if (attempt === ATTEMPTS) {
          throw error;
        }
        await delay(200 * attempt);
      } finally {
        body.destroy();
      }
    }
    await rm(file, { force: true });
  }

  async get(key: string): Promise<Buffer | undefined> {
    for (let attempt = 1; ; attempt++) {
      const found = await this.#client
        .send(new this.#sdk.GetObjectCommand(this.#object(key)), within(TRANSFER_LIMIT_MS))
        .catch(absent);
      if (found === undefined) {
        return undefined;
      }
      try {
        return Buffer.from((await found.Body?.transformToByteArray()) ?? []);
      } catch (error) {
        // The client repeats a request, but not the reading of its answer.
        if (attempt === ATTEMPTS) {
          throw error;
        }
      }
    }
  }

  async open(key: string): Promise<BlobReader | undefined> {
    const found = await this.stat(key);
    const link = this.#options.links?.isLinked(key) === true ? () => this.#sign(key) : undefined;
    return (
      found &&
      new S3Reader(found, link, (start, end) => this.#readRange(key, found.etag, start, end))
    );
  }

  async stat(key: string): Promise<BlobStat | undefined> {
    const found = await this.#client
      .send(new this.#sdk.HeadObjectCommand(this.#object(key)), within(REQUEST_LIMIT_MS))
      .catch(absent);
    return (
      found && {
        sizeBytes: found.ContentLength ?? 0,
        etag: found.ETag ?? '""',
        modifiedMs: found.LastModified?.getTime() ?? 0,
      }
    );
  }

  async delete(key: string): Promise<void> {
    const folder = `${this.#object(key).Key}/`;
    const doomed = [this.#object(key).Key];
    for await (const page of this.#pages(folder, undefined)) {
      doomed.push(...(page.Contents ?? []).flatMap(({ Key }) => Key ?? []));
    }
    for (let first = 0; first < doomed.length; first += DELETIONS) {
      await Promise.all(doomed.slice(first, first + DELETIONS).map((name) => this.#remove(name)));
    }
    await rm(path.join(this.#options.draftDir, key), { recursive: true, force: true });
  }

  async list(prefix: string): Promise<string[]> {
    const folder = `${this.#object(prefix).Key}/`;
    const names: string[] = [];
    for await (const page of this.#pages(folder, '/')) {
      const folders = (page.CommonPrefixes ?? []).flatMap((entry) => entry.Prefix ?? []);
      const objects = (page.Contents ?? []).flatMap((entry) => entry.Key ?? []);
      for (const name of [...folders, ...objects]) {
        names.push(name.slice(folder.length).replace(/\/$/, ''));
      }
    }
    return names.filter((name) => name !== '');
  }

  /** Ends idle connections. */
  close(): void {
    this.#client.destroy();
    this.#signer.destroy();
  }

  #object(key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#options.bucket, Key: this.#options.prefix + checkKey(key) };
  }

  async #sign(key: string): Promise<string> {
    const { getSignedUrl } = await import('@aws-sdk/s3-request-presigner');
    return await getSignedUrl(
      this.#signer,
      new this.#sdk.GetObjectCommand({
        ...this.#object(key),
        ResponseCacheControl: `public, max-age=${LINK_SECONDS}, immutable`,
      }),
      { expiresIn: LINK_SECONDS },
    );
  }

  async *#pages(folder: string, delimiter: string | undefined) {
    let token: string | undefined;
    do {
      const page = await this.#client.send(
        new this.#sdk.ListObjectsV2Command({
          Bucket: this.#options.bucket,
          Prefix: folder,
          Delimiter: delimiter,
          ContinuationToken: token,
        }),
        within(REQUEST_LIMIT_MS),
      );
      yield page;
      token = page.NextContinuationToken;
    } while (token !== undefined);
  }

  async #remove(name: string): Promise<void> {
    await this.#client.send(
      new this.#sdk.DeleteObjectCommand({ Bucket: this.#options.bucket, Key: name }),
      within(REQUEST_LIMIT_MS),
    );
  }

  /** Bytes `start` to `end`, both included, of the version that has this tag. */
  async #readRange(key: string, etag: string, start: number, end: number): Promise<Readable> {
    const { Body } = await this.#client.send(
      new this.#sdk.GetObjectCommand({
        ...this.#object(key),
        IfMatch: etag,
        Range: `bytes=${start}-${end}`,
      }),
      within(REQUEST_LIMIT_MS),
    );
    if (!(Body instanceof Readable)) {
      throw new Error('S3 sent no body');
    }
    return Body;
  }
}

/** Reads an object in pieces, each of them one request that is read as it comes. */
class S3Reader implements BlobReader {
  readonly sizeBytes: number;
  readonly etag: string;
  readonly modifiedMs: number;
  readonly link: (() => Promise<string>) | undefined;
  readonly #fetch: (start: number, end: number) => Promise<Readable>;
  #body: Readable | undefined;
  #chunks: AsyncIterator<Buffer> | undefined;
  /** Received and not read. */
  #rest: Uint8Array = new Uint8Array(0);
  /** Position of the first byte of #rest. */
  #position = 0;

  constructor(
    found: BlobStat,
    link: (() => Promise<string>) | undefined,
    fetch: (start: number, end: number) => Promise<Readable>,
  ) {
    this.link = link;
    this.sizeBytes = found.sizeBytes;
    this.etag = found.etag;
    this.modifiedMs = found.modifiedMs;
    this.#fetch = fetch;
  }

  async read(into: Uint8Array, position: number): Promise<number> {
    if (position >= this.sizeBytes || into.length === 0) {
      return 0;
    }
    if (position !== this.#position) {
      this.#drop();
      this.#position = position;
    }
    for (let isRetry = false; this.#rest.length === 0;) {
      try {
        this.#chunks ??= await this.#begin();
        const next = await this.#chunks.next();
        if (next.done === true) {
          this.#drop();
        } else {
          this.#rest = next.value;
        }
      } catch (error) {
        this.#drop();
        if (isRetry) {
          throw error;
        }
        isRetry = true;
      }
    }
    const count = Math.min(into.length, this.#rest.length);
    into.set(this.#rest.subarray(0, count));
    this.#rest = this.#rest.subarray(count);
    this.#position += count;
    return count;
  }

  close(): Promise<void> {
    this.#drop();
    return Promise.resolve();
  }

  async #begin(): Promise<AsyncIterator<Buffer>> {
    const last = Math.min(this.sizeBytes, this.#position + PIECE_BYTES) - 1;
    this.#body = await this.#fetch(this.#position, last);
    return this.#body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  #drop(): void {
    this.#body?.on('error', () => {}).destroy();
    this.#body = undefined;
    this.#chunks = undefined;
    this.#rest = new Uint8Array(0);
  }
}

const within = (limitMs: number): { readonly abortSignal: AbortSignal } => ({
  abortSignal: AbortSignal.timeout(limitMs),
});

const typeOf = (key: string): { readonly ContentType: string } => ({
  ContentType: CONTENT_TYPES[path.extname(key)] ?? 'application/octet-stream',
});

/** Undefined for an object that does not exist; a missing bucket is an error. */
function absent(error: unknown): undefined {
  const { name } = error as Error;
  if (name === 'NoSuchKey' || name === 'NotFound') {
    return undefined;
  }
  throw error;
}

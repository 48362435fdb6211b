// Stored files over HTTP: ranges, validators, and streaming with backpressure.
import type { HttpResponse } from 'uWebSockets.js';
import type { ResponseState } from './response-state.ts';
import { WritableWaiter } from './writable-waiter.ts';

/** A stored file that can be read at any position. A BlobReader of the store is one. */
export interface FileSource {
  /** A URL from which the client may fetch it instead, for a while. */
  readonly link?: (() => Promise<string>) | undefined;
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

/** Status, headers and byte range of the response to a request for a file. */
export interface FileResponsePlan {
  readonly status: 200 | 206 | 304 | 416;
  /** First byte to send. */
  readonly start: number;
  /** Number of bytes to send. */
  readonly length: number;
  readonly headers: Record<string, string>;
}

/**
 * Evaluates the range and the preconditions of a request (RFC 9110 sections 13 and 14). A single
 * range is served. A request for several ranges, or for an invalid range, gets the whole file.
 * @param range the request header Range; '' when absent, as for the two others
 */
export function planFileResponse(
  source: FileSource,
  range: string,
  ifRange: string,
  ifNoneMatch: string,
): FileResponsePlan {
  const size = source.sizeBytes;
  const modified = new Date(source.modifiedMs).toUTCString();
  const headers: Record<string, string> = {
    etag: source.etag,
    'last-modified': modified,
    'accept-ranges': 'bytes',
  };
  if (ifNoneMatch && matchesEtag(ifNoneMatch, source.etag)) {
    return { status: 304, start: 0, length: 0, headers };
  }
  const whole: FileResponsePlan = { status: 200, start: 0, length: size, headers };
  if (!range || (ifRange && ifRange !== source.etag && ifRange !== modified)) {
    return whole;
  }
  const match = /^bytes=(\d*)-(\d*)$/i.exec(range.replace(/\s+/g, ''));
  if (!match || (match[1] === '' && match[2] === '')) {
    return whole;
  }
  const unsatisfiable: FileResponsePlan = {
    status: 416,
    start: 0,
    length: 0,
    headers: { 'content-range': `bytes */${size}`, 'accept-ranges': 'bytes' },
  };
  const start = match[1] === '' ? Math.max(0, size - Number(match[2])) : Number(match[1]);
  const end = match[1] === '' || match[2] === '' ? size - 1 : Math.min(size - 1, Number(match[2]));
  if (match[1] !== '' && match[2] !== '' && Number(match[2]) < start) {
    return whole;
  } // RFC 9110 section 14.1.1: an invalid range is ignored
  if (start >= size || end < start) {
    return unsatisfiable;
  }
  return {
    status: 206,
    start,
    length: end - start + 1,
    headers: { ...headers, 'content-range': `bytes ${start}-${end}/${size}` },
  };
}

const matchesEtag = (header: string, etag: string): boolean =>
  header.trim() === '*' ||
  header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag);

/** Bytes that are read and written at a time; also the memory that one download takes. */
const CHUNK_BYTES = 64 * 1024;

/**
 * Sends `length` bytes from byte `start`. The caller has written the status and the headers.
 * @returns false when the client left, or when the file is now shorter than the promised length
 */
export async function streamFile(
  res: HttpResponse,
  source: FileSource,
  start: number,
  length: number,
  state: ResponseState,
): Promise<boolean> {
  const waiter = new WritableWaiter(res, state);
  const buffer = new Uint8Array(Math.min(CHUNK_BYTES, length));
  for (let sent = 0; sent < length;) {
    const got = await source.read(
      buffer.subarray(0, Math.min(buffer.length, length - sent)),
      start + sent,
    );
    if (state.aborted) {
      return false;
    }
    if (got === 0) {
      // The file became shorter. The promised length cannot be kept: close the connection.
      state.aborted = true;
      res.close();
      return false;
    }
    if (!(await sendChunk(res, waiter, buffer.subarray(0, got), length))) {
      return false;
    }
    sent += got;
  }
  state.aborted = true;
  return true;
}

/** Writes one chunk and waits until the kernel has taken all of it. */
function sendChunk(
  res: HttpResponse,
  waiter: WritableWaiter,
  chunk: Uint8Array,
  totalBytes: number,
): Promise<boolean> {
  const base = res.getWriteOffset();
  const attempt = (rest: Uint8Array): boolean => {
    let accepted = false;
    res.cork(() => {
      const [ok, done] = res.tryEnd(rest, totalBytes);
      accepted = ok || done;
    });
    return accepted;
  };
  return attempt(chunk)
    ? Promise.resolve(true)
    : waiter.wait((offset) => attempt(chunk.subarray(offset - base)));
}

// Stored files over HTTP: ranges, validators, and streaming that waits for a slow reader.
import type { HttpResponse } from 'uWebSockets.js';
import { Drain } from './drain.ts';
import type { WireState } from './reply.ts';

/** Bytes at rest that can be read at any position: what a blob store hands out. */
export interface FileSource {
  readonly sizeBytes: number;
  /** A strong validator, quotes included. */
  readonly etag: string;
  readonly modifiedMs: number;
  /** Fills `into` from byte `position`; returns how many bytes it got, 0 only at the end. */
  read(into: Uint8Array, position: number): Promise<number>;
  close(): Promise<void>;
}

export interface FilePlan {
  readonly status: 200 | 206 | 304 | 416;
  readonly start: number;
  readonly length: number;
  readonly headers: Record<string, string>;
}

/** How to answer for a file, by RFC 9110 sections 13 and 14. One range is served; several in one request give the whole file. */
export function fileHeaders(
  source: FileSource,
  range: string,
  ifRange: string,
  ifNoneMatch: string,
): FilePlan {
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
  const whole: FilePlan = { status: 200, start: 0, length: size, headers };
  if (!range || (ifRange && ifRange !== source.etag && ifRange !== modified)) {
    return whole;
  }
  const match = /^bytes=(\d*)-(\d*)$/i.exec(range.replace(/\s+/g, ''));
  if (!match || (match[1] === '' && match[2] === '')) {
    return whole;
  }
  const unsatisfiable: FilePlan = {
    status: 416,
    start: 0,
    length: 0,
    headers: { 'content-range': `bytes */${size}`, 'accept-ranges': 'bytes' },
  };
  const start = match[1] === '' ? Math.max(0, size - Number(match[2])) : Number(match[1]);
  const end = match[1] === '' || match[2] === '' ? size - 1 : Math.min(size - 1, Number(match[2]));
  if (match[1] !== '' && match[2] !== '' && Number(match[2]) < start) {
    return whole;
  } // an invalid range is ignored
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

const CHUNK_BYTES = 64 * 1024;

/** Sends `length` bytes from `start`. Status and headers are written before. False when the client left or the file fell short. */
export async function streamFile(
  res: HttpResponse,
  source: FileSource,
  start: number,
  length: number,
  state: WireState,
): Promise<boolean> {
  const drain = new Drain(res, state);
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
      // The file shrank under us: the promised length cannot be kept, so the connection must not be reused.
      state.aborted = true;
      res.close();
      return false;
    }
    if (!(await sendChunk(res, drain, buffer.subarray(0, got), length))) {
      return false;
    }
    sent += got;
  }
  state.aborted = true;
  return true;
}

/** Gives one chunk to the socket and waits until the kernel took all of it. */
function sendChunk(
  res: HttpResponse,
  drain: Drain,
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
    : drain.wait((offset) => attempt(chunk.subarray(offset - base)));
}

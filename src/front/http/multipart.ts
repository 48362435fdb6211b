// Parses multipart/form-data (RFC 7578, RFC 2046 section 5.1) in one pass, in slices. The number of
// parts is bounded and only files are copied.
import { nextSlice, SLICE_FREE_BYTES } from '../../base/slices.ts';
import { copyOf } from './copy.ts';
import type { MultipartFile } from './route.ts';
import { ValidationError } from './validate.ts';

/** Parts of one form. The largest form of the interface has three. */
const MAX_PARTS = 32;
const MAX_PART_HEADER_BYTES = 8 * 1024;
/**
 * A part that is not a file. No form of the interface has one; invalid UTF-8 of 32 MiB would hold
 * the thread for 280 ms (measured).
 */
const MAX_TEXT_BYTES = 64 * 1024;
/**
 * Bytes that are searched in one turn of the event loop. The worst case, a body of line ends, takes 7
 * ms (measured).
 */
const SLICE_BYTES = 1024 * 1024;
/** Blanks that may follow a boundary on its line (RFC 2046 calls them transport padding). */
const MAX_PADDING_BYTES = 128;
const LINE_END = '\r\n';
const CR = 0x0d;
const DASH = 0x2d;

/** The boundary parameter of a content type, quoted or not; undefined when absent. */
export function boundaryOf(contentType: string): string | undefined {
  const match = /;\s*boundary=(?:"([^"\r\n]{1,70})"|([^\s;"]{1,70}))\s*(?:;|$)/i.exec(contentType);
  return match?.[1] ?? match?.[2];
}

/**
 * Parses the parts by field name. A part with a file name or a content type is a file, another one
 * is text. A part without a name is ignored.
 * @throws ValidationError when the body is not a valid form, has more than MAX_PARTS parts, or two of
 * the same name
 */
export async function parseMultipart(
  bytes: Buffer,
  contentType: string,
): Promise<Record<string, MultipartFile | string>> {
  const fields = new Map<string, MultipartFile | string>();
  const delimiter = Buffer.from(`--${boundaryOf(contentType) ?? ''}`, 'latin1');
  const delimiters = new Delimiters(bytes, delimiter);
  let at = await delimiters.first();
  for (let count = 0; ; count++) {
    at += delimiter.length;
    if (bytes[at] === DASH && bytes[at + 1] === DASH) {
      return Object.fromEntries(fields);
    }
    if (count === MAX_PARTS) {
      throw invalid(`The form has more than ${MAX_PARTS} parts. Send only the fields of this path`);
    }
    const head = afterLine(bytes, at);
    const isBare = bytes[head] === CR && bytes[head + 1] === 0x0a; // the part has no headers
    const headEnd = isBare
      ? head
      : bytes.subarray(head, head + MAX_PART_HEADER_BYTES).indexOf('\r\n\r\n') + head;
    if (headEnd < head) {
      throw invalid(`A part's header does not end within ${MAX_PART_HEADER_BYTES / 1024} KiB`);
    }
    const body = headEnd + (isBare ? 2 : 4);
    // In a part without content, the line end of the next delimiter may follow the headers at once.
    const end = await delimiters.next(body - LINE_END.length);
    const header = parseHeader(bytes.toString('utf8', head, headEnd));
    if (header.name !== undefined) {
      if (fields.has(header.name)) {
        throw repeated(header.name);
      }
      fields.set(header.name, await valueOf(header, bytes.subarray(body, Math.max(body, end))));
    }
    at = end + LINE_END.length;
  }
}

interface PartHeader {
  readonly name: string | undefined;
  readonly fileName: string | undefined;
  readonly contentType: string | undefined;
}

async function valueOf(header: PartHeader, content: Buffer): Promise<MultipartFile | string> {
  if (header.fileName === undefined && header.contentType === undefined) {
    if (content.length > MAX_TEXT_BYTES) {
      throw invalid(
        `A part without a file name is longer than ${MAX_TEXT_BYTES / 1024} KiB. Send a file with ` +
          'its file name',
      );
    }
    return content.toString('utf8');
  }
  return {
    field: header.name ?? '',
    fileName: header.fileName ?? '',
    contentType: header.contentType ?? '',
    bytes: await copyOf([content]), // a copy, since the body is freed
  };
}

/** Finds delimiters in slices, so that a long search does not block the event loop. */
class Delimiters {
  readonly #bytes: Buffer;
  readonly #delimiter: Buffer;
  readonly #line: Buffer;
  /** Bytes that may still be searched in this turn. */
  #left = 0;

  constructor(bytes: Buffer, delimiter: Buffer) {
    this.#bytes = bytes;
    this.#delimiter = delimiter;
    this.#line = Buffer.concat([Buffer.from(LINE_END), delimiter]);
  }

  /** Offset of the first delimiter: 0, or the start of a line after a preamble. */
  async first(): Promise<number> {
    if (this.#bytes.subarray(0, this.#delimiter.length).equals(this.#delimiter)) {
      return 0;
    }
    return (await this.next(0)) + LINE_END.length;
  }

  /** Offset of the line end before the next delimiter. The line end belongs to the delimiter. */
  async next(from: number): Promise<number> {
    for (let at = from; at < this.#bytes.length; at += SLICE_BYTES) {
      if (this.#left <= 0 && this.#bytes.length > SLICE_FREE_BYTES) {
        await nextSlice();
        this.#left = SLICE_BYTES;
      }
      const found = this.#bytes
        .subarray(at, at + SLICE_BYTES + this.#line.length - 1)
        .indexOf(this.#line);
      this.#left -= found < 0 ? SLICE_BYTES : found;
      if (found >= 0) {
        return at + found;
      }
    }
    throw invalid('The body is not valid multipart/form-data: the closing boundary is missing');
  }
}

/** Offset of the byte after the line that holds a delimiter. */
function afterLine(bytes: Buffer, at: number): number {
  const padding = bytes.toString('latin1', at, at + MAX_PADDING_BYTES);
  const end = padding.indexOf(LINE_END);
  if (end < 0 || padding.slice(0, end).trim() !== '') {
    throw invalid(
      'The body is not valid multipart/form-data: other text follows a boundary on its line',
    );
  }
  return at + end + LINE_END.length;
}

function parseHeader(text: string): PartHeader {
  let name: string | undefined;
  let fileName: string | undefined;
  let contentType: string | undefined;
  for (const line of text.split(LINE_END)) {
    const colon = line.indexOf(':');
    const value = line.slice(colon + 1).trim();
    switch (line.slice(0, Math.max(0, colon)).trim().toLowerCase()) {
      case 'content-disposition': {
        const parameters = parametersOf(value);
        name = parameters.get('name');
        fileName = parameters.get('filename');
        break;
      }
      case 'content-type':
        contentType = value;
        break;
      default:
    }
  }
  return { name, fileName, contentType };
}

/**
 * The parameters of a header value, quoted or not; the first of a repeated name wins. In quotes, a
 * backslash escapes only a quote or another backslash.
 */
function parametersOf(header: string): Map<string, string> {
  const found = new Map<string, string>();
  for (let at = header.indexOf(';'); at >= 0; at = header.indexOf(';', at)) {
    const equals = header.indexOf('=', at);
    if (equals < 0) {
      break;
    }
    const name = header
      .slice(at + 1, equals)
      .trim()
      .toLowerCase();
    at = equals + 1;
    let value = '';
    if (header[at] === '"') {
      for (at++; at < header.length && header[at] !== '"'; at++) {
        if (header[at] === '\\' && (header[at + 1] === '"' || header[at + 1] === '\\')) {
          at++;
        }
        value += header[at];
      }
    } else {
      const end = header.indexOf(';', at);
      value = header.slice(at, end < 0 ? header.length : end).trim();
      at = end < 0 ? header.length : end;
    }
    if (!found.has(name)) {
      found.set(name, value);
    }
  }
  return found;
}

const invalid = (msg: string): ValidationError =>
  new ValidationError([{ loc: ['body'], msg, type: 'multipart_invalid' }]);

/** No field of the interface takes several values: which of two was meant cannot be told. */
const repeated = (name: string): ValidationError =>
  new ValidationError([
    {
      loc: ['body', name],
      msg: 'The form has more than one part of this name. Send only one',
      type: 'multipart_invalid',
    },
  ]);

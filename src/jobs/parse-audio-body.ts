// The job-pool task that parses the JSON body of POST /static/audio. It may be 86 MiB of text and
// would block the main thread for seconds.
import { jsonShape } from '../base/json.ts';

/** The field with the audio as Base64 text. */
export const AUDIO_FIELD = 'audioBase64';

/** A request body, and what to take from it. */
export interface AudioBodyTask {
  /** The bytes of the body, in the chunks in which they arrived. */
  readonly chunks: readonly Uint8Array[];
  /** Names of the fields to return; all others are dropped. */
  readonly fields: readonly string[];
}

/** The parsed body, or why it was not parsed. */
export type AudioBody =
  | { readonly kind: 'invalid-json' }
  /** More than MAX_OTHER_BYTES besides the longest string, or more than MAX_JSON_DELIMITERS. */
  | { readonly kind: 'too-much' }
  | { readonly kind: 'value'; readonly value: unknown };

/**
 * Largest size of a body without its longest string, bytes. Objects in memory can take 20 times the
 * size of their JSON text.
 */
export const MAX_OTHER_BYTES = 256 * 1024;
/** Largest number of commas and brackets in a body: bounds the time to parse it. */
const MAX_JSON_DELIMITERS = 5000;
/**
 * Longer strings are cut to this many characters. The limit is above that of every field except the
 * audio, so a cut string stays invalid.
 */
const MAX_TEXT_CHARS = 1024;

/**
 * Parses a body. The Base64 text of the audio field becomes bytes, or undefined when it is not
 * Base64. Everything else is made small, because the main thread reads the result: other fields are
 * dropped, strings cut, arrays and objects emptied.
 */
export function parseAudioBody({ chunks, fields }: AudioBodyTask): AudioBody {
  const bytes = Buffer.concat(chunks);
  const { longestString, marks } = jsonShape(bytes);
  if (bytes.length - longestString > MAX_OTHER_BYTES || marks > MAX_JSON_DELIMITERS) {
    return { kind: 'too-much' };
  }
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return { kind: 'invalid-json' };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { kind: 'value', value: shrink(value) };
  }
  const body = value as Record<string, unknown>;
  const wanted = fields.filter((name) => Object.hasOwn(body, name));
  return {
    kind: 'value',
    value: Object.fromEntries(wanted.map((name) => [name, fieldOf(name, body[name])])),
  };
}

const fieldOf = (name: string, value: unknown): unknown =>
  name === AUDIO_FIELD && typeof value === 'string' ? decodeBase64(value) : shrink(value);

/** Cuts a long string, and empties an array or object. */
function shrink(value: unknown): unknown {
  if (typeof value === 'string') {
    return value.slice(0, MAX_TEXT_CHARS);
  }
  if (Array.isArray(value)) {
    return [];
  }
  return typeof value === 'object' && value !== null ? {} : value;
}

/**
 * Decodes Base64: standard or URL-safe, padded or not, with line breaks. Accepts a `data:` URL,
 * because browsers make those.
 * @returns the bytes in shared memory; null when the text is not Base64
 */
function decodeBase64(text: string): Uint8Array | null {
  const comma = text.startsWith('data:') ? text.indexOf(',') + 1 : 0;
  const encoded = (comma > 0 ? text.slice(comma) : text).trimEnd();
  const padding = encoded.endsWith('==') ? 2 : Number(encoded.endsWith('='));
  // Search for one foreign character. An expression that matches the whole text would take
  // quadratic time or a stack of its size.
  if (/[^\w+/\s-]/.test(encoded.slice(0, encoded.length - padding))) {
    return null; // as a JSON value: undefined would mean that the field is absent
  }
  const decoded = Buffer.from(encoded, 'base64');
  // shared memory passes between threads without a copy
  const shared = new Uint8Array(new SharedArrayBuffer(decoded.length));
  shared.set(decoded);
  return shared;
}

export default parseAudioBody;

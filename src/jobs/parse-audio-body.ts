// The task that parses the JSON body of POST /static/audio: up to 86 MiB of text, which would hold the
// main thread for seconds.
import { jsonShape } from '../base/json.ts';

export const AUDIO_FIELD = 'audioBase64';

export interface AudioBodyTask {
  /** The body's bytes in the chunks in which they came. */
  readonly chunks: readonly Uint8Array[];
  /** Names of the fields that are wanted; the others are dropped. */
  readonly fields: readonly string[];
}

export type AudioBody =
  | { readonly kind: 'invalid-json' }
  /** More than MAX_OTHER_BYTES besides the longest string, or too many values. */
  | { readonly kind: 'too-much' }
  | { readonly kind: 'value'; readonly value: unknown };

/**
 * Bytes that a body may hold besides its longest string: a JSON text can take 20 times its size as
 * objects in memory.
 */
export const MAX_OTHER_BYTES = 256 * 1024;
/** Commas and brackets that it may have: bounds the time to parse it. */
const MAX_JSON_DELIMITERS = 5000;
/**
 * Longer strings are cut: more than any field but the audio may have, so that a cut one stays invalid.
 */
const MAX_TEXT_CHARS = 1024;

/**
 * The JSON value of a body. The Base64 text of its audio field is replaced by bytes, or by null when it
 * is not Base64. All else is made small, since the main thread reads what is returned: fields that are
 * not wanted are dropped, strings cut, arrays and objects emptied.
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
 * Standard or URL-safe, padded or not, line breaks allowed; a `data:` URL is accepted, since browsers
 * make those.
 */
function decodeBase64(text: string): Uint8Array | null {
  const comma = text.startsWith('data:') ? text.indexOf(',') + 1 : 0;
  const encoded = (comma > 0 ? text.slice(comma) : text).trimEnd();
  const padding = encoded.endsWith('==') ? 2 : Number(encoded.endsWith('='));
  // One foreign character is looked for: an expression that matches the whole text would take quadratic
  // time, or a stack of its size.
  if (/[^\w+/\s-]/.test(encoded.slice(0, encoded.length - padding))) {
    return null; // as a JSON value: undefined would mean that the field is absent
  }
  const decoded = Buffer.from(encoded, 'base64');
  const shared = new Uint8Array(new SharedArrayBuffer(decoded.length)); // passes between threads without another copy
  shared.set(decoded);
  return shared;
}

export default parseAudioBody;

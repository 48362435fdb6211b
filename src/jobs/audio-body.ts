// The task that parses the JSON body of POST /static/audio: up to 86 MiB of text, which would hold the main thread for seconds.

export const AUDIO_FIELD = 'audioBase64';

export type AudioBody =
  | { readonly kind: 'invalid-json' }
  | { readonly kind: 'value'; readonly value: unknown };

/** The JSON value of a body in chunks, with the Base64 text of its audio field replaced by bytes, or by null when it is not Base64. */
export function parseAudioBody(chunks: readonly Uint8Array[]): AudioBody {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)));
  } catch {
    return { kind: 'invalid-json' };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { kind: 'value', value };
  const body = value as Record<string, unknown>;
  if (typeof body[AUDIO_FIELD] === 'string') body[AUDIO_FIELD] = decodeBase64(body[AUDIO_FIELD]);
  return { kind: 'value', value };
}

/** Standard or URL-safe, padded or not, line breaks allowed; a `data:` URL is accepted, since browsers make those. */
function decodeBase64(text: string): Uint8Array | null {
  const comma = text.startsWith('data:') ? text.indexOf(',') + 1 : 0;
  const encoded = comma > 0 ? text.slice(comma) : text;
  if (!/^[\w+/\-\s]*={0,2}\s*$/.test(encoded)) return null;
  const decoded = Buffer.from(encoded, 'base64');
  const shared = new Uint8Array(new SharedArrayBuffer(decoded.length)); // passes between threads without another copy
  shared.set(decoded);
  return shared;
}

export default parseAudioBody;

// The messages on a session's WebSocket, in both directions (wire protocol section 2). Pure
// functions.
import { jsonShape } from '../../base/json.ts';
import { MAX_OFFER_CHARS } from '../../webrtc/sdp/offer.ts';

/** A message from a client. `ignored`: it has no meaning here. */
export type ClientMessage =
  | { readonly kind: 'audio'; readonly bytes: Uint8Array }
  | { readonly kind: 'playImmediate'; readonly bytes: Uint8Array }
  | { readonly kind: 'skip' }
  | { readonly kind: 'done' }
  | { readonly kind: 'ping'; readonly payload: string }
  /** `sdp` is undefined when the message is too long to be parsed. */
  | { readonly kind: 'offer'; readonly sdp: string | undefined }
  | { readonly kind: 'ignored' };

const PLAY_IMMEDIATE = 'PLAY_IMMEDIATE';
const MAX_PING_BYTES = 256;
/** In JSON a line break of SDP takes four bytes instead of two. */
export const MAX_TEXT_BYTES = 2 * MAX_OFFER_CHARS;
/** Commas and brackets in an offer. It has two fields, and some clients add a few. */
const MAX_OFFER_MARKS = 1000;
const ignored: ClientMessage = { kind: 'ignored' };

const startsWith = (bytes: Uint8Array, word: string): boolean => {
  if (bytes.length < word.length) {
    return false;
  }
  for (let i = 0; i < word.length; i++) {
    if (bytes[i] !== word.charCodeAt(i)) {
      return false;
    }
  }
  return true;
};

/**
 * Parses one message. Only an offer costs more than a few microseconds.
 * @param isOfferDue false once there was an offer: JSON is then ignored without parsing it
 * @returns audio as a view of `message`
 */
export function parseClientMessage(
  message: ArrayBuffer,
  isBinary: boolean,
  isOfferDue = true,
): ClientMessage {
  const bytes = new Uint8Array(message);
  if (isBinary) {
    // Clients send commands as text and as binary. Four bytes are two samples, 0.1 ms: never
    // speech.
    if (bytes.length === 4 && startsWith(bytes, 'SKIP')) {
      return { kind: 'skip' };
    }
    if (bytes.length === 4 && startsWith(bytes, 'DONE')) {
      return { kind: 'done' };
    }
    if (startsWith(bytes, PLAY_IMMEDIATE)) {
      return { kind: 'playImmediate', bytes: bytes.subarray(PLAY_IMMEDIATE.length) };
    }
    return bytes.length === 0 ? ignored : { kind: 'audio', bytes };
  }
  if (bytes.length > MAX_TEXT_BYTES) {
    return isOfferDue && startsWith(bytes, '{') ? { kind: 'offer', sdp: undefined } : ignored;
  }
  const text = Buffer.from(message).toString('utf8').trim();
  if (text === 'SKIP') {
    return { kind: 'skip' };
  }
  if (text === 'DONE') {
    return { kind: 'done' };
  }
  if (/^ping\b/.test(text)) {
    return text.length <= MAX_PING_BYTES
      ? { kind: 'ping', payload: text.slice(4).trim() }
      : ignored;
  }
  const isOffer = isOfferDue && text.startsWith('{') && jsonShape(bytes).marks <= MAX_OFFER_MARKS;
  return isOffer ? parseOffer(text) : ignored;
}

function parseOffer(text: string): ClientMessage {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value !== 'object' || value === null) {
      return ignored;
    }
    const { type, sdp } = value as { type?: unknown; sdp?: unknown };
    return type === 'offer' && typeof sdp === 'string' ? { kind: 'offer', sdp } : ignored;
  } catch {
    return ignored;
  }
}

/** Whether it is DONE, which is obeyed even when the client exceeds its message budget. */
export const isDone = (message: ArrayBuffer): boolean =>
  message.byteLength === 4 && startsWith(new Uint8Array(message), 'DONE');

// Known clients look for the first key at the start of the text. So the order of the keys matters,
// and the space after each colon.
export const answerMessage = (sdp: string): string =>
  `{"sdp": ${JSON.stringify(sdp)}, "type": "answer"}`;
export const destinationMessage = (destination: string, sessionId: string): string =>
  `{"destination": ${JSON.stringify(destination)}, "session_id": ${JSON.stringify(sessionId)}}`;
export const videoMetadataMessage = (fps: number, width: number, height: number): string =>
  `{"video_metadata": {"fps": ${fps}, "width": ${width}, "height": ${height}}}`;
export const roomMessage = (url: string, token: string): string =>
  `{"livekit_url": ${JSON.stringify(url)}, "livekit_token": ${JSON.stringify(token)}}`;
export const pongMessage = (payload: string): string => `pong ${payload}`.trimEnd();

// The words of a session's WebSocket, both ways (wire protocol section 2): pure functions, no state.
import { jsonShape } from '../../base/json.ts';
import { MAX_OFFER_CHARS } from '../../webrtc/sdp/offer.ts';

export type ClientMessage =
  | { readonly kind: 'audio'; readonly bytes: Uint8Array }
  | { readonly kind: 'playImmediate'; readonly bytes: Uint8Array }
  | { readonly kind: 'skip' }
  | { readonly kind: 'done' }
  | { readonly kind: 'ping'; readonly payload: string }
  /** `sdp` undefined: it is too long to be looked at. */
  | { readonly kind: 'offer'; readonly sdp: string | undefined }
  | { readonly kind: 'ignored' };

const PLAY_IMMEDIATE = 'PLAY_IMMEDIATE';
const MAX_PING_BYTES = 256;
/** JSON writes a line break of SDP in four bytes instead of two. */
export const MAX_TEXT_BYTES = 2 * MAX_OFFER_CHARS;
/** Commas and brackets in the message of an offer: it has two fields, and clients add a few of their own. */
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
 * Cheap for what is no offer: a flood of it is bounded by the number of messages.
 * @param isOfferDue false once there was one: JSON is then ignored without a look at it
 * @returns its `bytes` are a view of `message`
 */
export function parseClientMessage(
  message: ArrayBuffer,
  isBinary: boolean,
  isOfferDue = true,
): ClientMessage {
  const bytes = new Uint8Array(message);
  if (isBinary) {
    // Clients send commands in either kind of frame. Four bytes that spell a command are never speech: two samples are 0.1 ms.
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

/** Whether it is DONE, which is heard even from a client that sends too much. */
export const isDone = (message: ArrayBuffer): boolean =>
  message.byteLength === 4 && startsWith(new Uint8Array(message), 'DONE');

// Clients recognise JSON by the telling key in its first word, so that key comes first and a space follows each colon.
export const answerMessage = (sdp: string): string =>
  `{"sdp": ${JSON.stringify(sdp)}, "type": "answer"}`;
export const destinationMessage = (destination: string, sessionId: string): string =>
  `{"destination": ${JSON.stringify(destination)}, "session_id": ${JSON.stringify(sessionId)}}`;
export const videoMetadataMessage = (fps: number, width: number, height: number): string =>
  `{"video_metadata": {"fps": ${fps}, "width": ${width}, "height": ${height}}}`;
export const pongMessage = (payload: string): string => `pong ${payload}`.trimEnd();

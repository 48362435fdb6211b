// What a client says on a session's WebSocket (wire protocol section 2): the table of its messages,
// and their parsing. Pure functions.
import { z } from 'zod';
import { type Command, isCommand, parseCommand } from './commands.ts';
import { jsonShape } from '../../base/json.ts';

/** A message from a client. `ignored`: it has no meaning here. */
export type ClientMessage =
  | { readonly kind: 'audio'; readonly bytes: Uint8Array }
  | { readonly kind: 'playImmediate'; readonly bytes: Uint8Array }
  | { readonly kind: 'skip' }
  | { readonly kind: 'done' }
  | { readonly kind: 'ping'; readonly payload: string }
  /** `sdp` is undefined when the message is too long to be parsed. */
  | { readonly kind: 'offer'; readonly sdp: string | undefined }
  | { readonly kind: 'command'; readonly command: Command }
  /** A command with wrong fields, or one that is too long. */
  | { readonly kind: 'wrongCommand'; readonly type: string; readonly problem: string }
  | { readonly kind: 'ignored' };

/** What is told of a message of the client. */
interface ClientMessageSpec {
  readonly frames: readonly ('text' | 'binary')[];
  /** The whole message, or what it begins with; undefined: none. */
  readonly word: string | undefined;
  /** What follows the word. */
  readonly rest: 'nothing' | 'payload' | 'audio' | 'json';
  readonly summary: string;
  /** Only on sockets that negotiate the peer connection themselves. */
  readonly isP2pOnly?: boolean;
}

/** Every message of a client but the commands, for the documents of the protocol. */
export const CLIENT_MESSAGES = {
  offer: {
    frames: ['text'],
    word: undefined,
    rest: 'json',
    isP2pOnly: true,
    summary:
      'The SDP offer of an RTCPeerConnection, within 30 seconds. Video and audio recvonly, or ' +
      'audio sendrecv with a microphone that the face speaks. Candidates need not be awaited. ' +
      'The server replies with answer, session and video. A further offer of the same connection ' +
      'is answered with answer: an ICE restart, or other media.',
  },
  audio: {
    frames: ['binary'],
    word: undefined,
    rest: 'audio',
    summary:
      'Speech, appended to what the face will say, as fast as there is some: PCM16 (16 kHz, mono, ' +
      'little endian) or, with audioInputFormat opus of the token, one Opus packet a message. ' +
      '6000 bytes are a good size, 1 MiB is the limit. The server replies with ACK.',
  },
  playImmediate: {
    frames: ['binary'],
    word: 'PLAY_IMMEDIATE',
    rest: 'audio',
    summary: 'Drops all speech so far, and speaks what follows the word in the same message.',
  },
  skip: {
    frames: ['text', 'binary'],
    word: 'SKIP',
    rest: 'nothing',
    summary:
      'Interrupts: the face falls silent, and all speech so far is forgotten. SILENT follows if ' +
      'it was speaking. In a conversation it interrupts the reply.',
  },
  done: {
    frames: ['text', 'binary'],
    word: 'DONE',
    rest: 'nothing',
    summary:
      'The last speech was sent. The server plays it, sends STOP and closes. In a conversation it ' +
      'hangs up at once.',
  },
  ping: {
    frames: ['text'],
    word: 'ping',
    rest: 'payload',
    summary: 'Measures the round trip: the server replies with pong and the payload.',
  },
} as const satisfies Record<
  Exclude<ClientMessage['kind'], 'ignored' | 'command' | 'wrongCommand'>,
  ClientMessageSpec
>;

/** An offer. Other fields are ignored. */
export const offerSchema = z.object({ type: z.literal('offer'), sdp: z.string() });

const PLAY_IMMEDIATE = CLIENT_MESSAGES.playImmediate.word;
const SKIP = CLIENT_MESSAGES.skip.word;
const DONE = CLIENT_MESSAGES.done.word;
const MAX_PING_BYTES = 256;
/**
 * The longest command that the schemas allow: 500 words of 100 characters, each of which is six
 * bytes where it is escaped. An offer takes less: at most twice MAX_OFFER_CHARS, since a line break
 * is four bytes in JSON instead of two. The budgets of the sockets charge for every byte.
 */
export const MAX_TEXT_BYTES = 320 * 1024;
/** Commas and brackets of a JSON message: 500 words have 1500, and clients add fields. */
const MAX_TEXT_MARKS = 4000;
/** Where the type of a message is looked for that is not parsed: at its beginning and its end. */
const TYPE_BYTES = 128;
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
 * Parses one message. Only long JSON costs more than a few microseconds.
 * @param isOfferDue false where offers come another way
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
    if (bytes.length === 4 && startsWith(bytes, SKIP)) {
      return { kind: 'skip' };
    }
    if (bytes.length === 4 && startsWith(bytes, DONE)) {
      return { kind: 'done' };
    }
    if (startsWith(bytes, PLAY_IMMEDIATE)) {
      return { kind: 'playImmediate', bytes: bytes.subarray(PLAY_IMMEDIATE.length) };
    }
    return bytes.length === 0 ? ignored : { kind: 'audio', bytes };
  }
  if (bytes.length > MAX_TEXT_BYTES) {
    return startsWith(bytes, '{')
      ? unparsed(bytes, isOfferDue, `is longer than ${MAX_TEXT_BYTES / 1024} KiB`)
      : ignored;
  }
  const text = Buffer.from(message).toString('utf8').trim();
  if (text === SKIP) {
    return { kind: 'skip' };
  }
  if (text === DONE) {
    return { kind: 'done' };
  }
  if (/^ping\b/.test(text)) {
    return text.length <= MAX_PING_BYTES
      ? { kind: 'ping', payload: text.slice(4).trim() }
      : ignored;
  }
  if (!text.startsWith('{')) {
    return ignored;
  }
  return jsonShape(bytes).marks <= MAX_TEXT_MARKS
    ? parseObject(text, isOfferDue)
    : unparsed(bytes, false, `has more than ${MAX_TEXT_MARKS} commas and brackets`);
}

/** JSON that is too much to be parsed. A command is told by its type. */
function unparsed(bytes: Uint8Array, isOfferDue: boolean, why: string): ClientMessage {
  const ends = [bytes.subarray(0, TYPE_BYTES), bytes.subarray(-TYPE_BYTES)];
  for (const end of ends) {
    const type = /"type"\s*:\s*"(\w+)"/.exec(Buffer.from(end).toString('latin1'))?.[1];
    if (isCommand(type)) {
      return { kind: 'wrongCommand', type, problem: `The command ${why}. Send it in parts.` };
    }
  }
  return isOfferDue ? { kind: 'offer', sdp: undefined } : ignored;
}

function parseObject(text: string, isOfferDue: boolean): ClientMessage {
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(text) as Record<string, unknown>;
  } catch {
    return ignored;
  }
  if (value['type'] === 'offer') {
    const offer = isOfferDue ? offerSchema.safeParse(value) : undefined;
    return offer?.success === true ? { kind: 'offer', sdp: offer.data.sdp } : ignored;
  }
  const parsed = parseCommand(value);
  if (parsed === undefined) {
    return ignored;
  }
  return 'command' in parsed
    ? { kind: 'command', command: parsed.command }
    : { kind: 'wrongCommand', ...parsed };
}

/** Whether it is DONE, which is obeyed even when the client exceeds its message budget. */
export const isDone = (message: ArrayBuffer): boolean =>
  message.byteLength === 4 && startsWith(new Uint8Array(message), DONE);

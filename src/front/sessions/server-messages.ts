// The one table of what the server says on a session's WebSocket: the writers of the messages and
// the documents of the protocol are made from it. Each message has two forms: plain, as known
// clients expect it, and a JSON event with a time, for sockets that ask with `events=json`.
import { z } from 'zod';
import type { WireError } from '../../base/errors.ts';
import type { Query } from '../../base/query.ts';
import { type EndReason, SESSION_ENDS } from '../../base/session-ends.ts';
import { SOCKET_ERRORS, type SocketErrorCode, socketErrorOf } from '../../base/socket-errors.ts';
import { wallMs } from '../../base/time.ts';
import type { ReportedMotion } from '../../link/messages.ts';
import { ARKIT_BLEND_SHAPES } from '../../media/arkit.ts';
import { VISEMES } from '../../media/visemes.ts';

/** The WebSockets of sessions. A conversation runs on `p2p`. */
export type SessionSocket = 'p2p' | 'livekit' | 'agent';

/** Reason of a RATE message → what it says, and what helps. */
export const RATE_REASONS = {
  audio_backlog_full:
    'Ten minutes of speech are waiting to be played: what did not fit was dropped. Send no faster ' +
    'than it is played, or interrupt with SKIP.',
  too_many_messages:
    'Messages were dropped unread: this socket (socket_rate) or all sockets together ' +
    '(server_rate) sent too many. Send larger pieces: 6000 bytes are 187.5 ms. A socket that goes ' +
    'on is closed with ERROR RATE_LIMITED.',
  offer_refused:
    'A further offer was dropped: it cannot be used, or too many came. The connection goes on as it ' +
    'was. Offer what the first offer had, on the same connection.',
} as const;

/** Reason of a CLOSING message → what it says, and what helps. */
export const CLOSING_REASONS = {
  server_draining:
    'The server shuts down, and ends the session after so many seconds with STOP server_stopped. ' +
    'Finish, then connect again: a token is good for every server that shares its Redis.',
} as const;

/** Reason of a STOP message → what it says, and what helps. '' is a STOP without a reason. */
export const STOP_REASONS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.values(SESSION_ENDS).flatMap(({ stop }) =>
    stop === undefined ? [] : [[stop.reason, stop.advice]],
  ),
);

/** How a text that is one of the keys of a table is checked. */
const oneOf = <Name extends string>(table: Readonly<Record<Name, unknown>>) =>
  z.enum(Object.keys(table) as [Name, ...Name[]]);

/** What the table says of one message. */
export interface MessageSpec<Fields extends z.ZodObject> {
  /** What it says, and what the client does then. */
  readonly summary: string;
  readonly sockets: readonly SessionSocket[];
  /** The fields of the JSON event, besides `type` and `at`. */
  readonly fields: Fields;
  /** The values of an example. */
  readonly example: z.infer<Fields>;
  /** First word of the plain message, before the values of the fields; undefined: it is JSON. */
  readonly word?: string;
  /** There is no plain message. */
  readonly isEventOnly?: boolean;
  /** The plain message is the word alone. */
  readonly isBare?: boolean;
  /** Schema of the plain message where it is JSON, and its value. */
  readonly plain?: {
    readonly schema: z.ZodObject;
    readonly of: (fields: z.infer<Fields>) => object;
  };
}

const message = <Fields extends z.ZodObject>(spec: MessageSpec<Fields>): MessageSpec<Fields> =>
  spec;

const ALL: readonly SessionSocket[] = ['p2p', 'livekit', 'agent'];
const nothing = z.object({});
const utterance = z.object({
  utterance: z.int().min(1).meta({ description: 'Counts the times that the face began to speak.' }),
});
const milliseconds = z.int().min(0);
const rtpTimestamp = z
  .int()
  .min(0)
  .meta({
    description:
      'RTP timestamp of the frame: rtpTimestamp of requestVideoFrameCallback. The message is ' +
      'sent with the frame, so it usually arrives before the frame is shown.',
  });
const videoMetadata = z.object({ fps: z.int(), width: z.int(), height: z.int() });
const destination = z.object({
  destination: z.string().meta({ description: 'host:port of the server that holds the session.' }),
  session_id: z.string().meta({ description: 'For GET /sessions/{id}/stats, and for reports.' }),
});
const room = z.object({
  livekit_url: z.string().meta({ description: 'The LiveKit server to join.' }),
  livekit_token: z.string().meta({ description: 'The LiveKit token of the viewer.' }),
});
const conversation = z.object({
  state: z.enum(['listening', 'hearing', 'thinking', 'speaking']).optional(),
  caption: z
    .object({ role: z.enum(['user', 'assistant']), text: z.string(), final: z.boolean() })
    .optional()
    .meta({ description: 'What was said. A caption that is not final is replaced by the next.' }),
  problem: z.string().optional().meta({ description: 'Something failed; the session goes on.' }),
});

/** Every message of the server. The keys are the types of the JSON events. */
export const SERVER_MESSAGES = {
  answer: message({
    summary:
      'The answer to the offer, with all candidates of the server: set it as the remote description.',
    sockets: ['p2p'],
    example: { sdp: 'v=0\r\n…' },
    fields: z.object({ sdp: z.string() }),
    plain: {
      schema: z.object({ sdp: z.string(), type: z.literal('answer') }),
      of: ({ sdp }) => ({ sdp, type: 'answer' }),
    },
  }),
  session: message({
    summary: 'Where the session runs, and its id. Keep the id for reports.',
    sockets: ALL,
    example: { destination: 'media.example:443', session_id: '3f0c…' },
    fields: destination,
    plain: { schema: destination, of: (fields) => fields },
  }),
  video: message({
    summary: 'Frame rate and size of the video that comes.',
    sockets: ALL,
    example: { fps: 30, width: 512, height: 512 },
    fields: videoMetadata,
    plain: {
      schema: z.object({ video_metadata: videoMetadata }),
      of: (fields) => ({ video_metadata: fields }),
    },
  }),
  room: message({
    summary: 'The LiveKit room in which the face waits: join it within 30 seconds.',
    sockets: ['livekit'],
    example: { livekit_url: 'wss://media.example', livekit_token: 'eyJ…' },
    fields: room,
    plain: { schema: room, of: (fields) => fields },
  }),
  started: message({
    summary:
      'The peer connection is up: idle video and silence flow. Once in a session. Send speech.',
    sockets: ALL,
    example: {},
    fields: nothing,
    word: 'START',
  }),
  speaking: message({
    summary: 'The face begins to speak.',
    sockets: ALL,
    example: { utterance: 1 },
    fields: utterance,
    word: 'SPEAK',
    isBare: true,
  }),
  silent: message({
    summary: 'The face has spoken all that arrived, or was interrupted.',
    sockets: ALL,
    example: { utterance: 1 },
    fields: utterance,
    word: 'SILENT',
    isBare: true,
  }),
  ack: message({
    summary: 'An audio message arrived. One for each, in order.',
    sockets: ALL,
    example: {},
    fields: nothing,
    word: 'ACK',
  }),
  pong: message({
    summary: 'The answer to a ping, with its payload.',
    sockets: ALL,
    example: { payload: '17.5' },
    fields: z.object({ payload: z.string() }),
    word: 'pong',
  }),
  conversation: message({
    summary:
      'In a conversation: what it does now, a caption, or a problem. One of the three fields.',
    sockets: ['p2p'],
    example: { caption: { role: 'user', text: 'Hello!', final: true } },
    fields: conversation,
    plain: {
      schema: z.object({ conversation }),
      of: (fields) => ({ conversation: fields }),
    },
  }),
  motion: message({
    summary:
      'What the face does in one video frame, in the 52 blend shapes of ARKit: for a rig of your ' +
      'own, or captions in step with the lips. Only with events=json and motion=arkit or all.',
    sockets: ALL,
    example: { rtp: 2_851_200, weights: [0, 0.12] },
    isEventOnly: true,
    fields: z.object({
      rtp: rtpTimestamp,
      weights: z.array(z.number().min(0).max(1)).meta({
        description: `0 to 1, in the order ${ARKIT_BLEND_SHAPES.join(', ')}.`,
      }),
    }),
  }),
  viseme: message({
    summary:
      'From this video frame on the mouth shows another viseme, one of the fifteen of Oculus ' +
      'Lipsync; sil is rest. Only with events=json and motion=visemes or all.',
    sockets: ALL,
    example: { rtp: 2_851_200, viseme: 'PP' },
    isEventOnly: true,
    fields: z.object({ rtp: rtpTimestamp, viseme: z.enum(VISEMES) }),
  }),
  word: message({
    summary:
      'A word is heard now that the command words announced. A word that an interruption cut off ' +
      'is not told.',
    sockets: ALL,
    example: { text: 'friends', startMs: 410 },
    isEventOnly: true,
    fields: z.object({ text: z.string(), startMs: milliseconds }),
  }),
  viewer: message({
    summary:
      'Whether somebody watches. While nobody does, speech waits; the session ends when nobody ' +
      'comes within graceSeconds.',
    sockets: ['agent'],
    example: { connected: true },
    isEventOnly: true,
    fields: z.object({ connected: z.boolean() }),
  }),
  interrupted: message({
    summary: 'The reply to interrupt.',
    sockets: ALL,
    example: { heardMs: 1240, droppedMs: 3160 },
    isEventOnly: true,
    fields: z.object({
      heardMs: milliseconds.meta({
        description:
          'How much of the utterance was sent to the viewer, since the last flush or interrupt ' +
          'before it. It is heard later by the network and the jitter buffer, about 0.1 s.',
      }),
      droppedMs: milliseconds.meta({ description: 'Speech that will not be heard.' }),
    }),
  }),
  flushed: message({
    summary: 'The reply to flush: the utterance is over. Once for each, in order.',
    sockets: ALL,
    example: { id: 'reply-1', heardMs: 4400, interrupted: false },
    isEventOnly: true,
    fields: z.object({
      id: z.string(),
      heardMs: milliseconds.meta({ description: 'How much of it was sent to the viewer.' }),
      interrupted: z.boolean(),
    }),
  }),
  face: message({
    summary: 'The reply to face: this face is shown from now on.',
    sockets: ALL,
    example: { faceId: 'ava' },
    isEventOnly: true,
    fields: z.object({ faceId: z.string() }),
  }),
  rejected: message({
    summary: 'A command was not obeyed. The session goes on.',
    sockets: ALL,
    example: { command: 'emotion', message: 'emotion: Invalid option' },
    isEventOnly: true,
    fields: z.object({ command: z.string(), message: z.string() }),
  }),
  rate: message({
    summary: 'Something the client sent was dropped; told once a second at most. Send less.',
    sockets: ALL,
    example: { reason: 'too_many_messages', detail: 'socket_rate' },
    fields: z.object({
      reason: oneOf(RATE_REASONS),
      detail: z.enum(['socket_rate', 'server_rate']).optional(),
    }),
    word: 'RATE',
  }),
  closing: message({
    summary: 'The session will be ended. Finish what matters.',
    sockets: ALL,
    example: { reason: 'server_draining', seconds: 30 },
    fields: z.object({ reason: oneOf(CLOSING_REASONS), seconds: z.int().min(0) }),
    word: 'CLOSING',
  }),
  stopped: message({
    summary: 'The session is over, as planned. The socket closes.',
    sockets: ALL,
    example: { reason: 'idle_limit' },
    fields: z.object({ reason: oneOf(STOP_REASONS) }),
    word: 'STOP',
  }),
  error: message({
    summary: 'The session is over, or was refused, because of an error. The socket closes.',
    sockets: ALL,
    example: { code: 'SESSION_IN_USE' },
    fields: z.object({
      code: oneOf<SocketErrorCode>(SOCKET_ERRORS),
      message: z.string().optional().meta({ description: 'What exactly, for a person.' }),
    }),
    word: 'ERROR',
  }),
} as const;

type Name = keyof typeof SERVER_MESSAGES;

/** One message of the server, before it is written. */
export type ServerMessage = {
  [Type in Name]: { readonly type: Type } & FieldsOf<
    z.infer<(typeof SERVER_MESSAGES)[Type]['fields']>
  >;
}[Name];
/** Something of the client was dropped. */
export type RateMessage = Extract<ServerMessage, { type: 'rate' }>;
type FieldsOf<Fields> = Fields extends Record<string, never> ? unknown : Readonly<Fields>;

/** JSON with a space after each colon and comma, which known clients expect. */
function spacedJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) {
    return JSON.stringify(value);
  }
  const fields = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .map(([name, inner]) => `${JSON.stringify(name)}: ${spacedJson(inner)}`);
  return `{${fields.join(', ')}}`;
}

/**
 * The message in the plain form: words, or JSON that begins with its telling key.
 * @returns undefined when it has none
 */
export function plainText({ type, ...fields }: ServerMessage): string | undefined {
  const { word, plain, isBare, isEventOnly } = SERVER_MESSAGES[type] as MessageSpec<z.ZodObject>;
  if (isEventOnly) {
    return undefined;
  }
  if (word === undefined) {
    return spacedJson(plain?.of(fields) ?? fields);
  }
  if (isBare) {
    return word;
  }
  const told = Object.values(fields).filter((value) => value !== undefined && value !== '');
  return [word, ...told.map(String)].join(' ');
}

/** The message as a JSON event. @param atMs Unix time */
export const eventText = (message: ServerMessage, atMs: number): string =>
  JSON.stringify({ ...message, at: atMs });

/** The message of the motion in a frame. Weights get two decimals. */
export const motionMessage = (rtp: number, weights: Float32Array): ServerMessage => ({
  type: 'motion',
  rtp,
  weights: Array.from(weights, (weight) => Math.round(weight * 100) / 100),
});

const REPORTS: Readonly<Record<string, ReportedMotion>> = {
  arkit: 'arkit',
  visemes: 'visemes',
  all: 'all',
};

/** The motion that a socket asks for. It is told in events only. */
export const wantedMotion = (query: Query): ReportedMotion | undefined =>
  query.get('events') === 'json' && Object.hasOwn(REPORTS, query.get('motion') ?? '')
    ? REPORTS[query.get('motion') ?? '']
    : undefined;

/** How messages are written; undefined: the message is not told in this form. */
export type MessageWriter = (message: ServerMessage) => string | undefined;

/** As events, with the time. */
export const writeEvent: MessageWriter = (message) => eventText(message, wallMs());

/** The form that a socket asks for: `events=json` in its query means JSON events. */
export const writerFor = (query: Query): MessageWriter =>
  query.get('events') === 'json' ? writeEvent : plainText;

/** The message of an error, with its words. */
export const errorMessage = ({ code, message }: WireError): ServerMessage => ({
  type: 'error',
  code: socketErrorOf(code),
  message,
});

/** The last message of a session; undefined: the client is gone. */
export function endMessage(reason: EndReason): ServerMessage | undefined {
  const { error, stop } = SESSION_ENDS[reason];
  if (error !== undefined) {
    return { type: 'error', code: error };
  }
  return stop && { type: 'stopped', reason: stop.reason };
}

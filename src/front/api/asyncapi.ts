// The AsyncAPI 3.0 document of the sessions' WebSockets, generated from the tables that write and
// parse their messages.
import { z } from 'zod';
import { COMMANDS, commandSchema } from '../sessions/commands.ts';
import {
  type MessageSpec,
  type ServerMessage,
  type SessionSocket,
  SERVER_MESSAGES,
  eventText,
  plainText,
} from '../sessions/server-messages.ts';
import { CLIENT_MESSAGES, offerSchema } from '../sessions/wire-protocol.ts';

type Json = Record<string, unknown>;

/** The WebSockets of sessions. */
export const SOCKETS: Readonly<
  Record<SessionSocket, { readonly address: string; readonly summary: string }>
> = {
  p2p: {
    address: '/compose/webrtc/p2p',
    summary:
      'A live session, or a conversation, whose peer connection is negotiated over this socket.',
  },
  livekit: {
    address: '/compose/webrtc/livekit',
    summary: 'A live session in a LiveKit room, which the client joins with a LiveKit library.',
  },
  agent: {
    address: '/sessions/agent',
    summary:
      'The server of an agent in a session of POST /sessions. It speaks events only, and connects ' +
      'again with the same address; the viewer has a connection of its own.',
  },
};

/** Parameters in the query of a session's WebSocket. */
export const SOCKET_QUERY = z.object({
  session_token: z.string().meta({
    description:
      'From POST /compose/token. Good until it expires, also to connect again. Or a token of POST ' +
      '/sessions: of the agent for /sessions/agent, of the viewer for /compose/webrtc/p2p.',
  }),
  events: z.enum(['json']).optional().meta({
    description: 'json: the server sends JSON events with times. Without it: plain messages.',
  }),
  motion: z
    .enum(['arkit', 'visemes', 'all'])
    .optional()
    .meta({
      description:
        'With events=json. arkit: the motion of the face in each frame, as blend shapes. visemes: ' +
        'its visemes, as they change. all: both.',
    }),
  enableSFU: z.string().optional().meta({ description: 'Sent by some clients, and ignored.' }),
});

const schemaOf = (schema: z.ZodType, io: 'input' | 'output' = 'output'): Json => {
  const { $schema: _dialect, ...made } = z.toJSONSchema(schema, { target: 'draft-7', io }) as Json;
  return made;
};

/** An example of the message. */
export const exampleOf = (type: ServerMessage['type']): ServerMessage =>
  ({ type, ...SERVER_MESSAGES[type].example }) as ServerMessage;

/** The pattern of a plain message that begins with a word. */
export function wordPattern({ word, isBare, fields }: MessageSpec<z.ZodObject>): string {
  const parts = isBare ? [] : Object.values(fields.shape);
  const patterns = parts.map((field) => {
    const isOptional = field.isOptional() || field.safeParse('').success;
    const { type, enum: values } = schemaOf(
      field instanceof z.ZodOptional ? (field.unwrap() as z.ZodType) : field,
    ) as { type?: string; enum?: string[] };
    const value =
      values !== undefined
        ? `(${values.filter((one) => one !== '').join('|')})`
        : type === 'integer'
          ? String.raw`\d+`
          : '.+';
    return isOptional ? `( ${value})?` : ` ${value}`;
  });
  return `^${word!}${patterns.join('')}$`;
}

/** The plain form of a message of the server, where it has one. */
function plainForm(type: ServerMessage['type'], spec: MessageSpec<z.ZodObject>): Json {
  const plain = plainText(exampleOf(type));
  if (plain === undefined) {
    return {};
  }
  const isJson = spec.word === undefined;
  return {
    [type]: {
      name: type,
      title: `${spec.word ?? type}, plain`,
      summary: spec.summary,
      contentType: isJson ? 'application/json' : 'text/plain',
      payload: isJson
        ? schemaOf(spec.plain!.schema)
        : { type: 'string', pattern: wordPattern(spec) },
      examples: [{ payload: isJson ? (JSON.parse(plain) as unknown) : plain }],
    },
  };
}

/** All forms of a message of the server. */
function serverMessage(type: ServerMessage['type']): Json {
  const spec = SERVER_MESSAGES[type] as unknown as MessageSpec<z.ZodObject>;
  const event = z.object({
    type: z.literal(type),
    ...spec.fields.shape,
    at: z
      .number()
      .meta({ description: 'When it was sent: Unix time of the server, milliseconds.' }),
  });
  return {
    ...plainForm(type, spec),
    [`${type}Event`]: {
      name: type,
      title: `${type}, with events=json`,
      summary: spec.summary,
      contentType: 'application/json',
      payload: schemaOf(event),
      examples: [{ payload: JSON.parse(eventText(exampleOf(type), 1_767_225_600_000)) as unknown }],
    },
  };
}

function clientMessage(kind: keyof typeof CLIENT_MESSAGES): Json {
  const { summary, frames, word, rest } = CLIENT_MESSAGES[kind];
  const payload: Json =
    rest === 'json'
      ? schemaOf(offerSchema)
      : rest === 'audio'
        ? { type: 'string', format: 'binary', ...(word && { pattern: `^${word}` }) }
        : { type: 'string', pattern: rest === 'nothing' ? `^${word}$` : `^${word}( .*)?$` };
  return {
    name: kind,
    title: word ?? kind,
    summary: `${summary} (${frames.join(' or ')} frames)`,
    contentType:
      rest === 'json'
        ? 'application/json'
        : rest === 'audio'
          ? 'application/octet-stream'
          : 'text/plain',
    payload,
  };
}

function commandMessage(type: keyof typeof COMMANDS): Json {
  const { summary, example } = COMMANDS[type];
  return {
    name: type,
    title: `${type}, a command`,
    summary: `${summary} (text frames)`,
    contentType: 'application/json',
    payload: schemaOf(commandSchema(type), 'input'),
    examples: [{ payload: { type, ...example } }],
  };
}

const ref = (path: string): Json => ({ $ref: `#/${path}` });

/**
 * The document.
 * @param origin scheme and authority under which the client reaches this server
 */
export function asyncApiDocument(version: string, origin: string): Json {
  const { host, protocol } = new URL(origin);
  const serverTypes = Object.keys(SERVER_MESSAGES) as ServerMessage['type'][];
  const clientKinds = Object.keys(CLIENT_MESSAGES) as (keyof typeof CLIENT_MESSAGES)[];
  const commands = Object.keys(COMMANDS) as (keyof typeof COMMANDS)[];
  const channels: Json = {};
  const operations: Json = {};
  for (const [name, { address, summary }] of Object.entries(SOCKETS)) {
    const sent: string[] = [
      ...clientKinds.filter((kind) => name === 'p2p' || !('isP2pOnly' in CLIENT_MESSAGES[kind])),
      ...commands.map((type) => `${type}Command`),
    ];
    const received = serverTypes
      .filter((type) => SERVER_MESSAGES[type].sockets.includes(name as SessionSocket))
      .flatMap((type): string[] =>
        name === 'agent' || 'isEventOnly' in SERVER_MESSAGES[type]
          ? [`${type}Event`]
          : [type, `${type}Event`],
      );
    channels[name] = {
      address,
      summary,
      servers: [ref('servers/this')],
      messages: Object.fromEntries(
        [...sent, ...received].map((id) => [id, ref(`components/messages/${id}`)]),
      ),
      bindings: { ws: { method: 'GET', query: schemaOf(SOCKET_QUERY), bindingVersion: '0.1.0' } },
    };
    const inChannel = (id: string): Json => ref(`channels/${name}/messages/${id}`);
    // The words of AsyncAPI are those of the application that the document is of: this server.
    operations[`${name}Receive`] = {
      action: 'receive',
      channel: ref(`channels/${name}`),
      summary: 'What a client sends.',
      messages: sent.map(inChannel),
    };
    operations[`${name}Send`] = {
      action: 'send',
      channel: ref(`channels/${name}`),
      summary: 'What the server sends: in the plain form, or as events where the client asked.',
      messages: received.map(inChannel),
    };
  }
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Mouthpiece sessions',
      version,
      description:
        'The WebSockets of live sessions. A chapter with sequences, reasons and errors is at ' +
        '/docs/protocol; the REST API is at /openapi.json.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    defaultContentType: 'text/plain',
    servers: { this: { host, protocol: protocol === 'https:' ? 'wss' : 'ws' } },
    channels,
    operations,
    components: {
      messages: {
        ...Object.fromEntries(clientKinds.map((kind) => [kind, clientMessage(kind)])),
        ...Object.fromEntries(commands.map((type) => [`${type}Command`, commandMessage(type)])),
        ...Object.assign({}, ...serverTypes.map(serverMessage)),
      },
    },
  };
}

// The chapter of the documents on the sessions' WebSockets: HTML, made from the tables that write
// and parse their messages.
import { ERRORS } from '../../base/errors.ts';
import { type Retry, SOCKET_ERRORS } from '../../base/socket-errors.ts';
import {
  type ServerMessage,
  CLOSING_REASONS,
  RATE_REASONS,
  SERVER_MESSAGES,
  STOP_REASONS,
  eventText,
  plainText,
} from '../sessions/server-messages.ts';
import { COMMANDS } from '../sessions/commands.ts';
import { CLIENT_MESSAGES } from '../sessions/wire-protocol.ts';
import { SOCKETS, SOCKET_QUERY, exampleOf } from './asyncapi.ts';

const RETRY: Readonly<Record<Retry, string>> = {
  now: 'Connect again with the same token.',
  later: 'Connect again with the same token, after a second or more.',
  new_token: 'Create another token and connect with it.',
  no: 'Change what the error names before you connect again.',
};

/** A sequence between a client and the server, as it is drawn in monospace. */
interface Sequence {
  readonly title: string;
  readonly text: string;
}

const SEQUENCES: readonly Sequence[] = [
  {
    title: 'A session with a peer connection',
    text: `
client                                              server
  │ POST /compose/token {"faceId": "ava"}             │
  │──────────────────────────────────────────────────▶│
  │                        {"session_token": "…"}     │
  │◀──────────────────────────────────────────────────│
  │ WSS /compose/webrtc/p2p?session_token=…           │
  │──────────────────────────────────────────────────▶│
  │ {"type": "offer", "sdp": "…"}      within 30 s    │
  │──────────────────────────────────────────────────▶│
  │          {"sdp": "…", "type": "answer"}           │
  │          {"destination": …, "session_id": …}      │
  │          {"video_metadata": …}                    │
  │◀──────────────────────────────────────────────────│
  │◀═══════════════ ICE, DTLS, media ════════════════▶│
  │                                          START    │
  │◀──────────────────────────────────────────────────│
  │ PCM16, in pieces, faster than real time           │
  │──────────────────────────────────────────────────▶│
  │                         ACK, one for each         │
  │            SPEAK … (the face speaks) … SILENT     │
  │◀──────────────────────────────────────────────────│
  │ DONE                                              │
  │──────────────────────────────────────────────────▶│
  │               STOP, once all has been played      │
  │◀──────────────────────────────────────────────────│`,
  },
  {
    title: 'An interruption',
    text: `
client                                              server
  │ PCM16, a whole reply                              │
  │──────────────────────────────────────────────────▶│
  │                                  ACK … SPEAK      │
  │◀──────────────────────────────────────────────────│
  │ SKIP                                              │
  │──────────────────────────────────────────────────▶│
  │         SILENT; what was not heard is forgotten   │
  │◀──────────────────────────────────────────────────│
  │ PLAY_IMMEDIATE + PCM16    SKIP and speech in one  │
  │──────────────────────────────────────────────────▶│`,
  },
  {
    title: 'A session in a LiveKit room',
    text: `
client                                              server
  │ WSS /compose/webrtc/livekit?session_token=…       │
  │──────────────────────────────────────────────────▶│
  │          {"destination": …, "session_id": …}      │
  │          {"video_metadata": …}                    │
  │          {"livekit_url": …, "livekit_token": …}   │
  │◀──────────────────────────────────────────────────│
  │ joins that room within 30 s, subscribes           │
  │──────────────────────────────────────────────────▶│
  │                     START; then as above          │
  │◀──────────────────────────────────────────────────│`,
  },
  {
    title: 'A conversation',
    text: `
client                                              server
  │ POST /auto/start/configurable                     │
  │──────────────────────────────────────────────────▶│
  │                      {"roomUrl", "sessionId"}     │
  │◀──────────────────────────────────────────────────│
  │ POST /auto/room/{id}/join {"secret": "…"}         │
  │──────────────────────────────────────────────────▶│
  │                      {"session_token", …}         │
  │◀──────────────────────────────────────────────────│
  │ WSS /compose/webrtc/p2p, an offer with sendrecv   │
  │ audio: the microphone                             │
  │──────────────────────────────────────────────────▶│
  │    START, {"conversation": {"state" …}}, captions │
  │◀──────────────────────────────────────────────────│`,
  },
  {
    title: 'A session with two connections: an agent and a viewer',
    text: `
agent's server                                      server
  │ POST /sessions {"faceId": "ava"}, with the key    │
  │──────────────────────────────────────────────────▶│
  │   {"sessionId", "agentUrl", "viewerUrl", …}       │
  │◀──────────────────────────────────────────────────│
  │ WSS agentUrl: /sessions/agent?session_token=…     │
  │──────────────────────────────────────────────────▶│
  │ gives viewerUrl to its page                       │
  │                                                   │
page                                                  │
  │ POST viewerUrl, an SDP offer (WHEP)               │
  │──────────────────────────────────────────────────▶│
  │                201, Location, ETag, the answer    │
  │◀──────────────────────────────────────────────────│
  │◀═══════════════ ICE, DTLS, media ════════════════▶│
agent's server                                        │
  │     {"type": "viewer", "connected": true}         │
  │◀──────────────────────────────────────────────────│
  │ PCM16, then {"type": "flush", "id": "reply-1"}    │
  │──────────────────────────────────────────────────▶│
  │     {"type": "flushed", "id": "reply-1", …}       │
  │◀──────────────────────────────────────────────────│
  │ {"type": "interrupt"}                             │
  │──────────────────────────────────────────────────▶│
  │     {"type": "interrupted", "heardMs": 1240, …}   │
  │◀──────────────────────────────────────────────────│`,
  },
  {
    title: 'A connection that is lost',
    text: `
client                                              server
  │ (the socket closes without STOP or ERROR)         │
  │ WSS /compose/webrtc/p2p with the same token       │
  │──────────────────────────────────────────────────▶│
  │        the new connection takes the session over; │
  │        beside a live one: ERROR SESSION_IN_USE    │
  │◀──────────────────────────────────────────────────│`,
  },
];

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
const code = (text: string): string => `<code>${escape(text)}</code>`;

/** A table whose first column is in code style. Cells are HTML. */
function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const head = heads.map((cell) => `<th scope="col">${cell}</th>`).join('');
  const body = rows
    .map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`)
    .join('\n');
  return `<div class="table" tabindex="0"><table><thead><tr>${head}</tr></thead>
<tbody>${body}</tbody></table></div>`;
}

const reasons = (word: string, table_: Readonly<Record<string, string>>): string =>
  table(
    [word, 'what it says, what to do'],
    Object.entries(table_).map(([reason, advice]) => [
      code(`${word} ${reason}`.trim()),
      escape(advice),
    ]),
  );

const clientRows = Object.entries(CLIENT_MESSAGES).map(
  ([kind, { word, frames, summary, rest }]) => [
    code(
      [
        word ?? (rest === 'json' ? '{"type": "offer", "sdp": "…"}' : ''),
        rest === 'audio' ? 'bytes' : '',
      ]
        .join(' ')
        .trim(),
    ),
    kind,
    frames.join(', '),
    escape(summary),
  ],
);

const commandRows = Object.entries(COMMANDS).map(([type, { summary, example }]) => [
  code(JSON.stringify({ type, ...example })),
  escape(summary),
]);

const serverRows = (Object.keys(SERVER_MESSAGES) as ServerMessage['type'][]).map((type) => {
  const { summary, sockets } = SERVER_MESSAGES[type];
  const plain = plainText(exampleOf(type));
  return [
    plain === undefined ? 'none' : code(plain),
    code(eventText(exampleOf(type), 1_767_225_600_000)),
    sockets.join(', '),
    escape(summary),
  ];
});

const queryRows = Object.entries(SOCKET_QUERY.shape).map(([name, schema]) => [
  code(name),
  schema.isOptional() ? 'no' : 'yes',
  escape(schema.meta()?.['description'] as string),
]);

/** The page at /docs/protocol. */
export const PROTOCOL_PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Mouthpiece: the WebSocket protocol</title>
    <link rel="icon" href="/icon.svg">
    <link rel="stylesheet" href="/docs/protocol.css">
  </head>
  <body>
    <main>
      <h1>The WebSocket protocol</h1>
      <p>
        What a live session says, both ways. For programs the same is at
        <a href="/asyncapi.json">/asyncapi.json</a> (AsyncAPI 3). The REST API is at
        <a href="/docs">/docs</a>.
      </p>
      <h2>Sockets</h2>
      ${table(
        ['address', 'what it is'],
        Object.values(SOCKETS).map(({ address, summary }) => [code(address), escape(summary)]),
      )}
      ${table(['parameter', 'needed', 'meaning'], queryRows)}
      <p>
        A refused token is told with <code>ERROR</code> on the open socket, not by a failed
        handshake. The server ends a session with <code>STOP</code> or <code>ERROR</code> before it
        closes the socket: a socket that closes without them was lost, and the same token connects
        again. WebSocket pings of the server keep the socket alive. Clients ignore messages that
        they do not know.
      </p>
      <h2>Sequences</h2>
      ${SEQUENCES.map(
        ({ title, text }) => `<h3>${title}</h3>
      <pre tabindex="0" role="img" aria-label="${title}: sequence">${escape(text.trimStart())}</pre>`,
      ).join('\n')}
      <h2>What a client sends</h2>
      ${table(['message', 'name', 'frames', 'meaning'], clientRows)}
      <h3>Commands</h3>
      <p>
        Text messages in JSON, on every socket. Their replies are events: a socket in the plain form
        is told none. A command with wrong fields is answered with <code>rejected</code>.
      </p>
      ${table(['command', 'meaning'], commandRows)}
      <p>Anything else is ignored, and counted.</p>
      <h2>What the server sends</h2>
      <p>
        Plain by default. With <code>events=json</code> in the query, every message is one JSON
        object with its <code>type</code> and the time <code>at</code> which it was sent (Unix time
        of the server in milliseconds).
      </p>
      ${table(['plain', 'events=json', 'sockets', 'what it says, what to do'], serverRows)}
      <h2>Captions, words and visemes</h2>
      <p>
        Speech comes as sound, and the server recognises no words in it: what was said is known only
        where a text came with the sound.
      </p>
      <ul>
        <li>
          In a conversation the server has the text: <code>conversation</code> tells captions, those
          of the face word by word as they are heard.
        </li>
        <li>
          An agent sends the alignment of its voice with <code>words</code>, and is told
          <code>word</code> when each is heard; so is the viewer of POST /sessions. Without times
          there are no words.
        </li>
        <li>
          Visemes and blend shapes are known of every speech: <code>motion=visemes</code>,
          <code>motion=arkit</code> or <code>motion=all</code> with <code>events=json</code>. They
          carry the RTP timestamp of their frame, which a page compares with
          <code>requestVideoFrameCallback</code>. Visemes tell what the mouth does: sounds that look
          alike (p, b and m; t, d and n) are not told apart for certain. Their times are held to
          those of a synthesised voice: half of the closed lips are within 10 ms of their sound, nine
          in ten within 25 ms; <code>word</code> comes within 30 ms of when its sound is sent.
        </li>
        <li>In rooms of LiveKit, transcriptions are the agent's own: the server passes none on.</li>
      </ul>
      <h2>Reasons</h2>
      <h3>RATE</h3>
      ${reasons('RATE', RATE_REASONS)}
      <h3>CLOSING</h3>
      ${reasons('CLOSING', CLOSING_REASONS)}
      <h3>STOP</h3>
      ${reasons('STOP', STOP_REASONS)}
      <h3>ERROR</h3>
      ${table(
        ['code', 'what it says', 'what to do'],
        (Object.keys(SOCKET_ERRORS) as (keyof typeof SOCKET_ERRORS)[]).map((name) => [
          code(name),
          escape(ERRORS[name].message),
          RETRY[SOCKET_ERRORS[name]],
        ]),
      )}
    </main>
  </body>
</html>
`;

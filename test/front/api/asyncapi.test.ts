// The document and the chapter of the sessions' WebSockets: they hold every message and reason of
// the code, and what the code writes is what they say.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { z } from 'zod';
import { ERRORS } from '../../../src/base/errors.ts';
import { SESSION_ENDS } from '../../../src/base/session-ends.ts';
import { SOCKET_ERRORS, type SocketErrorCode } from '../../../src/base/socket-errors.ts';
import { asyncApiDocument, exampleOf } from '../../../src/front/api/asyncapi.ts';
import { PROTOCOL_PAGE } from '../../../src/front/api/protocol-page.ts';
import {
  CLOSING_REASONS,
  RATE_REASONS,
  SERVER_MESSAGES,
  STOP_REASONS,
  type ServerMessage,
  eventText,
  plainText,
} from '../../../src/front/sessions/server-messages.ts';
import { COMMANDS } from '../../../src/front/sessions/commands.ts';
import { CLIENT_MESSAGES, parseClientMessage } from '../../../src/front/sessions/wire-protocol.ts';

interface Message {
  readonly contentType: string;
  readonly payload: { readonly pattern?: string };
}
interface Channel {
  readonly address: string;
  readonly messages: Record<string, { readonly $ref: string }>;
}
const document = asyncApiDocument('1.2.3', 'https://media.example') as unknown as {
  readonly servers: { readonly this: { readonly host: string; readonly protocol: string } };
  readonly channels: Record<string, Channel>;
  readonly components: { readonly messages: Record<string, Message> };
};
const { messages } = document.components;
const types = Object.keys(SERVER_MESSAGES) as ServerMessage['type'][];

/** @throws when the text is not what the document says of the message */
function check(name: string, text: string): void {
  const { contentType, payload } = messages[name]!;
  const value: unknown = contentType === 'application/json' ? JSON.parse(text) : text;
  z.fromJSONSchema(payload).parse(value);
}

/** Every message with every reason and code that the tables have. */
const everything: ServerMessage[] = [
  ...types.map(exampleOf),
  ...(Object.keys(RATE_REASONS) as (keyof typeof RATE_REASONS)[]).map(
    (reason) => ({ type: 'rate', reason }) as const,
  ),
  ...(Object.keys(CLOSING_REASONS) as (keyof typeof CLOSING_REASONS)[]).map(
    (reason) => ({ type: 'closing', reason, seconds: 0 }) as const,
  ),
  ...Object.keys(STOP_REASONS).map((reason) => ({ type: 'stopped', reason }) as const),
  ...(Object.keys(SOCKET_ERRORS) as SocketErrorCode[]).map(
    (code) => ({ type: 'error', code, message: ERRORS[code].message }) as const,
  ),
];

test('what the server writes, in both forms, is what the document says', () => {
  for (const message of everything) {
    const plain = plainText(message);
    if (plain !== undefined) {
      check(message.type, plain);
    }
    check(`${message.type}Event`, eventText(message, 1.5));
  }
  assert.throws(() => check('rate', 'RATE because'), 'an unknown reason');
  assert.throws(() => check('errorEvent', '{"type":"error","at":1,"code":"NO_SUCH_CODE"}'));
});

test('the chapter has a row for every message, reason and code', () => {
  const has = (text: string): void => {
    const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
    assert.ok(PROTOCOL_PAGE.includes(`<code>${escaped}</code>`), text);
  };
  for (const type of types) {
    has(eventText(exampleOf(type), 1_767_225_600_000));
    const plain = plainText(exampleOf(type));
    if (plain !== undefined) {
      has(plain);
    }
  }
  for (const reason of Object.keys(STOP_REASONS)) {
    has(`STOP ${reason}`.trim());
  }
  for (const reason of Object.keys(RATE_REASONS)) {
    has(`RATE ${reason}`);
  }
  for (const code of Object.keys(SOCKET_ERRORS)) {
    has(code);
  }
  for (const { error, stop } of Object.values(SESSION_ENDS)) {
    assert.ok(stop === undefined || stop.reason in STOP_REASONS);
    assert.ok(error === undefined || error in SOCKET_ERRORS);
  }
});

test('what the document says a client may send is understood', () => {
  const bytes = (text: string): ArrayBuffer => new TextEncoder().encode(text).buffer;
  const sent: Record<keyof typeof CLIENT_MESSAGES, string> = {
    offer: '{"type":"offer","sdp":"v=0"}',
    audio: 'some bytes',
    playImmediate: `${CLIENT_MESSAGES.playImmediate.word}some bytes`,
    skip: CLIENT_MESSAGES.skip.word,
    done: CLIENT_MESSAGES.done.word,
    ping: `${CLIENT_MESSAGES.ping.word} 1`,
  };
  for (const [kind, text] of Object.entries(sent)) {
    const { frames } = CLIENT_MESSAGES[kind as keyof typeof CLIENT_MESSAGES];
    for (const frame of frames) {
      assert.equal(parseClientMessage(bytes(text), frame === 'binary').kind, kind);
    }
    if (messages[kind]!.contentType !== 'application/octet-stream') {
      check(kind, text);
    }
  }
});

test('what the document says of a command is understood, and a wrong one is told', () => {
  const bytes = (text: string): ArrayBuffer => new TextEncoder().encode(text).buffer;
  for (const type of Object.keys(COMMANDS) as (keyof typeof COMMANDS)[]) {
    const text = JSON.stringify({ type, ...COMMANDS[type].example });
    check(`${type}Command`, text);
    const parsed = parseClientMessage(bytes(text), false, false);
    assert.ok(parsed.kind === 'command' && parsed.command.type === type, text);
    const escaped = text.replaceAll('"', '&quot;');
    assert.ok(PROTOCOL_PAGE.includes(`<code>${escaped}</code>`), text);
  }
  const wrong = parseClientMessage(bytes('{"type":"gaze","x":2,"y":0}'), false);
  assert.ok(
    wrong.kind === 'wrongCommand' && wrong.problem.startsWith('x: '),
    JSON.stringify(wrong),
  );
  assert.equal(parseClientMessage(bytes('{"type":"wave"}'), false).kind, 'ignored');
  assert.equal(parseClientMessage(bytes('{"type":'), false).kind, 'ignored');
});

test('references resolve, and each socket has its messages', () => {
  const text = JSON.stringify(document);
  for (const [, pointer = ''] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    let value: unknown = document;
    for (const key of pointer.split('/')) {
      value = (value as Record<string, unknown>)[key];
    }
    assert.ok(value !== undefined, pointer);
  }
  const { p2p, livekit, agent } = document.channels as Record<string, Channel> & {
    p2p: Channel;
    livekit: Channel;
    agent: Channel;
  };
  assert.ok('offer' in p2p.messages && !('offer' in livekit.messages));
  assert.ok('room' in livekit.messages && !('room' in p2p.messages));
  assert.ok('viewerEvent' in agent.messages && !('viewerEvent' in p2p.messages));
  assert.ok('ackEvent' in agent.messages && !('ack' in agent.messages));
  const known = new Set([p2p, livekit, agent].flatMap((each) => Object.keys(each.messages)));
  assert.deepEqual([...known].sort(), Object.keys(messages).sort());
  assert.deepEqual(document.servers.this, { host: 'media.example', protocol: 'wss' });
});

/** Where the words of the protocol may stand in the code. */
const MAY_HOLD_WORDS = [
  'front/sessions/server-messages.ts',
  'front/api/protocol-page.ts',
  'front/http/socket.ts', // the words of sockets whose handlers have none
];

test('no other file writes a message by hand', () => {
  const src = path.resolve(import.meta.dirname, '../../../src');
  const word = /['"`](?:START|SPEAK|SILENT|ACK|RATE|CLOSING|STOP|ERROR)(?:['"`]| \$| [a-z_]+['"`])/;
  const found = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => /^(?:front|base|talk|worker|link)\/.*\.ts$/.test(file))
    .filter((file) => !MAY_HOLD_WORDS.includes(file))
    .filter((file) => word.test(readFileSync(path.join(src, file), 'utf8')));
  assert.deepEqual(found, []);
});

// What the main thread reads of strangers' texts: 64 kB of the worst take 5 ms at most, and what is
// not looked at costs next to nothing.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'vitest';
import { sleep } from '../../src/base/time.ts';
import { jsonShape } from '../../src/base/json.ts';
import { autoRoutes } from '../../src/front/api/auto.ts';
import { composeRoutes } from '../../src/front/api/compose.ts';
import { checkContentType, parseJson } from '../../src/front/http/body.ts';
import { planFileResponse, type FileSource } from '../../src/front/http/file-response.ts';
import { json } from '../../src/front/http/reply.ts';
import type { Route } from '../../src/front/http/route.ts';
import { Router } from '../../src/front/http/router.ts';
import { check, ValidationError } from '../../src/front/http/validate.ts';
import { parseClientMessage } from '../../src/front/sessions/wire-protocol.ts';
import { inspectAudio } from '../../src/jobs/video/audio/open-audio.ts';
import { native } from '../../src/native/addon.ts';
import { isWithin, shortestMs } from '../harness/machine.ts';
import { serve } from './http/server.ts';

const SIZE = 64 * 1024;
const LIMIT_MS = 5;
/** `text` again and again, SIZE characters in all, `end` included. */
const filled = (text: string, start = '', end = ''): string =>
  start + text.repeat(Math.floor((SIZE - start.length - end.length) / text.length)) + end;
const listed = (make: (index: number) => string, start: string, end: string): string => {
  const items: string[] = [];
  for (let length = start.length + end.length, index = 0; ; index++) {
    const item = make(index);
    length += item.length + 1;
    if (length > SIZE) {
      return start + items.join(',') + end;
    }
    items.push(item);
  }
};

function assertFast(name: string, work: () => unknown): void {
  const tookMs = shortestMs(() => {
    try {
      work();
    } catch (error) {
      if (!(error instanceof Error)) {
        throw error;
      }
    }
  });
  assert.ok(isWithin(tookMs, LIMIT_MS), `${name}: ${tookMs.toFixed(1)} ms`);
}

const JSON_BODIES: Readonly<Record<string, string>> = {
  numbers: listed(() => '1', '{"originAllowList":[', ']}'),
  'empty texts': listed(() => '""', '{"originAllowList":[', ']}'),
  'objects of different shapes': listed((index) => `{"k${index}":0}`, '{"originAllowList":[', ']}'),
  'fields of different names': listed((index) => `"k${index}":0`, '{', '}'),
  'names that are numbers': listed((index) => `"${index * 65_536}":0`, '{', '}'),
  depth: `{"created_at":${'['.repeat(SIZE / 2 - 20)}${']'.repeat(SIZE / 2 - 20)}}`,
  'depth of objects': filled('{"a":'),
  'one name': listed(() => '"a":0', '{', '}'),
  'a host in foreign letters': filled('\u00fc.', '{"face_id":"ava","llm_endpoint":"http://', '"}'),
  'a long foreign host': filled('\u00fc', '{"face_id":"ava","llm_endpoint":"http://', '"}'),
  'a path of dots': filled('/../', '{"face_id":"ava","llm_endpoint":"http://a', '"}'),
  blanks: filled(' ', '{"face_id":"ava","name":"', '"}'),
  escapes: filled('\\u0000', '{"face_id":"ava","name":"', '"}'),
  'a number of many figures': filled('1', '{"expiryStamp":', '}'),
};

const none = {} as never;
const routes = [...autoRoutes(none), ...composeRoutes({ ...{ models: [] } } as never)].filter(
  (route) => route.body?.kind === 'json',
);

test('JSON bodies: parsed and checked', () => {
  assert.ok(routes.length >= 4);
  for (const [name, text] of Object.entries(JSON_BODIES)) {
    const bytes = Buffer.from(text);
    for (const { method, path, body } of routes) {
      assertFast(`${method} ${path}: ${name}`, () =>
        check(body!.schema, 'body', parseJson(bytes), []),
      );
    }
  }
});

test('a JSON body with too many values is refused with a message', () => {
  assert.throws(
    () => parseJson(Buffer.from(listed(() => '1', '[', ']'))),
    (error: unknown) => {
      assert.ok(error instanceof ValidationError);
      assert.match(
        error.issues[0]?.msg ?? '',
        /too many values \(over 5000\)\. Send only the fields of this path/,
      );
      return true;
    },
  );
  assert.equal(
    (parseJson(Buffer.from(JSON.stringify(Array(4000).fill(1)))) as unknown[]).length,
    4000,
  );
  const issues: { readonly msg: string }[] = [];
  const agent = routes.find((route) => route.path === '/auto/agent');
  check(
    agent?.body?.schema,
    'body',
    { face_id: 'ava', llm_endpoint: `http://a/${'a'.repeat(2048)}` },
    issues as never,
  );
  check(agent?.body?.schema, 'body', { face_id: 'ava', llm_endpoint: 'ftp://a' }, issues as never);
  check(agent?.body?.schema, 'body', { face_id: 'ava', llm_endpoint: 'http://' }, issues as never);
  check(
    agent?.body?.schema,
    'body',
    { face_id: 'ava', llm_endpoint: 'https://llm.example:8443/v1?a=b' },
    issues as never,
  );
  assert.deepEqual(
    issues.map(({ msg }) => /2048|Invalid URL/.exec(msg)?.[0]),
    ['2048', 'Invalid URL', 'Invalid URL'],
  );
});

test('the shape of a JSON text is that of its values', () => {
  assert.deepEqual(jsonShape(Buffer.from('{"a": [1, "b,[{\\", c"], "d": {}}')), {
    longestString: 9,
    marks: 5,
  });
  assert.deepEqual(jsonShape(Buffer.from('"abc')), { longestString: 0, marks: 0 });
});

test('headers, paths and queries', () => {
  const source = { sizeBytes: 1000, etag: '"x"', modifiedMs: 0 } as FileSource;
  const texts = [
    ' ',
    'a',
    ';',
    '; ',
    '; boundary=',
    ';boundary="',
    '; boundary=a ',
    'a+',
    'a-',
    '1',
    '1-',
    ', ',
    'W/"',
    '"x",',
    '%41',
    '/',
    '//a',
    '&',
    'a&',
    'a=&',
    '=',
    '%',
    '+',
    '\u00ff',
  ];
  const router = new Router(
    ['/a/{b}', '/a/{b}/c', '/{a}/{b}/{c}', '/x'].map((path) => ({ method: 'GET', path }) as Route),
  );
  for (const text of texts) {
    for (const start of [
      '',
      'bytes=',
      'application/',
      'multipart/form-data',
      'multipart/form-data; boundary=',
    ]) {
      const header = filled(text, start);
      assertFast(`JSON content type ${header.slice(0, 40)}`, () => {
        checkContentType({ kind: 'json' }, header);
      });
      assertFast(`multipart content type ${header.slice(0, 40)}`, () => {
        checkContentType({ kind: 'multipart' }, header);
      });
      assertFast(`range ${header.slice(0, 40)}`, () =>
        planFileResponse(source, header, header, header),
      );
    }
    assertFast(`path ${text}`, () => router.find('GET', filled(text, '/a/')));
    assertFast(`query ${text}`, () => Object.fromEntries(new URLSearchParams(filled(text))));
  }
});

test('text messages on the socket of a session', () => {
  const encoder = new TextEncoder();
  const texts = {
    ...JSON_BODIES,
    letters: filled('a'),
    'blanks alone': filled(' '),
    pings: filled('ping '),
    'a ping of blanks': filled(' ', 'ping'),
    zeros: filled('\0'),
    'an offer of escapes': filled('\\u0061', '{"type":"offer","sdp":"', '"}'),
    'an offer of line ends': filled('\\r\\n', '{"type":"offer","sdp":"', '"}'),
    'offers of different shapes': listed(
      (index) => `{"k${index}":0}`,
      '{"type":"offer","sdp":"v=0","more":[',
      ']}',
    ),
  };
  for (const [name, text] of Object.entries(texts)) {
    const message = encoder.encode(text).buffer;
    for (const isBinary of [false, true]) {
      assertFast(name, () => parseClientMessage(message, isBinary));
    }
  }
  assert.equal(
    parseClientMessage(encoder.encode(texts['offers of different shapes']).buffer, false).kind,
    'ignored',
  );
});

test('WAV files that are inspected on the main thread', async () => {
  const wav = (chunks: Buffer): Buffer =>
    Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE', 'latin1'), chunks]);
  const inputs = {
    'empty chunks': wav(Buffer.alloc(4 * SIZE)),
    names: wav(Buffer.alloc(4 * SIZE, 'LIST\0\0\0\0')),
  };
  for (const [name, bytes] of Object.entries(inputs)) {
    let tookMs = Infinity;
    for (let run = 0; run < 20; run++) {
      const startMs = native.threadCpuMs();
      await assert.rejects(
        inspectAudio({ bytes, format: 'wav', rate: 16_000, channels: 1 }),
        /holds no audio/,
      );
      tookMs = Math.min(tookMs, native.threadCpuMs() - startMs);
    }
    assert.ok(
      isWithin(tookMs, LIMIT_MS),
      `${name}: ${tookMs.toFixed(1)} ms for ${bytes.length} bytes`,
    );
  }
});

test('a query of a hundred thousand parameters does not reach a handler', async () => {
  const path = '/echo';
  const echo = {
    method: 'GET',
    path,
    auth: 'none',
    tag: '',
    summary: '',
    responses: {},
    handler: () => json({}),
  };
  const http = await serve([echo as unknown as Route]);
  try {
    assert.equal((await fetch(`${http.url}${path}?${'a=1&'.repeat(500)}`)).status, 200);
    const query = Array.from({ length: 100_000 }, (_unused, index) => `a${index}=1`).join('&');
    const status = await fetch(`${http.url}${path}?${query}`).then(
      (reply) => reply.status,
      () => 'closed',
    );
    assert.ok(status === 431 || status === 'closed', `it was answered with ${status}`);
    assert.equal(http.requests.length, 1);
  } finally {
    await http.close();
  }
});

test('a request line that arrives in several reads may be as long as that of a LiveKit client', async () => {
  const http = await serve([]);
  const statusOf = async (chars: number): Promise<string> => {
    const socket = net.connect(Number(new URL(http.url).port), '127.0.0.1').setNoDelay(true);
    const answered = once(socket, 'data');
    const head = `GET /nothing?${'x'.repeat(chars)} HTTP/1.1\r\nhost: x\r\n\r\n`;
    for (let at = 0; at < head.length; at += 1400) {
      socket.write(head.slice(at, at + 1400));
      await sleep(5);
    }
    const [data] = (await answered) as [Buffer];
    socket.destroy();
    return data.toString().slice(9, 12);
  };
  try {
    assert.equal(await statusOf(12_000), '404');
    assert.equal(await statusOf(20_000), '431');
  } finally {
    await http.close();
  }
});

// Requests against the HTTP layer: valid, refused and hostile ones.
import assert from 'node:assert/strict';
import net from 'node:net';
import { afterAll, beforeAll, test } from 'vitest';
import { sleep } from '../../../src/base/time.ts';
import { listen } from '../../../src/front/http/listener.ts';
import { content, serveExamples } from './example-routes.ts';
import { raw, type TestHttp } from './server.ts';

let server: TestHttp;
beforeAll(async () => {
  server = await serveExamples();
});
afterAll(() => server.close());

const post = (
  target: string,
  body: BodyInit,
  headers: Record<string, string> = { 'content-type': 'application/json' },
): Promise<Response> => fetch(server.url + target, { method: 'POST', body, headers });

test('a valid body reaches the handler without its unknown fields', async () => {
  const reply = await post('/echo', JSON.stringify({ text: 'ä', other: 1 }));
  assert.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.deepEqual(await reply.json(), { text: 'ä' });
});

for (const [what, body, expected] of [
  ['a missing field', '{}', [['body.text', 'missing']]],
  [
    'several wrong fields, one of them deep',
    '{"text":1,"deep":{"n":1.5}}',
    [
      ['body.text', 'string_type'],
      ['body.deep.n', 'int_type'],
    ],
  ],
  ['a body that is not an object', '[]', [['body', 'object_type']]],
  ['null', 'null', [['body', 'object_type']]],
  ['malformed JSON', '{"text":', [['body', 'json_invalid']]],
  ['nothing', '', [['body', 'json_invalid']]],
  [
    'bytes that are not UTF-8',
    Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]),
    [['body', 'json_invalid']],
  ],
] as const) {
  test(`${what} is a validation error that names it`, async () => {
    const reply = await post('/echo', body as BodyInit);
    assert.equal(reply.status, 422);
    const { detail } = (await reply.json()) as {
      detail: { loc: string[]; type: string; msg: string }[];
    };
    assert.deepEqual(
      detail.map(({ loc, type }) => [loc.join('.'), type]),
      expected,
    );
    assert.ok(
      detail.every(
        ({ msg, loc }) => msg.length > 0 && loc.every((part) => typeof part === 'string'),
      ),
    );
  });
}

test('issues of path, query and body are in one reply', async () => {
  const reply = await fetch(`${server.url}/item/${'x'.repeat(11)}?n=9`);
  assert.deepEqual(
    ((await reply.json()) as { detail: { loc: string[] }[] }).detail.map(({ loc }) =>
      loc.join('.'),
    ),
    ['path.id', 'query.n'],
  );
});

test('a key is read from any accepted header and checked before the body', async () => {
  assert.equal(
    (
      await post('/private', '{"n":1}', {
        'content-type': 'application/json',
        'x-service-api-key': 'right',
      })
    ).status,
    200,
  );
  assert.equal(
    (
      await post('/private', '{"n":1}', {
        'content-type': 'application/json',
        'X-Other-Key': 'right',
      })
    ).status,
    200,
  );
  const refused = await post('/private', '{"n":"wrong"}', {
    'content-type': 'application/json',
    'x-service-api-key': 'wrong',
  });
  assert.equal(refused.status, 401);
  assert.equal(((await refused.json()) as { code: string }).code, 'INVALID_API_KEY');
});

test('a body over its limit is refused by its declared length or else by its bytes', async () => {
  const early = await raw(
    server.port,
    `POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99999999\r\n\r\n`,
    /\}$/,
  );
  assert.match(early, /^HTTP\/1\.1 413 /);
  assert.match(early, /"code":"BODY_TOO_LARGE"/);
  const chunk = `400\r\n${'x'.repeat(0x400)}\r\n`;
  const late = await raw(
    server.port,
    `POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: ` +
      `application/json\r\ntransfer-encoding: chunked\r\n\r\n${chunk}${chunk}`,
    /\}$/,
  );
  assert.match(late, /^HTTP\/1\.1 413 /);
});

test('an upload is parsed; another content type is refused', async () => {
  const form = new FormData();
  form.set('image', new File([content.subarray(0, 1000)], 'face.png', { type: 'image/png' }));
  form.set('note', 'hello');
  form.set('ignored', 'x');
  assert.deepEqual(
    await (await fetch(`${server.url}/upload`, { method: 'POST', body: form })).json(),
    { size: 1000, name: 'face.png', note: 'hello' },
  );
  assert.equal((await post('/upload', '{}')).status, 415);
  const missing = new FormData();
  missing.set('other', 'x');
  const reply = await fetch(`${server.url}/upload`, { method: 'POST', body: missing });
  assert.deepEqual(
    ((await reply.json()) as { detail: { loc: string[]; type: string }[] }).detail.map(
      ({ loc, type }) => `${loc.join('.')} ${type}`,
    ),
    ['body.image missing'],
  );
  assert.equal(
    (await post('/upload', 'nonsense', { 'content-type': 'multipart/form-data; boundary=x' }))
      .status,
    422,
  );
});

test('a multipart boundary may be quoted, and stand anywhere among the parameters', async () => {
  const body =
    '--a-b\r\nContent-Disposition: form-data; name=image; filename=x.png; ' +
    "filename*=utf-8''x.png\r\nContent-Type: image/png\r\n\r\n1234\r\n--a-b--\r\n";
  for (const type of [
    'multipart/form-data; boundary=a-b',
    'multipart/form-data; boundary="a-b"',
    'Multipart/Form-Data; charset=utf-8; Boundary=a-b',
    'multipart/form-data; boundary=a-b; charset=utf-8',
  ]) {
    const reply = await post('/upload', body, { 'content-type': type });
    assert.deepEqual(await reply.json(), { size: 4, name: 'x.png' }, type);
  }
  assert.equal(
    (await post('/upload', body, { 'content-type': 'multipart/form-data' })).status,
    415,
  );
});

test('404, 405 with Allow, 410 and 415 carry the Error object', async () => {
  for (const [method, target, status, code] of [
    ['GET', '/nowhere', 404, 'NOT_FOUND'],
    ['DELETE', '/echo', 405, 'METHOD_NOT_ALLOWED'],
    ['POST', '/removed', 410, 'GONE'],
    ['PATCH', '/item/1', 405, 'METHOD_NOT_ALLOWED'],
    ['GET', '/item/', 404, 'NOT_FOUND'],
    ['GET', '/item/%ff', 404, 'NOT_FOUND'],
  ] as const) {
    const reply = await fetch(server.url + target, { method });
    assert.equal(reply.status, status, `${method} ${target}`);
    const body = (await reply.json()) as { error: string; code: string };
    assert.equal(body.code, code);
    assert.ok(body.error.length > 0);
  }
  assert.equal(
    (await fetch(`${server.url}/echo`, { method: 'PUT' })).headers.get('allow'),
    'POST, OPTIONS',
  );
  assert.equal(
    (await fetch(`${server.url}/item/1`, { method: 'POST' })).headers.get('allow'),
    'GET, HEAD, OPTIONS',
  );
});

test('aliases match in any case and point to their successor; deprecated routes say so', async () => {
  const alias = await fetch(`${server.url}/OLDitem/AbC`);
  assert.deepEqual(await alias.json(), { id: 'AbC' });
  assert.match(alias.headers.get('deprecation') ?? '', /^@\d+$/);
  assert.equal(
    alias.headers.get('link'),
    '</item/AbC>; rel="successor-version"',
    'a link that can be followed',
  );
  assert.equal(
    (await fetch(`${server.url}/ITEM/1`)).status,
    404,
    'current names are matched exactly',
  );
  assert.ok((await fetch(`${server.url}/old`)).headers.get('deprecation'));
});

test('an unexpected failure is reported without details, with an id that is in the log too', async () => {
  const reply = await fetch(`${server.url}/breaks`, { headers: { 'x-request-id': 'my-id-1' } });
  assert.equal(reply.status, 500);
  const text = await reply.text();
  assert.ok(!/secret|passwd|stack|\.ts/.test(text), text);
  assert.equal((JSON.parse(text) as { request_id: string }).request_id, 'my-id-1');
  assert.match(server.logged(), /my-id-1.*secret detail|secret detail.*my-id-1/);
  assert.equal(reply.headers.get('x-request-id'), 'my-id-1');
});

test('a refusal over a limit carries Retry-After; a handler that hangs is ended', async () => {
  assert.equal((await fetch(`${server.url}/refuses`)).headers.get('retry-after'), '3');
  assert.equal((await fetch(`${server.url}/hangs`)).status, 500);
});

test('CORS: a preflight allows the key headers, and pages may read every reply', async () => {
  const reply = await fetch(`${server.url}/echo`, {
    method: 'OPTIONS',
    headers: { origin: 'https://example.org', 'access-control-request-method': 'POST' },
  });
  assert.equal(reply.status, 204);
  assert.match(
    reply.headers.get('access-control-allow-headers') ?? '',
    /content-type, x-service-api-key, x-other-key/,
  );
  assert.equal(reply.headers.get('access-control-allow-methods'), 'POST, OPTIONS');
  assert.equal(
    (await fetch(`${server.url}/nowhere`)).headers.get('access-control-allow-origin'),
    '*',
  );
  assert.equal((await fetch(`${server.url}/nowhere`, { method: 'OPTIONS' })).status, 404);
  assert.equal(
    (await fetch(`${server.url}/removed`, { method: 'OPTIONS' })).status,
    204,
    'a page may read why it was removed',
  );
});

test('invalid bytes, very large headers and pipelined requests', async () => {
  const hostile = [
    'NONSENSE\r\n\r\n',
    '\0'.repeat(5000),
    'GET  HTTP/1.1\r\n\r\n',
    `GET /item/1 HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`,
    `GET /item/1 HTTP/1.1\r\nhost: x\r\n${'a: b\r\n'.repeat(5000)}\r\n`,
    'POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n',
    'POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    `GET /${'z'.repeat(50_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
    'POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nZZZ\r\n',
    'GET /item/1 HTTP/1.1\r\n\r\n',
    'GET /item/1 HTTP/0.9\r\nhost: x\r\n\r\n',
  ];
  await Promise.all(
    hostile.map(async (bytes) => {
      const socket = net.connect(server.port, '127.0.0.1').on('error', () => {});
      socket.write(bytes, 'latin1');
      await sleep(100);
      socket.destroy();
    }),
  );
  const two = await raw(
    server.port,
    'GET /item/1 HTTP/1.1\r\nhost: x\r\n\r\nGET /item/2 HTTP/1.1\r\nhost: x\r\n\r\n',
    /"id":"2"\}/,
  );
  assert.ok(two.indexOf('"id":"1"') < two.indexOf('"id":"2"'));
  const odd = await fetch(`${server.url}/item/1`, { headers: { 'x-request-id': 'a b\tc;drop' } });
  assert.match(odd.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
});

test('a port that is taken is refused with the names of its settings', async () => {
  const { port, sockets } = server;
  await assert.rejects(
    listen({
      host: '127.0.0.1',
      port,
      settings: 'HOST and PORT',
      sockets,
      maxConnections: 1,
      context: {} as never,
    }),
    /Cannot listen on 127\.0\.0\.1:\d+: .* Set HOST and PORT\.$/,
  );
});

test('TLS files that cannot be used are named', async () => {
  const tls = {
    certFile: '/nowhere/none.pem',
    keyFile: '/nowhere/none.key',
  };
  const options = {
    host: '127.0.0.1',
    port: 0,
    settings: 'HOST and PORT',
    tls,
    sockets: server.sockets,
    maxConnections: 1,
  } as const;
  await assert.rejects(
    listen({ ...options, context: {} as never }),
    /TLS_CERT_FILE=.*none\.pem and TLS_KEY_FILE=.*none\.key\. Set both to readable PEM files/,
  );
});

test('every request is counted under its template', () => {
  assert.ok(
    server.requests.some(
      ({ route: label, method, status }) =>
        label === '/item/{id}' && method === 'GET' && status === 200,
    ),
  );
  assert.ok(server.requests.some(({ route: label, status }) => label === 'none' && status === 404));
  assert.ok(server.requests.every(({ route: label }) => !/\d/.test(label)));
});

test.each([
  'evil.example:99999',
  'a b',
  '[::1',
  'user:pw@evil.example',
  'evil.example?x=1',
  'a/b',
  '',
])('the Host header %j is refused, and no link is made of it', async (host) => {
  const request = `GET /item/a HTTP/1.1\r\nHost: ${host}\r\n`;
  const reply = await raw(server.port, `${request}\r\n`, /\}$/);
  assert.match(reply, /^HTTP\/1.1 400 [\s\S]*"INVALID_HOST"/);
  const handshake = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n`;
  const key = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';
  server.sockets.add('/host-checked', { open() {}, message() {}, close() {} });
  const target = 'GET /host-checked HTTP/1.1\r\n';
  const refused = await raw(server.port, `${target}Host: ${host}\r\n${handshake}${key}`, /\}$/);
  assert.match(refused, /^HTTP\/1.1 400 [\s\S]*"INVALID_HOST"/);
});

test.each([
  'localhost:8080',
  '127.0.0.1',
  '[::1]:8080',
  'media_server.internal.',
  'xn--bcher-kva.example',
])('the Host header %j is taken', async (host) => {
  const reply = await raw(server.port, `GET /item/a HTTP/1.1\r\nHost: ${host}\r\n\r\n`, /\}$/);
  assert.match(reply, /^HTTP\/1.1 200 /);
});

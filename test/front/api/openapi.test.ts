// The OpenAPI document describes the server: every route is in it, its examples run, and no request
// made from it, valid or not, breaks the server or the document.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, test } from 'vitest';
import * as fc from 'fast-check';
import { z } from 'zod';
import {
  type Json,
  type Parameter,
  anything,
  assemble,
  bodies,
  fitting,
  textOf,
} from './arbitrary-requests.ts';
import { startTestFront, stubVideos, type TestFront } from '../harness.ts';

interface Operation {
  summary: string;
  description: string;
  operationId: string;
  tags: string[];
  deprecated?: boolean;
  parameters: Parameter[];
  security: unknown[];
  requestBody?: { content: Record<string, { schema: Json; example?: unknown }> };
  responses: Record<string, { description: string; content?: Record<string, { schema?: Json }> }>;
}
interface Document {
  openapi: string;
  tags: { name: string; description: string }[];
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Json> };
}

let server: TestFront;
let document: Document;
beforeAll(async () => {
  server = await startTestFront({
    config: { MAX_QUEUED_JOBS: 2 },
    videos: ({ services }) => stubVideos((name) => services.blobs.open(name)),
  });
  document = (await (await server.call('/openapi.json', { key: undefined })).json()) as Document;
});
afterAll(() => server.close());

const operations = (): { method: string; path: string; operation: Operation }[] =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );

test('the README lists exactly the routes that are served', () => {
  const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
  const written = [...readme.matchAll(/^\| (GET|POST|PUT|PATCH|DELETE) `([^`]+)` \|/gm)].map(
    (match) => `${match[1]!} ${match[2]!}`,
  );
  assert.deepEqual(
    written.sort(),
    operations()
      .map(({ method, path }) => `${method} ${path}`)
      .sort(),
  );
});

test('the document holds exactly the routes that are served', () => {
  assert.equal(document.openapi, '3.1.0');
  assert.deepEqual(
    operations()
      .map(({ method, path }) => `${method} ${path}`)
      .sort(),
    server.routes.map(({ method, path }) => `${method} ${path}`).sort(),
  );
  assert.equal(
    new Set(operations().map(({ operation }) => operation.operationId)).size,
    operations().length,
  );
});

test('every path of the interface description is in the document', () => {
  const described = [
    'GET /history/sessions',
    'POST /compose/token',
    'POST /static/audio',
    'POST /faces/legacy',
    'POST /auto/agent',
    'PUT /auto/agent/{id}',
    'GET /auto/agents',
    'GET /compose/ice',
    'POST /integrations/livekit/agents',
    'GET /faces/legacy/generation_status',
    'GET /static/mp4',
    'GET /static/hls',
    'POST /auto/token',
    'POST /auto/start/{agent_id}',
    'POST /auto/start/configurable',
    'GET /auto/transcript/{session_id}',
  ];
  for (const name of described) {
    const [method = '', path = ''] = name.split(' ');
    const operation = document.paths[path]?.[method.toLowerCase()];
    assert.ok(operation, name);
    assert.equal(
      operation.deprecated === true,
      /^\/(?:auto|faces\/legacy)/.test(path),
      `${name}: deprecated`,
    );
  }
});

test('references resolve, path parameters are declared, and every schema can be read as JSON Schema', () => {
  const text = JSON.stringify(document);
  for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    assert.ok(document.components.schemas[name], name);
  }
  assert.ok(!text.includes('#/$defs/'));
  for (const { path, operation } of operations()) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    assert.deepEqual(
      operation.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name),
      inPath,
      path,
    );
    for (const { content } of Object.values(operation.responses)) {
      for (const { schema } of Object.values(content ?? {})) {
        if (schema) {
          z.fromJSONSchema(resolve(schema) as never);
        }
      }
    }
  }
});

test('what has a default is not required of a request', () => {
  const required: string[] = [];
  const look = (where: string, schema: unknown): void => {
    if (typeof schema !== 'object' || schema === null) {
      return;
    }
    const { required: names = [], properties = {} } = schema as {
      required?: string[];
      properties?: Record<string, Json>;
    };
    const defaulted = (name: string): boolean => 'default' in (properties[name] ?? {});
    required.push(...names.filter(defaulted).map((name) => `${where} ${name}`));
    for (const inner of Object.values(schema)) {
      look(where, inner);
    }
  };
  for (const { method, path, operation } of operations()) {
    const where = `${method} ${path}`;
    for (const { name, required: isRequired, schema } of operation.parameters) {
      const properties = { [name]: resolve(schema) };
      look(where, { properties, required: isRequired ? [name] : [] });
    }
    for (const { schema } of Object.values(operation.requestBody?.content ?? {})) {
      look(where, resolve(schema));
    }
  }
  assert.deepEqual(required, []);
});

test('each group of operations is described, and the server is named', async () => {
  const { tags, servers } = document;
  const used = new Set(operations().flatMap(({ operation }) => operation.tags));
  assert.deepEqual(tags.map(({ name }) => name).sort(), [...used].sort());
  assert.equal(new URL(servers[0]!.url, `${server.url}/openapi.json`).href, `${server.url}/`);
  const emotions = JSON.stringify(document.paths['/auto/agent']);
  assert.match(emotions, /"enum":\["neutral","happy"/);
});

test('operations are documented as linters of OpenAPI ask: redocly and spectral', () => {
  for (const { method, path, operation } of operations()) {
    const name = `${method} ${path}`;
    assert.ok(operation.summary.length > 0 && operation.description.length > 0, name);
    assert.match(operation.operationId, /^[A-Za-z0-9]+$/, name);
    assert.ok(Array.isArray(operation.security), name);
    const statuses = Object.keys(operation.responses);
    assert.ok(
      statuses.some((status) => /^[23]/.test(status)),
      `${name}: a success`,
    );
    assert.ok(
      statuses.some((status) => status.startsWith('4')),
      `${name}: a refusal`,
    );
    for (const [status, { description }] of Object.entries(operation.responses)) {
      // 422 lists fields, and a server that is not ready lists its checks.
      if (/^[45]/.test(status) && status !== '422' && path !== '/readyz') {
        assert.match(description, /\b[A-Z_]{4,}: /, `${name}: ${status} names no code`);
      }
    }
    for (const { name: parameter, description } of operation.parameters) {
      assert.ok((description ?? '').length > 0, `${name}: ${parameter} has no description`);
    }
    const body = operation.requestBody?.content['application/json'];
    if (body !== undefined) {
      assert.ok(body.example !== undefined, `${name}: an example`);
      z.fromJSONSchema(resolve(body.schema) as never).parse(body.example);
    }
  }
});

test('every example gets a success status', async () => {
  let ran = 0;
  for (const { method, path, operation } of operations()) {
    const example = operation.requestBody?.content['application/json']?.example;
    // Rooms need a link or a LiveKit server: their own tests join them.
    if (example === undefined || /livekit|\/join$/.test(path)) {
      continue;
    }
    ran++;
    let target = path;
    if (path === '/faces/{face_id}') {
      target = `/faces/${await uploadedFace()}`;
    }
    if (path === '/auto/agent/{id}') {
      const created = await server.call('/auto/agent', { json: { face_id: 'ava' } });
      target = `/auto/agent/${String(((await created.json()) as Json)['id'])}`;
    }
    const reply = await server.call(target, { method, json: example });
    assert.ok(reply.ok, `${method} ${path}: ${reply.status} ${await reply.text()}`);
  }
  assert.ok(ran >= 5);
});

test('the page at /docs loads its files from this server: versioned ones for a year', async () => {
  const page = await server.call('/docs', { key: undefined });
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  assert.equal(page.headers.get('cache-control'), 'no-cache');
  const html = await page.text();
  const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!);
  assert.ok(files.length >= 5, html);
  for (const address of files) {
    assert.match(address, /^\/[^/]/, 'another origin');
    const reply = await server.call(address, { key: undefined });
    assert.equal(reply.status, 200, address);
    assert.ok((await reply.arrayBuffer()).byteLength > 100, address);
    const isVersioned = /^\/docs\/\d+\.\d+\.\d+\//.test(address);
    if (address.startsWith('/docs/')) {
      assert.equal(
        reply.headers.get('cache-control'),
        isVersioned ? 'public, max-age=31536000, immutable' : 'no-cache',
        address,
      );
      const etag = reply.headers.get('etag') ?? '';
      const again = await server.call(address, {
        key: undefined,
        headers: { 'if-none-match': etag },
      });
      assert.equal(again.status, 304, address);
    }
  }
  assert.ok(files.some((address) => /^\/docs\/\d/.test(address)));
});

/** @returns the id of a face that was uploaded */
async function uploadedFace(): Promise<string> {
  const form = new FormData();
  const head = Buffer.from('\xff\xd8\xff', 'latin1');
  form.set('image', new File([head], 'face.jpg', { type: 'image/jpeg' }));
  const reply = await server.call('/faces', { method: 'POST', body: form });
  assert.equal(reply.status, 202, await reply.clone().text());
  return ((await reply.json()) as { id: string }).id;
}

/** References replaced by what they refer to. */
function resolve(schema: unknown): unknown {
  if (Array.isArray(schema)) {
    return schema.map(resolve);
  }
  if (typeof schema !== 'object' || schema === null) {
    return schema;
  }
  const { $ref, ...rest } = schema as Json;
  if (typeof $ref === 'string') {
    return resolve(document.components.schemas[$ref.split('/').pop() ?? '']);
  }
  return Object.fromEntries(Object.entries(rest).map(([name, inner]) => [name, resolve(inner)]));
}

test('no request, however wrong, breaks the server or its document', async () => {
  for (const { method, path, operation } of operations()) {
    const [contentType, content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
    const requests = fc.record({
      values: fc.record(
        Object.fromEntries(
          operation.parameters.map(({ name, schema }) => [
            name,
            fc.oneof(fitting(resolve(schema) as Json), anything),
          ]),
        ),
        {
          requiredKeys: operation.parameters
            .filter(({ required }) => required)
            .map(({ name }) => name),
        },
      ),
      body: content ? bodies(resolve(content.schema) as Json) : fc.constant(undefined),
      malformed: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    });
    await fc.assert(
      fc.asyncProperty(requests, async ({ values, body, malformed }) => {
        const { target, headers } = assemble(path, operation.parameters, values);
        const init: RequestInit = {
          method,
          headers: { ...headers, 'x-service-api-key': server.key },
          redirect: 'manual',
        };
        if (contentType === 'application/json') {
          init.body = malformed ? `${JSON.stringify(body) ?? ''}]` : (JSON.stringify(body) ?? '');
          Object.assign(init.headers as Json, { 'content-type': contentType });
        } else if (contentType) {
          const form = new FormData();
          form.set('image', new File([textOf((body as Json | undefined)?.['image'])], 'x'));
          init.body = form;
        }
        await checkReply(await fetch(server.url + target, init), operation, `${method} ${target}`);
      }),
      { numRuns: content ? 120 : 30, seed: 20_261_121, interruptAfterTimeLimit: 15_000 },
    );
  }
  assert.equal((await server.call('/healthz')).status, 200);
});

test('refusals before a handler runs, and partial files, are as documented', async () => {
  const expect = async (
    status: number,
    method: string,
    path: string,
    init: { body?: string; headers?: Record<string, string> } = {},
    target = path,
  ): Promise<void> => {
    const entry = operations().find((known) => known.method === method && known.path === path);
    assert.ok(entry, path);
    const reply = await fetch(server.url + target, {
      method,
      ...init,
      headers: { 'x-service-api-key': server.key, ...init.headers },
    });
    assert.equal(reply.status, status, target);
    await checkReply(reply, entry.operation, target);
  };
  await expect(415, 'POST', '/compose/token', {
    body: 'x',
    headers: { 'content-type': 'text/plain' },
  });
  await expect(413, 'POST', '/compose/token', {
    body: 'x'.repeat(70_000),
    headers: { 'content-type': 'application/json' },
  });
  await expect(401, 'POST', '/compose/token', {
    body: '{}',
    headers: { 'content-type': 'application/json', 'x-service-api-key': 'wrong' },
  });
  await expect(
    206,
    'GET',
    '/faces/{face_id}/preview',
    { headers: { range: 'bytes=0-1' } },
    '/faces/ava/preview',
  );
  await expect(
    304,
    'GET',
    '/faces/{face_id}/preview',
    { headers: { 'if-none-match': '*' } },
    '/faces/ava/preview',
  );
  await expect(
    416,
    'GET',
    '/faces/{face_id}/preview',
    { headers: { range: 'bytes=999999999-' } },
    '/faces/ava/preview',
  );
});

async function checkReply(reply: Response, operation: Operation, what: string): Promise<void> {
  const text = await reply.text();
  // A parameter may turn the path into one of another route, or of none: the reply is then not one
  // of this operation.
  if (reply.status === 404 || reply.status === 405) {
    assert.ok(JSON.parse(text));
    return;
  }
  const told = operation.responses[String(reply.status)];
  assert.ok(
    reply.status < 500 || (reply.status === 501 && /NOT_IMPLEMENTED/.test(text)),
    `${what}: ${reply.status} ${text}`,
  );
  assert.ok(
    told ?? reply.status === 501,
    `${what}: ${reply.status} is not in the document: ${text}`,
  );
  const schema = told?.content?.['application/json']?.schema;
  if (!schema) {
    return;
  }
  const result = z.fromJSONSchema(resolve(schema) as never).safeParse(JSON.parse(text));
  assert.ok(
    result.success,
    `${what}: ${reply.status} ${text} does not match: ${result.error?.message}`,
  );
}

// A request's head: path, query, and the headers that have a grammar. One line each.
import assert from 'node:assert/strict';
import { z } from 'zod';
import { ServiceError } from '../../../src/base/errors.ts';
import { parseQuery } from '../../../src/base/query.ts';
import { checkContentType, parseJson } from '../../../src/front/http/body.ts';
import { planFileResponse, type FileSource } from '../../../src/front/http/file-response.ts';
import { empty } from '../../../src/front/http/reply.ts';
import { route } from '../../../src/front/http/route.ts';
import { Router } from '../../../src/front/http/router.ts';
import {
  check,
  integerText,
  ValidationError,
  type ValidationIssue,
} from '../../../src/front/http/validate.ts';
import type { FuzzTarget } from '../engine/target.ts';

const FILE: FileSource = {
  sizeBytes: 1000,
  etag: '"an-etag"',
  modifiedMs: Date.UTC(2026, 0, 1),
  read: () => Promise.resolve(0),
  close: () => Promise.resolve(),
};
const handler = (): ReturnType<typeof empty> => empty(204);
const common = { summary: '', tag: '', auth: 'none', responses: {}, handler } as const;
const router = new Router(
  [
    route({
      ...common,
      method: 'GET',
      path: '/faces',
      aliases: [{ method: 'GET', path: '/getFaces' }],
    }),
    route({
      ...common,
      method: 'POST',
      path: '/auto/agent/{id}/session/{number}',
      aliases: [{ method: 'POST', path: '/Agent/{id}/{number}' }],
    }),
  ],
  [{ path: '/gone', reason: 'It went.' }],
);
const query = z.object({
  page: integerText({ min: 1, max: 1000 }).optional(),
  name: z.string().max(64).optional(),
});
const body = z.object({
  faceId: z.string().max(64),
  list: z
    .array(z.object({ word: z.string() }))
    .max(100)
    .optional(),
});
/** uWebSockets.js takes no longer head. */
const MAX_LINE_CHARS = 16_384;

const HEAD_LINES = 7;

/** The lines of the head; what follows them is the body. */
function splitHead(data: Buffer): { readonly lines: readonly string[]; readonly rest: Buffer } {
  const lines: string[] = [];
  let at = 0;
  while (lines.length < HEAD_LINES) {
    const end = data.indexOf(10, at);
    const line = data.toString('latin1', at, end < 0 ? data.length : end);
    lines.push(line.slice(0, MAX_LINE_CHARS));
    at = end < 0 ? data.length : end + 1;
  }
  return { lines, rest: data.subarray(at) };
}

export const target: FuzzTarget = {
  // JSON.parse takes 5 ms for 64 KiB of opening brackets, and a query of 4000 names takes 1.5 ms on
  // an idle machine; both are linear.
  budget: { leastMs: 4, per64KiBMs: 10 },
  words: [
    'bytes=',
    'bytes=-',
    'GET',
    'HEAD',
    'POST',
    '/faces',
    '/auto/agent/',
    '/session/',
    '/Agent/',
    'W/"an-etag"',
    '%25',
    '%ff&',
    '%',
    'page=',
    'application/json',
    '"list":[',
    '{"word":',
  ],
  run(data) {
    const { lines, rest } = splitHead(data);
    const [
      method = '',
      path = '',
      search = '',
      range = '',
      ifRange = '',
      ifNoneMatch = '',
      contentType = '',
    ] = lines;
    const plan = planFileResponse(FILE, range, ifRange, ifNoneMatch);
    assert.ok(
      Number.isSafeInteger(plan.start) &&
        Number.isSafeInteger(plan.length) &&
        plan.start >= 0 &&
        plan.length >= 0,
    );
    assert.ok(plan.start + plan.length <= FILE.sizeBytes, 'a range beyond the file');
    assert.ok(plan.status !== 206 || plan.length > 0, 'an empty part');
    for (const value of Object.values(plan.headers)) {
      assert.ok(/^[\t\x20-\x7e]*$/.test(value), 'a header that splits the response');
    }
    router.find(method, path);
    const issues: ValidationIssue[] = [];
    check(query, 'query', Object.fromEntries(parseQuery(search)), issues);
    for (const kind of ['json', 'multipart'] as const) {
      try {
        checkContentType({ kind }, contentType);
        if (kind === 'json') {
          check(body, 'body', parseJson(rest), issues);
        }
      } catch (error) {
        if (!(error instanceof ServiceError || error instanceof ValidationError)) {
          throw error;
        }
      }
    }
    assert.ok(
      issues.length <= 150 && JSON.stringify(issues).length <= 200_000,
      'an answer larger than its question',
    );
  },
};

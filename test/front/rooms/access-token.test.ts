// LiveKit tokens: signed with our key, valid now, and for nothing else.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'vitest';
import { signAccessToken, verifyAccessToken } from '../../../src/front/rooms/access-token.ts';

const KEY = { key: 'devkey', secret: 'secretsecretsecretsecretsecretsecret' };
const CLAIMS = { identity: 'viewer', video: { room: 'r', roomJoin: true } };
const NOW = 1_800_000_000;

test('a token of ours is valid until it expires', () => {
  const token = signAccessToken(KEY, CLAIMS, 60, NOW);
  assert.deepEqual(verifyAccessToken(token, KEY, NOW + 59), CLAIMS);
  assert.equal(verifyAccessToken(token, KEY, NOW + 60), undefined);
});

test('a token has the fields that LiveKit servers read', () => {
  const [header, body, signature] = signAccessToken(KEY, CLAIMS, 60, NOW).split('.');
  const read = (part: string | undefined): unknown =>
    JSON.parse(Buffer.from(part ?? '', 'base64url').toString());
  assert.deepEqual(read(header), { alg: 'HS256', typ: 'JWT' });
  assert.deepEqual(read(body), {
    iss: 'devkey',
    sub: 'viewer',
    nbf: NOW - 60,
    exp: NOW + 60,
    video: { room: 'r', roomJoin: true },
  });
  const expected = createHmac('sha256', KEY.secret).update(`${header}.${body}`).digest('base64url');
  assert.equal(signature, expected);
});

test('what is not signed with our key is refused', () => {
  const token = signAccessToken(KEY, CLAIMS, 60, NOW);
  const [header, body, signature] = token.split('.') as [string, string, string];
  const none = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
  const forged = Buffer.from(JSON.stringify({ iss: 'devkey', sub: 'x', exp: NOW * 2, video: {} }));
  for (const wrong of [
    '',
    '..',
    'x',
    token.slice(0, -1),
    `${token}.x`,
    `${none}.${body}.`,
    `${header}.${forged.toString('base64url')}.${signature}`,
    signAccessToken({ ...KEY, secret: 'another secret' }, CLAIMS, 60, NOW),
    signAccessToken({ ...KEY, key: 'another key' }, CLAIMS, 60, NOW),
    'x'.repeat(100_000),
  ]) {
    assert.equal(verifyAccessToken(wrong, KEY, NOW), undefined, wrong.slice(0, 40));
  }
});

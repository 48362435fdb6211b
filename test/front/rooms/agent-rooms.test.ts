// Who may send avatars into rooms, and how often.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ServiceError } from '../../../src/base/errors.ts';
import { AgentRooms } from '../../../src/front/rooms/agent-rooms.ts';
import { JoinLimits } from '../../../src/front/rooms/join-limits.ts';
import type { SessionGrant } from '../../../src/front/sessions/session-tokens.ts';

const CALLER = {
  path: '/integrations/livekit/agents',
  header: () => '',
  ip: '192.0.2.1',
  serverOrigin: 'https://media.example',
  localPort: 443,
};

const codeOf = async (work: () => unknown): Promise<string> => {
  try {
    await work();
    return '';
  } catch (error) {
    assert.ok(error instanceof ServiceError, String(error));
    return error.code;
  }
};

test('without a token no name is resolved; each key has its joins', async () => {
  const rooms = new AgentRooms({
    sessions: {
      openHeadless: () => Promise.reject(new ServiceError('SERVER_DRAINING')),
    },
    tokens: {
      find: (token) =>
        Promise.resolve(token === 'none' ? undefined : ({ keyId: token } as SessionGrant)),
    },
    hosts: [],
    videoCodec: 'vp8',
    meter: { joined() {}, failed() {}, dropped() {} },
  });
  const join = (sessionToken: string, livekitUrl: string): Promise<string> =>
    codeOf(() => rooms.join({ sessionToken, livekitToken: 'token', livekitUrl }, CALLER));
  assert.equal(await join('none', 'wss://nothing.invalid'), 'INVALID_SESSION_TOKEN');
  assert.equal(await join('one', 'wss://10.0.0.1'), 'LIVEKIT_URL_REFUSED');
  const codes = new Map<string, number>();
  for (let i = 0; i < 70; i++) {
    const code = await join('two', 'wss://1.1.1.1');
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  assert.ok(
    codes.get('SERVER_DRAINING')! >= 60 && codes.get('RATE_LIMITED')! >= 5,
    String([...codes]),
  );
  assert.equal(await join('three', 'wss://1.1.1.1'), 'SERVER_DRAINING');
});

test('a key has sixty joins a minute, whatever the others do', async () => {
  const limits = new JoinLimits();
  const take = (key: string, nowMs: number): Promise<string> =>
    codeOf(() => {
      limits.take(key, nowMs);
    });
  for (let i = 0; i < 60; i++) {
    assert.equal(await take('key', 0), '');
  }
  assert.equal(await take('key', 0), 'RATE_LIMITED');
  assert.equal(await take('other', 0), '');
  assert.equal(await take('key', 1000), '');
  assert.equal(await take('key', 1000), 'RATE_LIMITED');
  for (let i = 0; i < 20_000; i++) {
    limits.take(`key ${i}`, 1000); // only so many are kept
  }
});

// The thread of conversations as the main thread sees it: it dies, its conversations are told, and
// the next one gets a new thread. The process lives.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import { TalkThread } from '../../../src/front/talk/talk-thread.ts';
import type { FromTalk } from '../../../src/link/talk-messages.ts';
import { ROOT } from '../../harness/server.ts';
import { until } from '../../harness/until.ts';
import { type ProviderServer, startProviders } from '../../talk/provider-server.ts';
import { Person, specOf } from '../../talk/talk-thread.ts';

const isInstalled = existsSync(path.join(ROOT, 'scripts/talk/node_modules/.package-lock.json'));

describe.skipIf(!isInstalled)('the thread (needs scripts/talk: npm run setup)', () => {
  let providers: ProviderServer;
  let lostThreads = 0;
  const talk = new TalkThread(createLogger('silent'), () => {
    lostThreads++;
  });

  beforeAll(async () => {
    providers = await startProviders();
  });
  afterAll(async () => {
    await talk.stop();
    await providers.close();
  });

  function converse(sessionId: string): {
    readonly person: Person;
    readonly messages: FromTalk[];
    isLost: boolean;
  } {
    const person = new Person();
    const found = { person, messages: [] as FromTalk[], isLost: false };
    talk.open(
      {
        id: sessionId,
        receive: (message) => {
          found.messages.push(message);
        },
        lost: () => {
          found.isLost = true;
        },
      },
      specOf(person, providers.baseUrl, { sessionId, firstMessage: 'Welcome.' }),
    );
    return found;
  }
  const hasWelcomed = ({ messages }: { messages: FromTalk[] }): boolean =>
    messages.some((message) => message.type === 'item');

  test('a thread that is killed amid conversations is replaced, and nothing else is lost', async () => {
    await talk.start();
    const talking = ['a', 'b', 'c', 'd'].map(converse);
    await until(() => talking.every(hasWelcomed), 30_000);
    // Amid the runs of the detector's model: it would abort the process on the thread that ends.
    await talk.kill();
    assert.ok(talking.every(({ isLost }) => isLost));
    assert.equal(talk.size, 0);
    assert.equal(lostThreads, 1);
    await talk.start();
    const next = converse('e');
    await until(() => hasWelcomed(next), 30_000);
    for (const { person } of [...talking, next]) {
      person.close();
    }
    talk.close('e');
    await until(() => talk.size === 0);
  });
});

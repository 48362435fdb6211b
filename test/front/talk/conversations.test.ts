// Conversations as sessions hold them: which can be held again, and what their transcripts have.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import { newUuid } from '../../../src/base/ids.ts';
import type { EndReason } from '../../../src/base/session-ends.ts';
import { createConversationMeter } from '../../../src/front/talk/conversation-meter.ts';
import { Conversations } from '../../../src/front/talk/conversations.ts';
import type { StoredConversation, Transcript } from '../../../src/front/talk/conversation-store.ts';
import { TalkLibraryInstaller } from '../../../src/front/talk/library-installer.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';
import { ROOT } from '../../harness/server.ts';
import { until } from '../../harness/until.ts';
import { type ProviderServer, startProviders } from '../../talk/provider-server.ts';
import { Person, specOf } from '../../talk/talk-thread.ts';
import { type TestFront, startTestFront } from '../harness.ts';

const isInstalled = existsSync(path.join(ROOT, 'scripts/talk/node_modules/.package-lock.json'));
const WELCOME = 'Welcome to the house.';
const isClosed = { code: 'ROOM_CLOSED' };

describe.skipIf(!isInstalled)('conversations (needs scripts/talk: npm run setup)', () => {
  let front: TestFront;
  let providers: ProviderServer;
  let conversations: Conversations;
  const log = createLogger('silent');
  const person = new Person();

  const start = (): Conversations =>
    new Conversations({
      store: front.services.conversationStore,
      maxConversations: 4,
      isPreemptive: false,
      library: new TalkLibraryInstaller(ROOT, log),
      meter: createConversationMeter(new Metrics()),
      log,
    });
  beforeAll(async () => {
    [front, providers] = await Promise.all([startTestFront(), startProviders()]);
    conversations = start();
  });
  afterAll(async () => {
    person.close();
    await conversations?.close();
    await Promise.all([front?.close(), providers?.close()]);
  });

  async function create(): Promise<string> {
    const id = newUuid();
    const { languageModel, voice, recogniser } = specOf(person, providers.baseUrl);
    const conversation: StoredConversation = {
      id,
      ownerId: 'owner-1',
      keyId: 'key',
      keyName: 'test',
      agentId: '',
      agentName: '',
      faceId: 'ava',
      emotion: 'neutral',
      prompt: '',
      firstMessage: WELCOME,
      language: 'en',
      maxIdleSeconds: 300,
      maxLengthSeconds: 3600,
      createTranscript: true,
      originAllowList: [],
      providers: { languageModel, voice, recogniser },
    };
    await front.services.conversationStore.create(conversation);
    return id;
  }

  /** A session opens the conversation. @returns what it is told */
  async function open(id: string) {
    const held = await conversations.open(id);
    const captions: string[] = [];
    let state = '';
    held.begin({
      speechRing: person.rings.speechRing,
      send: (message) => {
        const { caption } = message.type === 'conversation' ? message : {};
        if (caption?.final === true) {
          captions.push(caption.text);
        }
      },
      setState: (given) => {
        state = given;
      },
      fail: assert.fail,
    });
    await until(() => state === 'listening', 30_000);
    return { captions, end: (reason: EndReason) => held.end(reason) };
  }
  /** One that hears the first message and ends. */
  async function hear(id: string, reason: EndReason): Promise<void> {
    const { end, captions } = await open(id);
    await until(() => captions.includes(WELCOME), 30_000);
    end(reason);
  }
  const written = (id: string): Promise<Transcript | undefined> =>
    front.services.conversationStore.transcript('owner-1', id);
  async function transcriptOf(id: string): Promise<Transcript> {
    await until(async () => (await written(id)) !== undefined);
    return (await written(id))!;
  }
  const textsOf = ({ items }: Transcript): string[] => items.map(({ text }) => text);

  test('a conversation that is over stays over, with its transcript', async () => {
    for (const reason of ['done', 'idle_limit', 'length_limit', 'deleted'] as const) {
      const id = await create();
      await hear(id, reason);
      await assert.rejects(conversations.open(id), isClosed, 'before its last words are written');
      const transcript = await transcriptOf(id);
      assert.deepEqual([transcript.endReason, textsOf(transcript)], [reason, [WELCOME]]);
      const find = () => front.services.conversationStore.find(id);
      await until(async () => (await find()) === undefined);
      await assert.rejects(conversations.open(id), isClosed);
      assert.deepEqual(await written(id), transcript);
    }
  });

  test('a page whose connection was lost goes on with the same conversation', async () => {
    const id = await create();
    await hear(id, 'peer_lost');
    const { end, captions } = await open(id);
    assert.equal(await written(id), undefined);
    end('done');
    const { endReason, items } = await transcriptOf(id);
    assert.deepEqual([endReason, items.length, captions], ['done', 1, []], 'it is greeted once');
  });

  test('a conversation whose server stopped goes on at another, in the same transcript', async () => {
    const id = await create();
    await hear(id, 'server_stopped');
    await conversations.close();
    const { startedAt, items, endReason } = await transcriptOf(id);
    assert.deepEqual([endReason, items.length], ['server_stopped', 1]);
    conversations = start();
    const { end } = await open(id);
    end('done');
    await until(async () => (await written(id))?.endReason === 'done');
    const last = (await written(id))!;
    assert.deepEqual([last.startedAt, last.items], [startedAt, items]);
  });
});

// Conversations on their thread: real speech for the person, servers that speak the providers' real
// protocols, and the rings of a media worker.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import type { FromTalk } from '../../src/link/talk-messages.ts';
import { createSpeechRing } from '../../src/link/speech-ring.ts';
import { ROOT } from '../harness/server.ts';
import { synthesize } from '../harness/speech.ts';
import { type ProviderServer, startProviders } from './provider-server.ts';
import { Person, type TalkThread, specOf, startTalkThread } from './talk-thread.ts';

/** The set-up for tests installs it. */
const isInstalled = existsSync(path.join(ROOT, 'scripts/talk/node_modules/.package-lock.json'));

const LONG =
  'It is a fine day in the mountains, with a little wind from the west. Later there may be clouds ' +
  'over the lake, and towards the evening perhaps some rain. Take a coat with you when you go out.';

describe.skipIf(!isInstalled)('a conversation (needs scripts/talk: npm run setup)', () => {
  let providers: ProviderServer;
  let talk: TalkThread;
  let count = 0;

  beforeAll(async () => {
    providers = await startProviders();
    talk = await startTalkThread();
  });
  afterAll(async () => {
    await talk.stop();
    await providers.close();
  });
  beforeEach(() => {
    providers.reset();
    talk.messages.length = 0;
  });

  /** Opens a conversation for the time of `work`. */
  async function conversing(
    more: Partial<Parameters<typeof specOf>[2]>,
    work: (person: Person) => Promise<void>,
  ): Promise<void> {
    count++;
    const sessionId = `s${count}`;
    const person = new Person();
    talk.post({ type: 'open', spec: specOf(person, providers.baseUrl, { sessionId, ...more }) });
    try {
      await talk.until('state', ({ state }) => state === 'listening');
      await work(person);
    } finally {
      talk.post({ type: 'close', sessionId });
      await talk.until('ended', (message) => message.sessionId === sessionId);
      person.close();
    }
  }

  /** When the voice begins in a recording. */
  const onsetMs = (pcm: Int16Array): number => pcm.findIndex((value) => Math.abs(value) > 500) / 16;

  const itemsOf = (): { readonly role: string; readonly text: string }[] =>
    talk.messages
      .filter((message): message is FromTalk & { type: 'item' } => message.type === 'item')
      .map(({ item }) => item)
      .toSorted((a, b) => a.startMs - b.startMs)
      .map(({ role, text }) => ({ role, text }));

  test('hears, answers, is interrupted, and goes on from what was heard', async () => {
    const { behaviour } = providers;
    behaviour.replies = [LONG, 'All right. I have stopped.'];
    behaviour.transcripts = ['what is the weather like today', 'please stop that now'];
    const question = await synthesize('what is the weather like today');
    const stop = await synthesize('please stop that now');
    await conversing({ firstMessage: 'Welcome to the house.' }, async (person) => {
      await talk.until('item', ({ item }) => item.text === 'Welcome to the house.');
      await person.say(question.pcm);
      const { times } = await talk.until('turn');
      // 300 ms of silence end the turn; the providers take 200 ms, 8 tokens of 25 ms, and 120 ms.
      const ownMs = times.totalMs - 300 - 200 - 8 * 25 - 120;
      console.info(`turn ${Math.round(times.totalMs)} ms, own share ${Math.round(ownMs)} ms`);
      assert.ok(times.totalMs > 700, `the providers alone take 820 ms: ${times.totalMs}`);
      // The model is still writing when it is interrupted.
      behaviour.tokenMs = 200;
      await talk.until(
        'caption',
        ({ role, text }) => role === 'assistant' && /mountains/.test(text),
      );
      const voiceMs = performance.now() + onsetMs(stop.pcm);
      const told = talk.until('bargeIn').then(({ silenceMs }) => ({
        silenceMs,
        atMs: performance.now(),
      }));
      await person.say(stop.pcm);
      const { silenceMs, atMs: toldMs } = await told;
      behaviour.tokenMs = 25;
      await talk.until('item', ({ item }) => item.text === 'All right. I have stopped.');
      // From the last packet before the interruption on: the voice pauses between words too.
      const silentMs = person.silentSince(toldMs - 60)!;
      const aborted = providers.events.find(({ kind }) => kind === 'chat aborted')!;
      const next = providers.events.filter(({ kind }) => kind === 'chat')[1]!;
      console.info(
        `interruption: silence ${Math.round(silentMs - voiceMs)} ms after the voice, ` +
          `${Math.round(silenceMs)} ms after its detection; the model is aborted ` +
          `${Math.round(aborted.atMs - silentMs)} ms after that`,
      );
      assert.ok(aborted.atMs < next.atMs, 'aborted before the turn is known to be one');
      const asked = providers.events.filter(
        ({ kind, atMs }) => kind === 'speech' && atMs > silentMs && atMs < next.atMs,
      );
      assert.deepEqual(asked, [], 'no voice is asked for after the silence');
    });
    const [welcome, asked, cut, stopped, last] = itemsOf();
    assert.deepEqual(
      [welcome, asked, stopped, last],
      [
        { role: 'assistant', text: 'Welcome to the house.' },
        { role: 'user', text: 'what is the weather like today' },
        { role: 'user', text: 'please stop that now' },
        { role: 'assistant', text: 'All right. I have stopped.' },
      ],
    );
    assert.ok(LONG.startsWith(cut!.text) && cut!.text.length < LONG.length / 2, cut!.text);
    assert.match(cut!.text, /mountains/);
    // The model is told what was heard, and not what was written.
    assert.deepEqual(providers.chats.at(-1)!.messages.slice(1), [
      { role: 'assistant', content: 'Welcome to the house.' },
      { role: 'user', content: 'what is the weather like today' },
      { role: 'assistant', content: cut!.text },
      { role: 'user', content: 'please stop that now' },
    ]);
  });

  test('a cough stops the face for a moment only', async () => {
    const { behaviour } = providers;
    const [said, rest] = ['It is a fine day in the mountains.', ' Take a coat with you.'];
    behaviour.replies = [`${said} Later there may be clouds over the lake.`, rest];
    behaviour.tokenMs = 300;
    // The recogniser finds no words in it.
    behaviour.transcripts = ['what is the weather', ''];
    const question = await synthesize('what is the weather like today');
    const cough = await synthesize('uh huh');
    await conversing({}, async (person) => {
      await person.say(question.pcm);
      await talk.until('caption', ({ role, text }) => role === 'assistant' && /fine/.test(text));
      const coughMs = performance.now() + onsetMs(cough.pcm);
      await person.say(cough.pcm);
      await talk.until('bargeIn');
      await talk.until('item', ({ item }) => item.role === 'assistant');
      const silentMs = person.silentSince(coughMs + 200)!;
      const soundMs = person.packets.find(({ atMs, isSound }) => isSound && atMs > silentMs)!.atMs;
      console.info(`a cough: silent for ${Math.round(soundMs - silentMs)} ms`);
    });
    // The model was aborted amid its reply, and asked for the rest of it.
    const { messages } = providers.chats[1]!;
    const begun = messages.at(-2)!;
    assert.equal(begun.role, 'assistant');
    assert.ok(behaviour.replies.length === 1 && begun.content.startsWith(said), begun.content);
    assert.equal(itemsOf().at(-1)!.text, `${begun.content}${rest}`.trim());
    assert.equal(providers.chats.length, 2);
  });

  test('a key that is refused ends the conversation in words', async () => {
    providers.behaviour.status.set('/v1/chat/completions', 401);
    providers.behaviour.transcripts = ['hello'];
    const hello = await synthesize('hello there');
    await conversing({}, async (person) => {
      await person.say(hello.pcm);
      const fault = await talk.until('fault');
      assert.deepEqual(
        [fault.role, fault.fault, fault.isFatal],
        ['language_model', 'unauthorised', true],
      );
      assert.match(fault.message, /API key/);
    });
  });

  test('a model that breaks off is told, and the next turn works', async () => {
    const { behaviour } = providers;
    behaviour.fault.set('/v1/chat/completions', 'cut');
    behaviour.replies = [LONG, 'Here I am again.'];
    behaviour.transcripts = ['hello', 'are you there'];
    const hello = await synthesize('hello there');
    await conversing({}, async (person) => {
      await person.say(hello.pcm);
      const told = await talk.until('fault');
      assert.deepEqual([told.fault, told.isFatal], ['cut_off', false]);
      behaviour.fault.clear();
      behaviour.replies = ['Here I am again.'];
      await talk.until('item', ({ item }) => item.role === 'assistant');
      await person.say(hello.pcm);
      await talk.until('item', ({ item }) => item.text === 'Here I am again.');
    });
  });

  test('two hundred conversations, each cut off amid its first message, leave nothing', async () => {
    providers.behaviour.voiceMs = 1;
    const heap: number[] = [];
    for (let round = 0; round < 8; round++) {
      const ids = Array.from({ length: 25 }, (_, k) => `many-${round}-${k}`);
      for (const sessionId of ids) {
        const rings = { microphoneRing: createSpeechRing(), speechRing: createSpeechRing() };
        const more = { sessionId, firstMessage: 'Welcome.' };
        talk.post({ type: 'open', spec: specOf({ rings }, providers.baseUrl, more) });
      }
      const spoken = (id: string) => talk.until('usage', ({ sessionId }) => sessionId === id);
      await Promise.all(ids.map(spoken));
      for (const sessionId of ids) {
        talk.post({ type: 'close', sessionId });
      }
      const ended = (id: string) => talk.until('ended', ({ sessionId }) => sessionId === id);
      await Promise.all(ids.map(ended));
      talk.messages.length = 0;
      if (round === 1 || round === 7) {
        heap.push(await talk.heapMb());
      }
    }
    const [before, after] = heap;
    console.info(`${before!.toFixed(1)} MB after 50 conversations, ${after!.toFixed(1)} after 200`);
    // One that is kept takes megabytes.
    assert.ok(after! - before! < 15, `${after! - before!} MB more`);
  });

  test('pocketsphinx and flite hold a conversation without any server', async () => {
    const hello = await synthesize('hello how are you');
    await conversing(
      { mind: { kind: 'script' }, voice: { kind: 'local', voice: 'slt' }, ear: { kind: 'local' } },
      async (person) => {
        await person.say(hello.pcm);
        const { item } = await talk.until('item', ({ item: { role } }) => role === 'assistant');
        assert.match(item.text, /\w+/);
      },
    );
  });
});

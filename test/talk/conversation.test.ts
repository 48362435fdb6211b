// Conversations on their thread: real speech for the person, servers that speak the providers' real
// protocols, and the rings of a media worker.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import type { FromTalk } from '../../src/link/talk-messages.ts';
import { createSpeechRing } from '../../src/link/speech-ring.ts';
import { END_SILENCE_MS } from '../../src/talk/turn-types.ts';
import { patience } from '../harness/machine.ts';
import { ROOT } from '../harness/server.ts';
import { synthesize } from '../harness/speech.ts';
import { until } from '../harness/until.ts';
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

  /** A turn, from the last sound of the person to the first packet of the reply. */
  interface Turn {
    /** By the clock of the test. */
    readonly totalMs: number;
    /** By the clock of the conversation. */
    readonly clockMs: number;
    /** Without the end of the turn and what its providers took, by their clocks. */
    readonly ownMs: number;
  }

  /** The person says something and hears the reply begin. */
  async function turnOf(person: Person, pcm: Int16Array): Promise<Turn> {
    const first = providers.events.length;
    const from = talk.messages.length;
    const last = pcm.findLastIndex((value) => Math.abs(value) > 500);
    const endMs = (await person.say(pcm)) - (pcm.length - last) / 16;
    const { times } = await talk.until('turn', (one) => talk.messages.indexOf(one) >= from);
    const heard = person.packets.find(({ atMs, isSpeech }) => isSpeech && atMs > endMs)!;
    const events = providers.events.slice(first);
    const [chat, speech, sound] = ['chat', 'speech', 'sound'].map((kind) =>
      events.find((event) => event.kind === kind)!,
    );
    const clause = events.find(({ kind, detail }) => kind === 'token' && detail.endsWith(','))!;
    const theirs = clause.atMs - chat!.atMs + sound!.atMs - speech!.atMs;
    return {
      totalMs: Math.round(heard.atMs - endMs),
      clockMs: Math.round(times.totalMs),
      ownMs: Math.round(times.totalMs - END_SILENCE_MS - theirs),
    };
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
    const short = 'It is a fine day in the mountains, today.';
    const asks = 'what is the weather like today';
    behaviour.replies = [short, short, LONG, 'All right. I have stopped.'];
    behaviour.transcripts = [asks, asks, asks, 'please stop that now'];
    const question = await synthesize('what is the weather like today');
    const stop = await synthesize('please stop that now');
    await conversing({ firstMessage: 'Welcome to the house.' }, async (person) => {
      await talk.until('item', ({ item }) => item.text === 'Welcome to the house.');
      const turns: Turn[] = [];
      let answered = 0;
      for (const reply of [short, short, LONG]) {
        answered = talk.messages.length;
        turns.push(await turnOf(person, question.pcm));
        if (reply === short) {
          await talk.until(
            'item',
            (one) => one.item.role === 'assistant' && talk.messages.indexOf(one) >= answered,
          );
        }
      }
      const least = (key: keyof Turn): number => Math.min(...turns.map((turn) => turn[key]));
      console.info(
        turns.map((turn) => JSON.stringify(turn)).join('; '),
        `patience ${patience().toFixed(1)}`,
      );
      // The best of three turns: neighbours of this machine can only make one longer.
      assert.ok(least('clockMs') < 900 * patience(), `${least('clockMs')} ms`);
      assert.ok(least('ownMs') < 150 * patience(), `own share ${least('ownMs')} ms`);
      // The model is still writing when it is interrupted.
      behaviour.tokenMs = 200;
      await talk.until(
        'caption',
        (one) =>
          one.role === 'assistant' &&
          /mountains/.test(one.text) &&
          talk.messages.indexOf(one) > answered,
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
      const next = providers.events.filter(({ kind }) => kind === 'chat').at(-1)!;
      console.info(
        `interruption: silence ${Math.round(silentMs - voiceMs)} ms after the voice, ` +
          `${Math.round(silenceMs)} ms after its detection; the model is aborted ` +
          `${Math.round(aborted.atMs - silentMs)} ms after that`,
      );
      assert.ok(silentMs - voiceMs < 450 * patience(), `${silentMs - voiceMs} ms to silence`);
      assert.ok(aborted.atMs - silentMs < 200 * patience(), 'the model is aborted at once');
      assert.ok(aborted.atMs < next.atMs, 'aborted before the turn is known to be one');
      const asked = providers.events.filter(
        ({ kind, atMs }) => kind === 'speech' && atMs > silentMs && atMs < next.atMs,
      );
      assert.deepEqual(asked, [], 'no voice is asked for after the silence');
    });
    const items = itemsOf();
    const cut = items.at(-3);
    const said = [
      { role: 'assistant', text: 'Welcome to the house.' },
      { role: 'user', text: asks },
      { role: 'assistant', text: short },
      { role: 'user', text: asks },
      { role: 'assistant', text: short },
      { role: 'user', text: asks },
      { role: 'assistant', text: cut!.text },
      { role: 'user', text: 'please stop that now' },
      { role: 'assistant', text: 'All right. I have stopped.' },
    ];
    assert.deepEqual(items, said);
    assert.ok(LONG.startsWith(cut!.text) && cut!.text.length < LONG.length / 2, cut!.text);
    assert.match(cut!.text, /mountains/);
    // The model is told what was heard, and not what was written. On a busy machine the end of the
    // turn may come so late that the model is asked to go on before, in vain.
    const told = providers.chats
      .map(({ messages }) => messages)
      .findLast((messages) => messages.at(-1)!.content === said.at(-2)!.text);
    assert.deepEqual(
      told?.slice(1),
      said.slice(0, -1).map(({ role, text }) => ({ role, content: text })),
    );
  });

  test('a cough stops the face for a moment only', async () => {
    const { behaviour } = providers;
    const [said, rest] = ['It is a fine day in the mountains.', ' Take a coat with you.'];
    // Long enough that the model still writes when the cough is heard, on a slow machine too.
    const later = ' Later there may be clouds over the lake, and in the evening perhaps some rain.';
    behaviour.replies = [`${said}${later}`, rest];
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
      assert.ok(soundMs - silentMs < 2000 * patience(), `${soundMs - silentMs} ms`);
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

  test('nobody is left unheard: a recogniser that stays away ends the conversation', async () => {
    const baseUrl = new URL(providers.baseUrl).origin;
    const recogniser = { kind: 'deepgram', baseUrl, apiKey: 'k', model: 'nova-3' } as const;
    providers.behaviour.status.set('deepgram', 500);
    await conversing({ recogniser }, async () => {
      const told = await talk.until('fault', ({ isFatal }) => isFatal, 30_000);
      assert.deepEqual(
        [told.role, told.kind, told.fault],
        ['recogniser', 'deepgram', 'server_error'],
      );
      assert.match(told.message, /^The recogniser failed/);
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

  test('what was not heard is in no history: the first message, and a voice that fails', async () => {
    const { behaviour, events } = providers;
    const [first, rest] = ['It is a fine day in the mountains,', ' and the wind is from the west.'];
    behaviour.replies = [first + rest, 'Yes.'];
    behaviour.transcripts = ['hello', 'are you there'];
    behaviour.firstTokenMs = 3200;
    const hello = await synthesize('hello there');
    await conversing({ firstMessage: LONG }, async (person) => {
      await talk.until('caption', ({ text }) => /fine day/.test(text));
      talk.post({ type: 'interrupt', sessionId: `s${count}` });
      const { item: welcome } = await talk.until('item');
      assert.ok(welcome.interrupted && LONG.startsWith(welcome.text), welcome.text);
      assert.ok(welcome.text.length < LONG.length / 2, welcome.text);
      behaviour.tokenMs = 150;
      events.length = 0;
      await person.say(hello.pcm);
      const slow = await talk.until('slow');
      assert.equal(slow.message, 'The language model takes long to answer');
      await until(() => events.some(({ kind }) => kind === 'speech'), 20_000);
      behaviour.status.set('/v1/audio/speech', 500);
      const fault = await talk.until('fault');
      assert.deepEqual([fault.role, fault.fault, fault.isFatal], ['voice', 'server_error', false]);
      const { item: cut } = await talk.until(
        'item',
        ({ item }) => item.role === 'assistant' && item !== welcome,
      );
      assert.deepEqual([cut.text, cut.interrupted], [first, true]);
      behaviour.status.clear();
      behaviour.firstTokenMs = 200;
      await person.say(hello.pcm);
      await talk.until('item', ({ item }) => item.text === 'Yes.');
      assert.deepEqual(
        providers.chats
          .at(-1)!
          .messages.slice(1)
          .map(({ content }) => content),
        [welcome.text, 'hello', first, 'are you there'],
      );
    });
  });

  test('each reply that is cut ends when it fell silent, also when the person hangs up', async () => {
    const { behaviour } = providers;
    behaviour.replies = [LONG, 'Yes.'];
    behaviour.transcripts = ['hello', 'are you there'];
    const hello = await synthesize('hello there');
    let hungUpMs = 0;
    await conversing({ firstMessage: LONG }, async (person) => {
      const startMs = performance.now();
      await talk.until('caption', ({ text }) => /fine day/.test(text));
      talk.post({ type: 'interrupt', sessionId: `s${count}` });
      await talk.until('item');
      const from = talk.messages.length;
      await person.say(hello.pcm);
      await talk.until(
        'caption',
        (one) =>
          one.role === 'assistant' &&
          /mountains/.test(one.text) &&
          talk.messages.indexOf(one) >= from,
      );
      hungUpMs = performance.now() - startMs;
    });
    const items = talk.messages.filter((one) => one.type === 'item').map(({ item }) => item);
    const cut = items.filter(({ role }) => role === 'assistant');
    assert.deepEqual(
      cut.map(({ interrupted }) => interrupted),
      [true, true],
    );
    for (const { startMs, endMs } of cut) {
      assert.ok(endMs > startMs, `${startMs} to ${endMs} ms`);
    }
    // The clock of the conversation began to run before that of the test.
    const { endMs } = cut[1]!;
    assert.ok(endMs >= Math.floor(hungUpMs), `${endMs} ms, hung up at ${hungUpMs}`);
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
      {
        languageModel: { kind: 'script' },
        voice: { kind: 'local', voice: 'slt' },
        recogniser: { kind: 'local' },
      },
      async (person) => {
        await person.say(hello.pcm);
        const { item } = await talk.until('item', ({ item: { role } }) => role === 'assistant');
        assert.match(item.text, /\w+/);
      },
    );
  });
});

// ElevenLabs, Cartesia and Deepgram over their WebSocket protocols. The official plug-ins talk to the
// local servers first: what they accept is the protocol. Then ours, with every fault.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { describe, test } from 'vitest';
import { setTimeout } from 'node:timers/promises';
import { createSpeechRing } from '../../src/link/speech-ring.ts';
import type { RecogniserSpec, VoiceSpec } from '../../src/link/talk-messages.ts';
import { SPEECH_RATE } from '../../src/media/timeline.ts';
import { createProviders } from '../../src/talk/providers.ts';
import { heardOf } from '../../src/talk/spoken-text.ts';
import type { RecognitionEvent, VoiceAudio } from '../../src/talk/turn-types.ts';
import { ROOT } from '../harness/server.ts';
import { synthesize } from '../harness/speech.ts';
import { until } from '../harness/until.ts';
import { type ProviderServer, startProviders } from './provider-server.ts';
import { specOf } from './talk-thread.ts';

const folder = path.join(ROOT, 'scripts/talk');
const hasPlugins = existsSync(path.join(folder, 'node_modules/@livekit/agents-plugin-deepgram'));
const { signal } = new AbortController();
const CLAUSES = ['It is a fine day in the mountains, ', 'and the wind comes from the west.'];

/** Runs `work` beside a server of its own. */
async function beside<T>(work: (server: ProviderServer, origin: string) => Promise<T>): Promise<T> {
  const server = await startProviders();
  server.behaviour.voiceMs = 1;
  try {
    return await work(server, new URL(server.baseUrl).origin);
  } finally {
    await server.close();
  }
}

interface Ours {
  readonly faults: string[];
  readonly messages: string[];
  readonly answers: string[];
  readonly steps: string[];
  /** Faults with which the provider gave up. */
  readonly lost: string[];
  readonly providers: ReturnType<typeof createProviders>;
}

function ours(origin: string, parts: { voice?: VoiceSpec; recogniser?: RecogniserSpec }): Ours {
  const rings = { microphoneRing: createSpeechRing(), speechRing: createSpeechRing() };
  const found = { faults: [] as string[], messages: [] as string[], answers: [] as string[] };
  const steps: string[] = [];
  const lost: string[] = [];
  const providers = createProviders(specOf({ rings }, `${origin}/v1`, parts), {
    onStep: (step) => {
      steps.push(step);
    },
    onAnswer: (role, kind) => {
      found.answers.push(`${role} ${kind}`);
    },
    onFault: (role, kind, { fault, message }, isLost) => {
      if (isLost === true) {
        lost.push(fault);
      }
      found.faults.push(`${role} ${kind} ${fault}`);
      found.messages.push(message);
    },
    onSlow: () => {},
    onUsage: () => {},
  });
  return { ...found, steps, lost, providers };
}

const voiceAt = (kind: 'elevenlabs' | 'cartesia', origin: string, apiKey = 'k'): VoiceSpec => ({
  kind,
  baseUrl: origin,
  apiKey,
  voice: 'v',
  model: kind === 'elevenlabs' ? 'eleven_flash_v2_5' : 'sonic-2',
});

async function* textOf(clauses: readonly string[]): AsyncGenerator<string> {
  for (const clause of clauses) {
    yield clause;
    await setTimeout(1);
  }
}

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) {
    found.push(value);
  }
  return found;
}

const samplesOf = (audio: readonly VoiceAudio[]): number =>
  audio.reduce((sum, { pcm }) => sum + pcm.length, 0);
/** Samples of the clauses, each said by itself. */
async function expectedSamples(): Promise<number> {
  const said = await Promise.all(CLAUSES.map((clause) => synthesize(clause.trim(), 'rms')));
  return said.reduce((sum, { pcm }) => sum + pcm.length, 0);
}

describe.skipIf(!hasPlugins)('the official plug-ins (need scripts/talk: npm run setup)', () => {
  /** A package of LiveKit's. Untyped: the folder is a package of its own. */
  const load = (name: string): Promise<any> =>
    import(createRequire(path.join(folder, 'index.mjs')).resolve(`@livekit/${name}`));

  async function plugin(name: string): Promise<any> {
    const { initializeLogger } = await load('agents');
    initializeLogger({ pretty: false, level: 'silent' });
    return await load(`agents-plugin-${name}`);
  }

  test('ElevenLabs and Cartesia: they take the sound and the times of the local servers', async () => {
    for (const name of ['elevenlabs', 'cartesia'] as const) {
      await beside(async (_server, origin) => {
        const { TTS } = await plugin(name);
        const voice =
          name === 'elevenlabs'
            ? new TTS({ apiKey: 'k', baseURL: `${origin}/v1`, voiceId: 'v', encoding: 'pcm_16000' })
            : new TTS({ apiKey: 'k', baseUrl: origin, sampleRate: SPEECH_RATE, voice: 'v' });
        const stream = voice.stream();
        stream.pushText(CLAUSES.join(''));
        stream.flush();
        stream.endInput();
        let samples = 0;
        let words = '';
        for await (const event of stream) {
          if (typeof event === 'symbol') {
            break;
          }
          samples += event.frame.samplesPerChannel;
          for (const { text } of event.timedTranscripts ?? []) {
            words += text;
          }
        }
        stream.close();
        const { pcm } = await synthesize(CLAUSES.join('').trim(), 'rms');
        assert.ok(Math.abs(samples - pcm.length) < 1600, `${name}: ${samples} of ${pcm.length}`);
        assert.match(words, /It is a fine day/, name);
      });
    }
  });

  test('Deepgram: it takes the words of the local server', async () => {
    await beside(async ({ behaviour }, origin) => {
      behaviour.transcripts = ['good morning'];
      const { STT } = await plugin('deepgram');
      const { AudioFrame } = await load('rtc-node');
      const stt = new STT({ apiKey: 'k', baseUrl: origin.replace('http', 'ws') });
      const stream = stt.stream();
      const { pcm } = await synthesize('good morning');
      for (let at = 0; at < pcm.length; at += 1600) {
        const part = pcm.slice(at, at + 1600);
        stream.pushFrame(new AudioFrame(part, SPEECH_RATE, 1, part.length));
      }
      stream.flush();
      for await (const event of stream) {
        if (event.type === 2) {
          assert.equal(event.alternatives[0].text, 'good morning');
          break;
        }
      }
      stream.close();
    });
  });
});

test('a reply goes in by clauses, and comes back with the times of its words', async () => {
  const expected = await expectedSamples();
  for (const kind of ['elevenlabs', 'cartesia'] as const) {
    await beside(async ({ events }, origin) => {
      const { providers, faults, answers, steps } = ours(origin, { voice: voiceAt(kind, origin) });
      providers.prepareToListen();
      await until(() => events.some((event) => event.kind === 'socket'));
      const audio = await all(providers.speak(textOf(CLAUSES), signal));
      assert.deepEqual([faults, answers], [[], [`voice ${kind}`]]);
      assert.deepEqual(steps, ['firstClause', 'firstAudio']);
      assert.ok(Math.abs(samplesOf(audio) - expected) < 20, `${samplesOf(audio)} of ${expected}`);
      const connections = events.filter((event) => event.kind === 'socket');
      assert.equal(connections.length, 1, 'the socket that was opened ahead is used');
      assert.match(
        connections[0]!.detail,
        kind === 'elevenlabs'
          ? /^\/v1\/text-to-speech\/v\/multi-stream-input\?.*output_format=pcm_16000.* k$/
          : /^\/tts\/websocket k$/,
      );
      assert.deepEqual(
        events.filter((event) => event.kind === 'speech').map(({ detail }) => detail),
        CLAUSES.map((clause) => clause.trim()),
      );
      const { clause } = audio[0]!;
      assert.equal(clause.text, CLAUSES.join(''));
      const half = heardOf(clause, samplesOf(audio) / 2, SPEECH_RATE).trim();
      assert.ok(CLAUSES.join('').startsWith(half) && half.length > 20, half);
      assert.ok(half.length < CLAUSES.join('').length * 0.75, half);
      assert.equal(heardOf(clause, samplesOf(audio), SPEECH_RATE), clause.text);
      providers.close();
    });
  }
});

test('every fault of a voice has its reason, and its words', async () => {
  const cases = (['elevenlabs', 'cartesia'] as const).flatMap((kind) =>
    (
      [
        [401, 'unauthorised'],
        [429, 'rate_limited'],
        [500, 'server_error'],
        ['cut', 'cut_off'],
        ['garbage', 'malformed'],
        ['silence', 'timeout'],
        ['error', 'server_error'],
      ] as const
    ).map(([fault, reason]) => ({ kind, fault, reason })),
  );
  await Promise.all(
    cases.map(({ kind, fault, reason }) =>
      beside(async ({ behaviour }, origin) => {
        if (typeof fault === 'number') {
          behaviour.status.set(kind, fault);
        } else {
          behaviour.fault.set(kind, fault);
        }
        const { providers, faults, messages } = ours(origin, { voice: voiceAt(kind, origin) });
        await all(providers.speak(textOf(CLAUSES), signal));
        assert.deepEqual(faults, [`voice ${kind} ${reason}`], `${kind}: ${fault}`);
        assert.match(messages[0]!, /^The voice [a-z]/);
      }),
    ),
  );
});

test('a voice that is not there is unreachable, and one that is aborted is left in peace', async () => {
  const gone = ours('http://127.0.0.1:9', { voice: voiceAt('cartesia', 'http://127.0.0.1:9') });
  await all(gone.providers.speak(textOf(CLAUSES), signal));
  assert.deepEqual(gone.faults, ['voice cartesia unreachable']);
  await beside(async (_server, origin) => {
    const { providers, faults } = ours(origin, { voice: voiceAt('elevenlabs', origin) });
    const abort = new AbortController();
    for await (const _audio of providers.speak(textOf(CLAUSES), abort.signal)) {
      abort.abort();
    }
    assert.deepEqual(faults, []);
  });
});

/** Speaks into a Deepgram recogniser, and finalises. */
async function hear(
  origin: string,
  { faults, providers }: Ours,
  utterances: readonly Int16Array[],
  until_: (heard: readonly RecognitionEvent[]) => boolean,
): Promise<RecognitionEvent[]> {
  const abort = new AbortController();
  const heard: RecognitionEvent[] = [];
  async function* microphone(): AsyncGenerator<Int16Array> {
    await setTimeout(100);
    for (const pcm of utterances) {
      for (let at = 0; at < pcm.length; at += 320) {
        yield pcm.slice(at, at + 320);
        await setTimeout(1);
      }
      providers.finalise!();
      await setTimeout(300);
    }
    while (!abort.signal.aborted) {
      yield new Int16Array(320);
      await setTimeout(20);
    }
  }
  const limit = setTimeout(15_000, undefined, { signal: abort.signal }).then(
    () => {
      abort.abort();
    },
    () => {},
  );
  for await (const event of providers.listen!(microphone(), abort.signal)) {
    heard.push(event);
    if (until_(heard)) {
      abort.abort();
    }
  }
  abort.abort();
  await limit;
  providers.close();
  assert.ok(origin !== '' && faults.length < 10);
  return heard;
}

const recogniser = (origin: string, apiKey = 'k'): RecogniserSpec => ({
  kind: 'deepgram',
  baseUrl: origin,
  apiKey,
  model: 'nova-3',
});
const hasFinal = (heard: readonly RecognitionEvent[]): boolean =>
  heard.some(({ kind }) => kind === 'final');

test('Deepgram hears words while they are spoken, and is asked for them at the pause', async () => {
  const { pcm } = await synthesize('good morning');
  await beside(async ({ behaviour, events }, origin) => {
    behaviour.transcripts = ['good morning'];
    const one = ours(origin, { recogniser: recogniser(origin) });
    const heard = await hear(origin, one, [pcm], hasFinal);
    assert.deepEqual(heard, [
      { kind: 'interim', text: 'good' },
      { kind: 'final', text: 'good morning' },
    ]);
    assert.deepEqual([one.faults, one.answers], [[], ['recogniser deepgram']]);
    assert.match(
      events[0]!.detail,
      /^\/v1\/listen\?model=nova-3&language=en&encoding=linear16&sample_rate=16000.* Token k$/,
    );
  });
});

test('Deepgram lost amid an utterance is called again, and hears it from its start', async () => {
  const { pcm } = await synthesize('good morning');
  const cases = [
    ['cut', 'cut_off'],
    ['silence', 'timeout'],
    ['garbage', 'malformed'],
  ] as const;
  await Promise.all(
    cases.map(([fault, reason]) =>
      beside(async ({ behaviour, events }, origin) => {
        behaviour.transcripts = ['good morning'];
        behaviour.fault.set('deepgram', fault);
        const one = ours(origin, { recogniser: recogniser(origin) });
        const watch = (async () => {
          await until(() => one.faults.length > 0, 15_000);
          behaviour.fault.delete('deepgram');
        })();
        const heard = await hear(origin, one, [pcm], hasFinal);
        await watch;
        assert.deepEqual(one.faults, [`recogniser deepgram ${reason}`], fault);
        assert.ok(hasFinal(heard), fault);
        assert.equal(events.filter(({ kind }) => kind === 'socket').length, 2, fault);
      }),
    ),
  );
});

test('Deepgram away for three seconds is called until it is back', async () => {
  const { pcm } = await synthesize('good morning');
  await beside(async ({ behaviour }, origin) => {
    behaviour.transcripts = ['good morning'];
    behaviour.status.set('deepgram', 503);
    const one = ours(origin, { recogniser: recogniser(origin) });
    const back = setTimeout(3000).then(() => behaviour.status.delete('deepgram'));
    const heard = await hear(origin, one, [pcm], hasFinal);
    await back;
    assert.ok(hasFinal(heard));
    assert.deepEqual(new Set(one.faults), new Set(['recogniser deepgram server_error']));
    assert.ok(one.faults.length >= 3, 'each failure is told');
    assert.deepEqual(one.lost, [], 'and none ends the conversation');
  });
});

test('a key that Deepgram refuses is told once', async () => {
  await beside(async (_server, origin) => {
    const one = ours(origin, { recogniser: recogniser(origin, 'wrong') });
    assert.deepEqual(await hear(origin, one, [], hasFinal), []);
    assert.deepEqual(one.faults, ['recogniser deepgram unauthorised']);
  });
});

// The providers over HTTP, against a local server that speaks their protocols: what is sent, what is
// understood, and what a fault becomes.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { checkProviders } from '../../src/front/talk/provider-check.ts';
import { clausesOf } from '../../src/talk/clauses.ts';
import { PcmResampler } from '../../src/talk/pcm-resampler.ts';
import { ProviderError } from '../../src/talk/provider-error.ts';
import { chatReply } from '../../src/talk/providers/chat.ts';
import { post } from '../../src/talk/providers/http.ts';
import { endpointSpeech } from '../../src/talk/providers/speech-endpoint.ts';
import { transcription } from '../../src/talk/providers/transcription.ts';
import { heardOf, newClause } from '../../src/talk/spoken-text.ts';
import { synthesize } from '../harness/speech.ts';
import { type ProviderServer, startProviders } from './provider-server.ts';

let providers: ProviderServer;
const { signal } = new AbortController();

beforeAll(async () => {
  providers = await startProviders();
});
afterAll(() => providers.close());
beforeEach(() => {
  providers.reset();
  providers.behaviour.firstTokenMs = 1;
  providers.behaviour.tokenMs = 1;
  providers.behaviour.voiceMs = 1;
});

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) {
    found.push(value);
  }
  return found;
}

const chat = (apiKey = 'k') =>
  all(
    chatReply(
      { kind: 'chat', url: `${providers.baseUrl}/chat/completions`, model: 'm', apiKey },
      [{ role: 'user', content: 'Hello' }],
      signal,
    ),
  );

test('a language model streams; its faults have a reason each', async () => {
  providers.behaviour.replies = ['One two three four.'];
  assert.deepEqual(await chat(), ['One', ' two', ' three', ' four.']);
  assert.equal(providers.chats[0]!.model, 'm');
  const faultOf = async (given?: string) => {
    try {
      await chat(given);
      return 'none';
    } catch (error) {
      assert.ok(error instanceof ProviderError);
      assert.doesNotMatch(error.message, /wrong/);
      return error.fault;
    }
  };
  assert.equal(await faultOf('wrong'), 'unauthorised');
  for (const [status, fault] of [
    [429, 'rate_limited'],
    [400, 'refused'],
    [500, 'server_error'],
  ] as const) {
    providers.behaviour.status.set('/v1/chat/completions', status);
    assert.equal(await faultOf(), fault);
  }
  providers.behaviour.status.clear();
  for (const [kind, fault] of [
    ['cut', 'cut_off'],
    ['garbage', 'malformed'],
  ] as const) {
    providers.behaviour.fault.set('/v1/chat/completions', kind);
    assert.equal(await faultOf(), fault);
  }
  providers.behaviour.fault.clear();
  providers.behaviour.replies = [''];
  assert.equal(await faultOf(), 'malformed', 'an answer without words would be a silent face');
});

test('every fault of a voice or a recogniser over HTTP has its reason, and its words', async () => {
  const { behaviour, baseUrl } = providers;
  behaviour.transcripts = Array.from({ length: 9 }, () => 'hello');
  const pcm = new Int16Array(1600);
  const remote = { kind: 'openai', baseUrl, apiKey: 'k', model: 'm' } as const;
  const ask = {
    '/v1/audio/speech': () =>
      all(endpointSpeech({ ...remote, voice: 'v' }, 'Good morning', signal)),
    '/v1/audio/transcriptions': () => transcription(remote, pcm, 'en', signal),
  };
  for (const path of Object.keys(ask) as (keyof typeof ask)[]) {
    for (const [fault, reason] of [
      [401, 'unauthorised'],
      [429, 'rate_limited'],
      [500, 'server_error'],
      ['cut', 'cut_off'],
      ['garbage', 'malformed'],
    ] as const) {
      if (typeof fault === 'number') {
        behaviour.status.set(path, fault);
      } else {
        behaviour.fault.set(path, fault);
      }
      await assert.rejects(ask[path](), (error) => {
        assert.ok(error instanceof ProviderError);
        assert.equal(error.fault, reason, `${path}: ${fault}`);
        assert.match(error.message, /^The (?:voice|recogniser) [a-z]/);
        return true;
      });
      behaviour.status.clear();
      behaviour.fault.clear();
    }
  }
});

test('a provider that accepts a request and falls silent is given up in time', async () => {
  const silent = createServer((request, response) => {
    if (request.url === '/amid') {
      response.writeHead(200, { 'content-type': 'audio/pcm' }).write('0123');
    }
  });
  await new Promise<void>((resolve) => {
    silent.listen(0, '127.0.0.1', resolve);
  });
  const origin = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  try {
    for (const [path, chunks] of [
      ['/', 0],
      ['/amid', 1],
    ] as const) {
      let count = 0;
      const body = post({
        who: 'The voice',
        url: origin + path,
        headers: {},
        body: '',
        signal,
        waitMs: 300,
      });
      await assert.rejects(
        (async () => {
          for await (const chunk of body) {
            count += Math.sign(chunk.length);
          }
        })(),
        { fault: 'timeout', message: 'The voice did not answer in time' },
      );
      assert.equal(count, chunks, path);
    }
  } finally {
    silent.closeAllConnections();
    silent.close();
  }
});

test("a voice behind OpenAI's API streams, and its sound arrives whole", async () => {
  const { pcm } = await synthesize('Good morning', 'rms');
  const { baseUrl } = providers;
  const spec = { kind: 'openai', baseUrl, apiKey: 'k', voice: 'v', model: 'm' } as const;
  const parts = await all(endpointSpeech(spec, 'Good morning', signal));
  assert.equal(providers.events.at(-1)!.detail, 'Good morning');
  const samples = parts.reduce((sum, part) => sum + part.length, 0);
  assert.ok(Math.abs(samples - pcm.length) < 40, `${samples} of ${pcm.length}`);
  const joined = Int16Array.from(parts.flatMap((part) => [...part]));
  assert.ok(correlation(joined, pcm) > 0.97, `${correlation(joined, pcm)}`);
});

test('a recogniser gets a WAV file, and its words are found', async () => {
  const { pcm } = await synthesize('Good morning');
  providers.behaviour.transcripts = ['good morning'];
  const spec = { kind: 'openai', baseUrl: providers.baseUrl, apiKey: 'k', model: 'm' } as const;
  assert.equal(await transcription(spec, pcm, 'en', signal), 'good morning');
});

test('a key that a provider refuses is found before anybody joins', async () => {
  const names = (name: string) => [name];
  const fields = {
    llmProvider: names('llmProvider'),
    llmModel: names('llmModel'),
    llmEndpoint: names('llmEndpoint'),
    llmApiKey: names('llmApiKey'),
    voiceProvider: names('voiceProvider'),
    voiceId: names('voiceId'),
    voiceModel: names('voiceModel'),
    ttsApiKey: names('ttsApiKey'),
  };
  const local = {
    languageModel: { kind: 'script' },
    voice: { kind: 'local', voice: 'slt' },
  } as const;
  for (const [kind, baseUrl] of [
    ['openai', providers.baseUrl],
    ['deepgram', new URL(providers.baseUrl).origin],
  ] as const) {
    const check = (apiKey: string): Promise<void> =>
      checkProviders({ ...local, recogniser: { kind, baseUrl, apiKey, model: 'm' } }, fields);
    await check('right');
    await assert.rejects(check('wrong'), /The recogniser refused its API key/);
  }
  const refusedField = async (apiKey: string, baseUrl: string): Promise<string> => {
    const url = `${baseUrl}/chat/completions`;
    try {
      await checkProviders(
        {
          languageModel: { kind: 'chat', url, model: 'm', apiKey },
          voice: { kind: 'local', voice: 'slt' },
          recogniser: { kind: 'local' },
        },
        fields,
      );
      return 'none';
    } catch (error) {
      return (error as { issues: { loc: string[] }[] }).issues[0]!.loc[1]!;
    }
  };
  assert.equal(await refusedField('right', providers.baseUrl), 'none');
  assert.equal(await refusedField('wrong', providers.baseUrl), 'llmApiKey');
  assert.equal(await refusedField('right', 'http://127.0.0.1:9/v1'), 'llmEndpoint');
});

test('a text is cut into clauses while it streams, and nothing of it is lost', async () => {
  const text =
    'Well, it costs 3.50 euros. Dr. Smith said so: "Pay now!" And then? 你好。再见。No end';
  async function* letters() {
    yield* text;
  }
  const clauses = await all(clausesOf(letters()));
  assert.equal(clauses.join(''), text);
  assert.ok(!clauses.some((clause) => /Dr\. $|3\.$/.test(clause)), JSON.stringify(clauses));
  assert.ok(clauses.length > 2, JSON.stringify(clauses));
});

test('a comma after a word ends a clause before the next token, one in a number does not', async () => {
  async function* tokens() {
    yield* ['It costs us 3,', '500 in the mountains,', ' with'];
  }
  assert.deepEqual(await all(clausesOf(tokens())), [
    'It costs us 3,500 in the mountains,',
    ' with',
  ]);
});

test('of a clause that is cut, whole words count, by its sound or by its own times', () => {
  const clause = newClause('one two three four');
  clause.samples = 16_000;
  clause.isComplete = true;
  assert.equal(heardOf(clause, 0, 16_000), '');
  assert.equal(heardOf(clause, 8000, 16_000), 'one two');
  assert.equal(heardOf(clause, 16_000, 16_000), clause.text);
  clause.words = [
    { text: 'one', startSample: 0 },
    { text: ' two', startSample: 9000 },
  ];
  assert.equal(heardOf(clause, 8000, 16_000), 'one');
});

test('the resampler does not depend on how its input is cut', () => {
  const input = Buffer.alloc(48_000);
  for (let i = 0; i < input.length / 2; i++) {
    input.writeInt16LE(Math.round(12_000 * Math.sin((2 * Math.PI * 440 * i) / 24_000)), i * 2);
  }
  const whole = new PcmResampler(24_000).push(input);
  const cut = new PcmResampler(24_000);
  const parts: number[] = [];
  for (let at = 0; at < input.length; at += 333) {
    parts.push(...cut.push(input.subarray(at, at + 333)));
  }
  assert.deepEqual(parts, [...whole]);
});

function correlation(a: Int16Array, b: Int16Array): number {
  let best = 0;
  for (let shift = -24; shift <= 24; shift++) {
    let [ab, aa, bb] = [0, 0, 0];
    for (let i = 100; i < Math.min(a.length, b.length) - 100; i++) {
      ab += a[i]! * b[i + shift]!;
      aa += a[i]! ** 2;
      bb += b[i + shift]! ** 2;
    }
    best = Math.max(best, ab / Math.sqrt(aa * bb));
  }
  return best;
}

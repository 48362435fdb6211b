// A local server that speaks the protocols of the providers: OpenAI's chat completions, speech and
// transcriptions; by socket-server.ts ElevenLabs, Cartesia and Deepgram. It answers at the pace and
// with the faults that a test sets.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { envelope } from '../harness/lipsync.ts';
import { synthesize } from '../harness/speech.ts';
import { LocalRecogniser } from '../../src/talk/providers/local-recogniser.ts';
import { serveSockets } from './socket-server.ts';
import { sleep } from '../../src/base/time.ts';

/** What happened, in order. */
export interface ProviderEvent {
  readonly kind: string;
  readonly atMs: number;
  readonly detail: string;
}

/** A request to the language model. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

/** The behaviour of the server; a test changes its fields. */
export class Behaviour {
  firstTokenMs = 200;
  tokenMs = 25;
  voiceMs = 120;
  recogniserMs = 100;
  /** What the recogniser understands, one after another; empty: it listens with pocketsphinx. */
  transcripts: string[] = [];
  /** What the person may say: the recogniser finds which of them a recording holds. */
  phrases: { readonly text: string; readonly pcm: Int16Array }[] = [];
  /** What the model answers to each text of the person; others get the next of `replies`. */
  readonly answers = new Map<string, string>();
  /** The model's replies, one after another; the last one repeats. */
  replies: string[] = ['All right.'];
  /** Status of the next answers, by path; 200 when absent. */
  readonly status = new Map<string, number>();
  /** Fault of the next answers, by path. */
  readonly fault = new Map<string, 'cut' | 'garbage' | 'silence' | 'error'>();
  /** What the error message of the fault `error` says. */
  error = 'Something went wrong';
}

/** A running server. */
export interface ProviderServer {
  /** http://127.0.0.1:PORT/v1 */
  readonly baseUrl: string;
  readonly behaviour: Behaviour;
  readonly chats: ChatRequest[];
  readonly heard: string[];
  readonly events: ProviderEvent[];
  /** Forgets what happened, and behaves as at the start. */
  reset(): void;
  close(): Promise<void>;
}

const bodyOf = async (request: IncomingMessage): Promise<Buffer> =>
  Buffer.concat(await request.toArray());

function respondText(response: ServerResponse, text: string): void {
  const type = text.startsWith('{') ? 'application/json' : 'text/html';
  response.writeHead(200, { 'content-type': type }).end(text);
}

/** Starts the server on a free port of the loopback. */
export async function startProviders(): Promise<ProviderServer> {
  const behaviour = new Behaviour();
  const chats: ChatRequest[] = [];
  const heard: string[] = [];
  const events: ProviderEvent[] = [];
  const note = (kind: string, detail = ''): void => {
    events.push({ kind, atMs: performance.now(), detail });
  };

  function replyTo({ messages }: ChatRequest): string {
    const [said, before, asked] = messages.toReversed().map(({ content }) => content);
    const answer = behaviour.answers.get(said!);
    const whole = behaviour.answers.get(asked ?? '');
    if (answer === undefined && whole?.startsWith(before!) === true) {
      return whole.slice(before!.length); // it was held amid this reply
    }
    const next = behaviour.replies.length > 1 ? behaviour.replies.shift() : behaviour.replies[0];
    return answer ?? next!;
  }

  async function chat(body: Buffer, response: ServerResponse): Promise<void> {
    const request = JSON.parse(body.toString()) as ChatRequest;
    chats.push(request);
    note('chat', request.messages.at(-1)?.content);
    let isAborted = false;
    response.on('close', () => {
      if (!response.writableFinished) {
        isAborted = true;
        note('chat aborted');
      }
    });
    const reply = replyTo(request);
    await sleep(behaviour.firstTokenMs);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (delta: object, finish: string | null = null): void => {
      const choices = [{ index: 0, delta, finish_reason: finish }];
      response.write(`data: ${JSON.stringify({ object: 'chat.completion.chunk', choices })}\n\n`);
    };
    const fault = behaviour.fault.get('/v1/chat/completions');
    send({ role: 'assistant', content: '' });
    for (const [index, token] of (reply.match(/\s*\S+/g) ?? []).entries()) {
      if (isAborted) {
        return;
      }
      if (index === 2 && fault !== undefined) {
        if (fault === 'cut') {
          response.destroy();
        } else if (fault === 'garbage') {
          response.end('data: {"choices": [\n\n');
        }
        return;
      }
      send({ content: token });
      note('token', token);
      await sleep(behaviour.tokenMs);
    }
    send({}, 'stop');
    response.end('data: [DONE]\n\n');
    note('chat done');
  }

  async function speech(body: Buffer, response: ServerResponse): Promise<void> {
    const { input } = JSON.parse(body.toString()) as { input: string };
    note('speech', input);
    const { pcm } = await synthesize(input, 'rms');
    await sleep(behaviour.voiceMs);
    note('sound', input);
    const fault = behaviour.fault.get('/v1/audio/speech');
    if (fault === 'garbage') {
      respondText(response, '<html>');
      return;
    }
    response.writeHead(200, { 'content-type': 'audio/pcm' });
    const bytes = upsample(pcm);
    for (let at = 0; at < bytes.length; at += 9601) {
      if (at > 0 && fault === 'cut') {
        response.destroy();
      }
      if (at > 0 && fault !== undefined) {
        return; // silence: it stays open
      }
      response.write(bytes.subarray(at, at + 9601));
      await sleep(5);
    }
    response.end();
  }

  async function transcribe(body: Buffer, response: ServerResponse): Promise<void> {
    const at = body.indexOf('RIFF', 0, 'latin1');
    const bytes = body.readUInt32LE(at + 40);
    const pcm = new Int16Array(bytes / 2);
    for (let i = 0; i < pcm.length; i++) {
      pcm[i] = body.readInt16LE(at + 44 + i * 2);
    }
    const given =
      behaviour.phrases.length > 0
        ? closest(pcm, behaviour.phrases)
        : behaviour.transcripts.shift();
    await sleep(given === undefined ? 0 : behaviour.recogniserMs);
    const text =
      given ?? (await new LocalRecogniser().transcribe(pcm, new AbortController().signal));
    heard.push(text);
    note('transcript', text);
    const fault = behaviour.fault.get('/v1/audio/transcriptions');
    if (fault === 'cut') {
      response.writeHead(200, { 'content-length': 100 }).write('{"text": ');
      await sleep(5);
      response.destroy();
    } else if (fault === 'garbage') {
      respondText(response, '<html>');
    } else if (fault === undefined) {
      respondText(response, JSON.stringify({ text }));
    }
  }

  const server = createServer((request, response) => {
    void (async () => {
      const path = request.url!;
      const body = await bodyOf(request);
      const status = behaviour.status.get(path);
      if (request.headers.authorization?.endsWith(' wrong') === true) {
        response.writeHead(401).end();
      } else if (status !== undefined) {
        note(`refused ${status}`);
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end('{"error": {"message": "no"}}');
      } else if (/^(?:\/v1)?\/voices\//.test(path)) {
        respondText(response, '{"id": "v"}');
      } else if (path === '/v1/chat/completions') {
        await chat(body, response);
      } else if (path === '/v1/audio/speech') {
        await speech(body, response);
      } else if (path === '/v1/audio/transcriptions') {
        await transcribe(body, response);
      } else {
        response.writeHead(404).end();
      }
    })().catch((error: unknown) => {
      note('failed', String(error));
      response.destroy();
    });
  });
  const sockets = serveSockets(server, behaviour, note);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    behaviour,
    chats,
    heard,
    events,
    reset: () => {
      Object.assign(behaviour, new Behaviour());
      chats.length = 0;
      heard.length = 0;
      events.length = 0;
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets.clients) {
          socket.terminate();
        }
        sockets.close();
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

/** 16 kHz to 24 kHz, PCM16 bytes. */
function upsample(pcm: Int16Array): Buffer {
  const out = Buffer.alloc(Math.floor((pcm.length * 3) / 2) * 2);
  for (let i = 0; i < out.length / 2; i++) {
    const at = (i * 2) / 3;
    const from = Math.floor(at);
    const a = pcm[from]!;
    const b = pcm[Math.min(pcm.length - 1, from + 1)]!;
    out.writeInt16LE(Math.round(a + (b - a) * (at - from)), i * 2);
  }
  return out;
}

/** The phrase whose loudness over time is most like that of the recording; '' when none is. */
function closest(
  recording: Int16Array,
  phrases: readonly { readonly text: string; readonly pcm: Int16Array }[],
): string {
  const heard = envelope(recording);
  const scored = phrases.map(({ text, pcm }) => ({ text, score: likeness(heard, envelope(pcm)) }));
  const best = scored.toSorted((a, b) => b.score - a.score)[0]!;
  return best.score > 0.6 ? best.text : '';
}

/** The best correlation of a phrase with any part of a recording. */
function likeness(heard: Float64Array, phrase: Float64Array): number {
  const length = Math.min(heard.length, phrase.length);
  let best = -1;
  for (let at = 0; at <= heard.length - length; at += 2) {
    best = Math.max(best, correlation(heard.subarray(at, at + length), phrase));
  }
  return best;
}

function correlation(a: Float64Array, b: Float64Array): number {
  const mean = (values: Float64Array): number =>
    values.subarray(0, a.length).reduce((sum, value) => sum + value, 0) / a.length;
  const [meanA, meanB] = [mean(a), mean(b)];
  let [ab, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    ab += (a[i]! - meanA) * (b[i]! - meanB);
    aa += (a[i]! - meanA) ** 2;
    bb += (b[i]! - meanB) ** 2;
  }
  return ab / Math.sqrt(aa * bb || 1);
}

// The voice of one conversation: the text of a reply as sound, clause by clause or over a socket.
import { monotonicMs } from '../base/time.ts';
import type { VoiceSpec } from '../link/talk-messages.ts';
import { SPEECH_RATE } from '../media/timeline.ts';
import { type Attempts, type ProviderListener, once } from './attempts.ts';
import { clausesOf } from './clauses.ts';
import { fliteSpeech } from './providers/local-voice.ts';
import { endpointSpeech } from './providers/speech-endpoint.ts';
import type { ReplyGate } from './reply-gates.ts';
import { type SpokenClause, newClause } from './spoken-text.ts';
import { StreamedReply, VoiceSockets } from './streamed-voice.ts';
import type { VoiceAudio } from './turn-types.ts';

/** Text without any of these has no sound: a smiley, a dash. */
const SPEAKABLE = /[\p{L}\p{N}]/u;
/** Samples of one frame of the voice: 40 ms. Small ones reach the lips early. */
const FRAME_SAMPLES = SPEECH_RATE / 25;

/** Speaks the replies of one conversation. */
export class Voice {
  readonly #spec: VoiceSpec;
  readonly #attempts: Attempts;
  readonly #listener: ProviderListener;
  readonly #sockets: VoiceSockets | undefined;
  /** Since `takeFault`. */
  #hasFailed = false;

  constructor(spec: VoiceSpec, language: string, attempts: Attempts, listener: ProviderListener) {
    this.#spec = spec;
    this.#attempts = attempts;
    this.#listener = listener;
    this.#sockets =
      spec.kind === 'elevenlabs' || spec.kind === 'cartesia'
        ? new VoiceSockets(spec, language)
        : undefined;
  }

  /** @returns whether a request has failed since the last call */
  takeFault(): boolean {
    const found = this.#hasFailed;
    this.#hasFailed = false;
    return found;
  }

  /** Opens the socket of the next reply, if the voice has one. */
  prepare(): void {
    this.#sockets?.prepare(monotonicMs());
  }

  close(): void {
    this.#sockets?.close();
  }

  /** A reply as sound, while its text is still being written. */
  speak(
    text: AsyncIterable<string>,
    signal: AbortSignal,
    gate: ReplyGate,
  ): AsyncIterable<VoiceAudio> {
    return this.#sockets === undefined
      ? this.#clauses(text, signal, gate)
      : this.#streamed(this.#sockets, new StreamedReply(text, gate, signal), signal);
  }

  async *#streamed(
    sockets: VoiceSockets,
    reply: StreamedReply,
    signal: AbortSignal,
  ): AsyncGenerator<VoiceAudio> {
    if (!(await reply.begin())) {
      return;
    }
    this.#listener.onStep('firstClause');
    const { clause } = reply;
    const feeding = reply.feed();
    const pieces = this.#attempt(signal, () => reply.speak(sockets, monotonicMs()));
    try {
      for await (const { pcm, words } of pieces) {
        clause.words.push(...words);
        if (clause.samples === 0 && pcm.length > 0) {
          this.#listener.onStep('firstAudio');
        }
        clause.samples += pcm.length;
        yield* framesOf(pcm, clause, signal);
      }
      clause.isComplete = !this.#hasFailed;
      await feeding;
    } finally {
      reply.close();
      this.#listener.onUsage(0, clause.samples / SPEECH_RATE);
    }
  }

  async *#clauses(
    text: AsyncIterable<string>,
    signal: AbortSignal,
    gate: ReplyGate,
  ): AsyncGenerator<VoiceAudio> {
    let isFirst = true;
    for await (const part of clausesOf(text)) {
      if (!(await gate.passes(signal))) {
        return;
      }
      if (!SPEAKABLE.test(part)) {
        continue; // a smiley, a dash: no voice has a sound for it
      }
      if (isFirst) {
        this.#listener.onStep('firstClause');
      }
      const clause = newClause(part);
      const audio = this.#attempt(signal, () => this.#audioOf(part.trim(), signal));
      for await (const pcm of audio) {
        if (isFirst) {
          isFirst = false;
          this.#listener.onStep('firstAudio');
        }
        clause.samples += pcm.length;
        yield* framesOf(pcm, clause, signal);
      }
      this.#listener.onUsage(0, clause.samples / SPEECH_RATE);
      if (this.#hasFailed) {
        return; // the rest of the reply would have a hole
      }
      clause.isComplete = true;
    }
  }

  #attempt<T>(signal: AbortSignal, make: () => AsyncIterable<T>): AsyncGenerator<T> {
    return this.#attempts.run('voice', this.#spec.kind, signal, make, () => {
      this.#hasFailed = true;
    });
  }

  #audioOf(text: string, signal: AbortSignal): AsyncIterable<Int16Array> {
    const spec = this.#spec;
    if (spec.kind === 'local') {
      return once(fliteSpeech(spec.voice, text, signal));
    }
    if (spec.kind === 'openai') {
      return endpointSpeech(spec, text, signal);
    }
    throw new TypeError(`the voice ${spec.kind} speaks over a socket`);
  }
}

/** A piece of sound as frames of FRAME_SAMPLES. */
function* framesOf(
  pcm: Int16Array,
  clause: SpokenClause,
  signal: AbortSignal,
): Generator<VoiceAudio> {
  for (let at = 0; at < pcm.length && !signal.aborted; at += FRAME_SAMPLES) {
    yield { pcm: pcm.subarray(at, at + FRAME_SAMPLES), clause };
  }
}

// The providers of one conversation as its turns need them: retries, faults, usage and times.
import { after } from '../base/guard.ts';
import { monotonicMs } from '../base/time.ts';
import type { ConversationSpec, ProviderKind, ProviderRole } from '../link/talk-messages.ts';
import { SPEECH_RATE } from '../media/timeline.ts';
import { clausesOf } from './clauses.ts';
import { type ProviderError, toProviderError } from './provider-error.ts';
import { chatReply } from './providers/chat.ts';
import { DeepgramEar } from './providers/deepgram.ts';
import { LocalEar } from './providers/local-ear.ts';
import { fliteSpeech } from './providers/local-voice.ts';
import { scriptReply } from './providers/script.ts';
import { endpointSpeech } from './providers/speech-endpoint.ts';
import { transcription } from './providers/transcription.ts';
import { type ReplyGate, ReplyGates } from './reply-gates.ts';
import { StreamedReply, VoiceSockets } from './streamed-voice.ts';
import { type SpokenClause, newClause } from './spoken-text.ts';
import type { ChatMessage, TurnProviders, VoiceAudio } from './turn-types.ts';

/** Steps of a turn at its providers. */
export type ProviderStep = 'asked' | 'firstToken' | 'firstClause' | 'firstAudio';

/** What the providers tell. */
export interface ProviderListener {
  onStep(step: ProviderStep): void;
  /** A request is over; `fault`: it failed, and was not or will not be repeated. */
  onAnswer(role: ProviderRole, kind: ProviderKind, seconds: number): void;
  onFault(role: ProviderRole, kind: ProviderKind, error: ProviderError): void;
  /** A request has no result yet, and the person waits for it. @param message in words */
  onSlow(message: string): void;
  onUsage(tokens: number, voiceSeconds: number): void;
}

/** Attempts of a request that has not yielded anything yet. */
const ATTEMPTS = 2;
/** A result that takes longer than this is told to the person. */
const SLOW_MS = 3000;
const WHO: Readonly<Record<ProviderRole, string>> = {
  language_model: 'The language model',
  voice: 'The voice',
  recogniser: 'The recogniser',
};
const SPEAKABLE = /[\p{L}\p{N}]/u;
/** Asks a model for the rest of a reply that was held and goes on. */
const GO_ON = 'Go on from exactly where you stopped. Repeat nothing.';
/** Samples of one frame of the voice: 40 ms. Small ones reach the lips early. */
const FRAME_SAMPLES = SPEECH_RATE / 25;

/** The providers of `spec`. `close` frees what waits for the next turn. */
export function createProviders(
  spec: ConversationSpec,
  listener: ProviderListener,
): TurnProviders & { prepareToHear(): void; close(): void } {
  const { mind, voice, ear } = spec;
  const gates = new ReplyGates();
  const sockets =
    voice.kind === 'elevenlabs' || voice.kind === 'cartesia'
      ? new VoiceSockets(voice, spec.language)
      : undefined;
  const deepgram =
    ear.kind === 'deepgram'
      ? new DeepgramEar(ear, spec.language, {
          onAnswer: (seconds) => {
            listener.onAnswer('recogniser', ear.kind, seconds);
          },
          onFault: (error) => {
            listener.onFault('recogniser', ear.kind, error);
          },
        })
      : undefined;
  const localEar = ear.kind === 'local' ? new LocalEar() : undefined;

  /** Since `takeVoiceFault`. */
  let hasVoiceFailed = false;

  /** Runs a request; repeats it once if it failed before its first result. */
  async function* attempt<T>(
    role: ProviderRole,
    kind: ProviderKind,
    signal: AbortSignal,
    make: () => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    const slow = after(SLOW_MS, 'the word of a slow provider', () => {
      listener.onSlow(`${WHO[role]} takes long to answer`);
    });
    try {
      for (let count = 1; ; count++) {
        const startMs = monotonicMs();
        let hasYielded = false;
        try {
          for await (const value of make()) {
            if (!hasYielded) {
              hasYielded = true;
              clearTimeout(slow);
              listener.onAnswer(role, kind, (monotonicMs() - startMs) / 1000);
            }
            if (signal.aborted) {
              return;
            }
            yield value;
          }
          return;
        } catch (error) {
          if (signal.aborted) {
            return;
          }
          const failure = toProviderError(WHO[role], error);
          if (hasYielded || count >= ATTEMPTS || !failure.isRetryable) {
            hasVoiceFailed ||= role === 'voice';
            listener.onFault(role, kind, failure);
            return;
          }
        }
      }
    } finally {
      clearTimeout(slow);
    }
  }

  async function* reply(messages: readonly ChatMessage[], signal: AbortSignal) {
    listener.onStep('asked');
    let tokens = 0;
    yield* gates.with(async function* make(gate) {
      for (let text = ''; await gate.passes(signal);) {
        const { heldSignal } = gate;
        const either = AbortSignal.any([signal, heldSignal]);
        const asked = continued(messages, text);
        const pieces = attempt('language_model', mind.kind, either, () =>
          mind.kind === 'script' ? scriptReply(messages) : chatReply(mind, asked, either),
        );
        for await (const piece of pieces) {
          if (tokens === 0) {
            listener.onStep('firstToken');
          }
          tokens++;
          text += piece;
          yield piece;
        }
        if (!heldSignal.aborted) {
          break;
        }
      }
    });
    listener.onUsage(mind.kind === 'script' ? 0 : tokens, 0);
  }

  const audioOf = (text: string, signal: AbortSignal): AsyncIterable<Int16Array> => {
    if (voice.kind === 'local') {
      return once(fliteSpeech(voice.voice, text, signal));
    }
    if (voice.kind === 'openai') {
      return endpointSpeech(voice, text, signal);
    }
    throw new TypeError(`the voice ${voice.kind} speaks over a socket`);
  };

  async function* speak(
    text: AsyncIterable<string>,
    signal: AbortSignal,
  ): AsyncGenerator<VoiceAudio> {
    yield* gates.with((gate) =>
      sockets === undefined
        ? speakClauses(text, signal, gate)
        : speakStreamed(sockets, new StreamedReply(text, gate, signal), signal),
    );
  }

  async function* speakStreamed(
    from: VoiceSockets,
    reply: StreamedReply,
    signal: AbortSignal,
  ): AsyncGenerator<VoiceAudio> {
    if (!(await reply.begin())) {
      return;
    }
    listener.onStep('firstClause');
    const { clause } = reply;
    const feeding = reply.feed();
    const pieces = attempt('voice', voice.kind, signal, () => reply.speak(from, monotonicMs()));
    try {
      for await (const { pcm, words } of pieces) {
        clause.words.push(...words);
        if (clause.samples === 0 && pcm.length > 0) {
          listener.onStep('firstAudio');
        }
        clause.samples += pcm.length;
        yield* framesOf(pcm, clause, signal);
      }
      clause.isComplete = !hasVoiceFailed;
      await feeding;
    } finally {
      reply.close();
      listener.onUsage(0, clause.samples / SPEECH_RATE);
    }
  }

  async function* speakClauses(
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
        listener.onStep('firstClause');
      }
      const clause = newClause(part);
      const audio = attempt('voice', voice.kind, signal, () => audioOf(part.trim(), signal));
      for await (const pcm of audio) {
        if (isFirst) {
          isFirst = false;
          listener.onStep('firstAudio');
        }
        clause.samples += pcm.length;
        yield* framesOf(pcm, clause, signal);
      }
      listener.onUsage(0, clause.samples / SPEECH_RATE);
      if (hasVoiceFailed) {
        return; // the rest of the reply would have a hole
      }
      clause.isComplete = true;
    }
  }

  async function transcribe(pcm: Int16Array, signal: AbortSignal): Promise<string> {
    const texts = attempt('recogniser', ear.kind, signal, () =>
      once(
        ear.kind === 'openai'
          ? transcription(ear, pcm, spec.language, signal)
          : localEar!.transcribe(pcm, signal),
      ),
    );
    for await (const text of texts) {
      return text;
    }
    return '';
  }

  return {
    gates,
    takeVoiceFault: () => {
      const found = hasVoiceFailed;
      hasVoiceFailed = false;
      return found;
    },
    reply,
    speak,
    transcribe,
    ...(deepgram && {
      listen: (pcm: AsyncIterable<Int16Array>, signal: AbortSignal) => deepgram.listen(pcm, signal),
      finalise: () => {
        deepgram.finalise(monotonicMs());
      },
    }),
    prepareToHear: () => {
      localEar?.prepare();
      sockets?.prepare(monotonicMs());
    },
    close: () => {
      localEar?.close();
      deepgram?.close();
      sockets?.close();
    },
  };
}

async function* once<T>(value: Promise<T>): AsyncGenerator<T> {
  yield await value;
}

/** The messages that ask for the rest of a reply; `text` is what there is of it. */
const continued = (messages: readonly ChatMessage[], text: string): readonly ChatMessage[] =>
  text === ''
    ? messages
    : [...messages, { role: 'assistant', content: text }, { role: 'user', content: GO_ON }];

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

// What the person of one conversation has said: one utterance at a time, or while they speak.
import { monotonicMs } from '../base/time.ts';
import type { RecogniserSpec } from '../link/talk-messages.ts';
import { type Attempts, type ProviderListener, once } from './attempts.ts';
import { DeepgramEar } from './providers/deepgram.ts';
import { LocalRecogniser } from './providers/local-recogniser.ts';
import { transcription } from './providers/transcription.ts';
import type { TurnProviders } from './turn-types.ts';

/** Recognises the speech of one conversation. */
export class Recogniser {
  readonly #spec: RecogniserSpec;
  readonly #language: string;
  readonly #attempts: Attempts;
  readonly #local: LocalRecogniser | undefined;
  readonly #deepgram: DeepgramEar | undefined;

  constructor(
    spec: RecogniserSpec,
    language: string,
    attempts: Attempts,
    listener: ProviderListener,
  ) {
    this.#spec = spec;
    this.#language = language;
    this.#attempts = attempts;
    this.#local = spec.kind === 'local' ? new LocalRecogniser() : undefined;
    this.#deepgram =
      spec.kind === 'deepgram'
        ? new DeepgramEar(spec, language, {
            onAnswer: (seconds) => {
              listener.onAnswer('recogniser', spec.kind, seconds);
            },
            onFault: (error, isLost) => {
              listener.onFault('recogniser', spec.kind, error, isLost);
            },
          })
        : undefined;
  }

  /** Starts the process of the next utterance, if there is one. */
  prepare(): void {
    this.#local?.prepare();
  }

  close(): void {
    this.#local?.close();
    this.#deepgram?.close();
  }

  /** For a recogniser that hears all the time. */
  get streaming(): Pick<TurnProviders, 'listen' | 'finalise'> {
    const deepgram = this.#deepgram;
    return deepgram === undefined
      ? {}
      : {
          listen: (pcm, signal) => deepgram.listen(pcm, signal),
          finalise: () => {
            deepgram.finalise(monotonicMs());
          },
        };
  }

  /** The words of one utterance; '' when there are none. */
  async transcribe(pcm: Int16Array, signal: AbortSignal): Promise<string> {
    const spec = this.#spec;
    const texts = this.#attempts.run('recogniser', spec.kind, signal, () =>
      once(
        spec.kind === 'openai'
          ? transcription(spec, pcm, this.#language, signal)
          : this.#local!.transcribe(pcm, signal),
      ),
    );
    for await (const text of texts) {
      return text;
    }
    return '';
  }
}

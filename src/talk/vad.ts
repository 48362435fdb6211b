// The voice activity detector as the conversation library wants it. It also cuts out the utterances
// for the recogniser, so that the model runs once for each window.
import { SPEECH_RATE } from '../media/timeline.ts';
import type { DetectorClient } from './detector-client.ts';
import type { AudioFrame, TalkLibrary } from './library.ts';
import { type SilenceLimits, SpeechDetector, WINDOW_SAMPLES } from './speech-detector.ts';

/** What the recogniser is told. */
export interface UtteranceListener {
  /** Speech has begun, or goes on after a pause. */
  onStart(): void;
  /** The speech has probably ended. */
  onPause(utterance: Int16Array): void;
  onEnd(utterance: Int16Array): void;
}

/** A detector for one conversation. */
export function createVad(
  library: TalkLibrary,
  client: DetectorClient,
  limits: SilenceLimits,
  listener: UtteranceListener,
): object {
  class Stream extends library.VADStream {
    readonly #detector = new SpeechDetector(limits);
    readonly #model = client.open();
    readonly #window = new Int16Array(WINDOW_SAMPLES);
    #filled = 0;
    #samples = 0;

    constructor(vad: object) {
      super(vad);
      void this.#run();
    }

    async #run(): Promise<void> {
      for (;;) {
        const { done, value } = await this.inputReader.read();
        if (done || this.closed) {
          break;
        }
        if (typeof value !== 'symbol') {
          await this.#take(value.data);
        }
      }
      this.#model.close();
    }

    async #take(pcm: Int16Array): Promise<void> {
      for (let at = 0; at < pcm.length && !this.closed;) {
        const count = Math.min(pcm.length - at, WINDOW_SAMPLES - this.#filled);
        this.#window.set(pcm.subarray(at, at + count), this.#filled);
        this.#filled += count;
        at += count;
        if (this.#filled === WINDOW_SAMPLES) {
          this.#filled = 0;
          await this.#judge(this.#window.slice());
        }
      }
    }

    async #judge(window: Int16Array): Promise<void> {
      const detector = this.#detector;
      const probability = await this.#model.predict(window);
      if (this.closed) {
        return;
      }
      this.#samples += WINDOW_SAMPLES;
      const change = detector.push(window, probability);
      const types = library.VADEventType;
      this.#send(types.INFERENCE_DONE, probability, [this.#frame(window)]);
      if (change === 'start') {
        listener.onStart();
        this.#send(types.START_OF_SPEECH, probability, [this.#frame(detector.utterance)]);
      } else if (change === 'resume') {
        listener.onStart();
      } else if (change === 'pause') {
        listener.onPause(detector.utterance);
      } else if (change === 'end') {
        const { utterance } = detector;
        detector.forget();
        // The recogniser hears of it before the turn is judged: its text may be there already.
        listener.onEnd(utterance);
        this.#send(types.END_OF_SPEECH, probability, [this.#frame(utterance)]);
      }
    }

    #frame(pcm: Int16Array): AudioFrame {
      return new library.AudioFrame(pcm, SPEECH_RATE, 1, pcm.length);
    }

    #send(type: number, probability: number, frames: readonly AudioFrame[]): void {
      const { isSpeaking, speechMs, silenceMs, sinceChangeMs } = this.#detector;
      this.sendVADEvent({
        type,
        samplesIndex: this.#samples,
        timestamp: (this.#samples * 1000) / SPEECH_RATE,
        speechDuration: isSpeaking ? sinceChangeMs : 0,
        silenceDuration: isSpeaking ? 0 : sinceChangeMs,
        probability,
        inferenceDuration: 0,
        frames,
        speaking: isSpeaking,
        rawAccumulatedSilence: silenceMs,
        rawAccumulatedSpeech: speechMs,
      });
    }
  }

  class Vad extends library.VAD {
    label = 'mouthpiece';

    constructor() {
      super({ updateInterval: 32 });
    }

    get minSilenceDuration(): number {
      return limits.endMs;
    }

    stream(): object {
      return new Stream(this);
    }
  }
  return new Vad();
}

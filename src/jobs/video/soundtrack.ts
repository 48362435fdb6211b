// The sound of a static video on its two clocks: what the model hears (16 kHz, mono) and what the listener hears (48 kHz).
import { AUDIO_RATE, SPEECH_RATE } from '../../media/timeline.ts';
import { native, type Resampler } from '../../native/addon.ts';
import type { PcmStream } from './audio/pcm-stream.ts';
import { SampleQueue } from './sample-queue.ts';

/** Silence fed behind the end so that the resamplers give what their filters still hold, in source samples. */
const FLUSH_SAMPLES = 4096;

export class Soundtrack {
  readonly channels: 1 | 2;
  readonly #rate: number;
  readonly #source: AsyncIterator<Int16Array>;
  readonly #speech = new SampleQueue();
  readonly #sound = new SampleQueue();
  readonly #toSpeech: Resampler | undefined;
  readonly #toSound: Resampler | undefined;
  #samplesIn = 0;
  #isOver = false;
  #speechLeft = Infinity;
  #soundLeft = Infinity;
  #mono = new Int16Array(0);
  #resampled = new Int16Array(0);

  constructor({ rate, channels, pieces }: PcmStream) {
    this.#rate = rate;
    this.channels = channels;
    this.#source = iterate(pieces);
    this.#toSpeech =
      rate === SPEECH_RATE
        ? undefined
        : new native.Resampler({
            inputRate: rate,
            outputRate: SPEECH_RATE,
            channels: 1,
            quality: 'medium',
          });
    this.#toSound =
      rate === AUDIO_RATE
        ? undefined
        : new native.Resampler({
            inputRate: rate,
            outputRate: AUDIO_RATE,
            channels,
            quality: 'high',
          });
  }

  /** Fills `out` with `count` samples at 16 kHz; silence after the end. */
  async readSpeech(out: Int16Array, count: number): Promise<void> {
    while (this.#speech.length < count && !this.#isOver) {
      await this.#readPiece();
    }
    const got = this.#speech.take(out, Math.min(count, this.#speechLeft));
    this.#speechLeft -= got;
    out.fill(0, got, count);
  }

  /** Up to `count` samples per channel at 48 kHz, interleaved, in a buffer of their own; fewer only at the end, none after it. */
  async readSound(count: number): Promise<Int16Array<ArrayBuffer>> {
    const wanted = count * this.channels;
    while (this.#sound.length < wanted && !this.#isOver) {
      await this.#readPiece();
    }
    const out = new Int16Array(Math.min(wanted, this.#soundLeft, this.#sound.length));
    this.#soundLeft -= this.#sound.take(out, out.length);
    return out;
  }

  close(): void {
    this.#toSpeech?.close();
    this.#toSound?.close();
    void this.#source.return?.();
  }

  async #readPiece(): Promise<void> {
    const { done, value } = await this.#source.next();
    if (done !== true) {
      this.#samplesIn += value.length / this.channels;
      this.#pass(value);
      return;
    }
    this.#isOver = true;
    this.#pass(new Int16Array(FLUSH_SAMPLES * this.channels));
    // What was passed on so far was never more than there is, since the resamplers hold back.
    this.#speechLeft =
      Math.round((this.#samplesIn * SPEECH_RATE) / this.#rate) - this.#speech.taken;
    this.#soundLeft =
      Math.round((this.#samplesIn * AUDIO_RATE) / this.#rate) * this.channels - this.#sound.taken;
  }

  #pass(piece: Int16Array): void {
    this.#sound.push(this.#resample(this.#toSound, piece, this.channels, AUDIO_RATE));
    const mono = this.channels === 1 ? piece : this.#mix(piece);
    this.#speech.push(this.#resample(this.#toSpeech, mono, 1, SPEECH_RATE));
  }

  #mix(stereo: Int16Array): Int16Array {
    const samples = stereo.length / 2;
    if (this.#mono.length < samples) {
      this.#mono = new Int16Array(samples);
    }
    for (let i = 0; i < samples; i++) {
      this.#mono[i] = (stereo[2 * i]! + stereo[2 * i + 1]!) >> 1;
    }
    return this.#mono.subarray(0, samples);
  }

  #resample(
    resampler: Resampler | undefined,
    samples: Int16Array,
    channels: number,
    outputRate: number,
  ): Int16Array {
    if (resampler === undefined) {
      return samples;
    }
    const needed = Math.ceil(((samples.length / channels) * outputRate) / this.#rate) * channels;
    if (this.#resampled.length < needed) {
      this.#resampled = new Int16Array(needed);
    }
    return this.#resampled.subarray(0, resampler.process(samples, this.#resampled) * channels);
  }
}

async function* iterate(pieces: PcmStream['pieces']): AsyncGenerator<Int16Array> {
  yield* pieces;
}

// The sound of a static video at two rates: 16 kHz mono for the speech model, 48 kHz for the
// listener.
import { SampleQueue } from '../../media/sample-queue.ts';
import { AUDIO_RATE, SPEECH_RATE } from '../../media/timeline.ts';
import { native, type Resampler } from '../../native/addon.ts';
import type { PcmStream } from './audio/pcm-stream.ts';

/**
 * Silence after the end, in source samples: makes the resamplers output what their filters still
 * hold.
 */
const FLUSH_SAMPLES = 4096;

/** Reads one PCM stream for both. */
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

  /** Fills `out` with `count` samples at 16 kHz, with silence after the end. */
  async readSpeech(out: Int16Array, count: number): Promise<void> {
    while (this.#speech.length < count && !this.#isOver) {
      await this.#readPiece();
    }
    const got = this.#speech.take(out, Math.min(count, this.#speechLeft));
    this.#speechLeft -= got;
    out.fill(0, got, count);
  }

  /**
   * Reads up to `count` samples per channel at 48 kHz, interleaved, in a new buffer. Returns fewer
   * only at the end, and none after it.
   */
  async readSound(count: number): Promise<Int16Array<ArrayBuffer>> {
    const wanted = count * this.channels;
    while (this.#sound.length < wanted && !this.#isOver) {
      await this.#readPiece();
    }
    const out = new Int16Array(Math.min(wanted, this.#soundLeft, this.#sound.length));
    this.#soundLeft -= this.#sound.take(out, out.length);
    return out;
  }

  /** Releases the resamplers and the source. */
  close(): void {
    this.#toSpeech?.close();
    this.#toSound?.close();
    void this.#source.return?.();
  }

  async #readPiece(): Promise<void> {
    const { done, value } = await this.#source.next();
    if (done !== true) {
      this.#samplesIn += value.length / this.channels;
      this.#append(value);
      return;
    }
    this.#isOver = true;
    this.#append(new Int16Array(FLUSH_SAMPLES * this.channels));
    // No more was taken so far than the stream holds, because the resamplers hold samples back.
    this.#speechLeft =
      Math.round((this.#samplesIn * SPEECH_RATE) / this.#rate) - this.#speech.taken;
    this.#soundLeft =
      Math.round((this.#samplesIn * AUDIO_RATE) / this.#rate) * this.channels - this.#sound.taken;
  }

  #append(piece: Int16Array): void {
    this.#sound.push(this.#resample(this.#toSound, piece, this.channels, AUDIO_RATE));
    const mono = this.channels === 1 ? piece : this.#mix(piece);
    this.#speech.push(this.#resample(this.#toSpeech, mono, 1, SPEECH_RATE));
  }

  /** Mixes stereo down to mono. */
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

// A stream of PCM16 that comes in pieces of any length, brought to another rate.
import { type Resampler, native } from './addon.ts';

/** What the stream is, and what it becomes. */
export interface StreamResamplerOptions {
  /** Hz. */
  readonly inputRate: number;
  /** Hz. */
  readonly outputRate: number;
  /** Of both. Stereo is interleaved. */
  readonly channels: 1 | 2;
  readonly quality: 'medium' | 'high';
}

/**
 * Silence after the end, in input samples: makes the resampler output what its filter still holds.
 */
const FLUSH_SAMPLES = 4096;

/** One per stream. A stream that has the wanted rate already is passed on as it is. */
export class StreamResampler {
  readonly #options: StreamResamplerOptions;
  readonly #resampler: Resampler | undefined;
  #out = new Int16Array(0);
  /** Samples per channel. */
  #samplesIn = 0;
  #samplesOut = 0;

  constructor(options: StreamResamplerOptions) {
    this.#options = options;
    this.#resampler =
      options.inputRate === options.outputRate ? undefined : new native.Resampler(options);
  }

  /** @returns the samples that are ready; valid until the next call */
  push(samples: Int16Array): Int16Array {
    this.#samplesIn += samples.length / this.#options.channels;
    return this.#process(samples);
  }

  /**
   * The stream has ended.
   * @returns the rest: together as long as the input was; valid until the next call
   */
  flush(): Int16Array {
    if (this.#resampler === undefined) {
      return this.#out;
    }
    const { inputRate, outputRate, channels } = this.#options;
    const owed = Math.round((this.#samplesIn * outputRate) / inputRate) - this.#samplesOut;
    const rest = this.#process(new Int16Array(FLUSH_SAMPLES * channels));
    return rest.subarray(0, Math.max(0, owed) * channels);
  }

  close(): void {
    this.#resampler?.close();
  }

  #process(samples: Int16Array): Int16Array {
    if (this.#resampler === undefined) {
      return samples;
    }
    const { inputRate, outputRate, channels } = this.#options;
    const needed = Math.ceil(((samples.length / channels) * outputRate) / inputRate) * channels;
    if (this.#out.length < needed) {
      this.#out = new Int16Array(needed);
    }
    const count = this.#resampler.process(samples, this.#out);
    this.#samplesOut += count;
    return this.#out.subarray(0, count * channels);
  }
}

/**
 * Channels whose mean has less than this share of their power are in antiphase: one of them alone is
 * the speech. So is what a balanced line gives whose wires are swapped.
 */
const ANTIPHASE = 0.01;

/** @returns the mean of the channels: `samples` itself where there is one */
export function mixToMono(samples: Int16Array, channels: 1 | 2): Int16Array {
  if (channels === 1) {
    return samples;
  }
  const mono = new Int16Array(samples.length / 2);
  let [power, mixed] = [0, 0];
  for (let i = 0; i < mono.length; i++) {
    const [left, right] = [samples[2 * i]!, samples[2 * i + 1]!];
    const mean = (left + right) >> 1;
    mono[i] = mean;
    power += left * left + right * right;
    mixed += 2 * mean * mean;
  }
  if (mixed < ANTIPHASE * power) {
    for (let i = 0; i < mono.length; i++) {
      mono[i] = samples[2 * i]!;
    }
  }
  return mono;
}

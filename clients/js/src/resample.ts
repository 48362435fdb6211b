// PCM of other rates at 16 kHz, piece by piece: voices often come at 24 kHz.

/** Rate of speech, Hz. */
export const SPEECH_RATE = 16_000;
/** Filter phases per input sample. */
const PHASES = 64;
/** Half the length of the filter, in samples of the lower rate. */
const HALF_WIDTH = 16;

/** A windowed-sinc resampler to 16 kHz, for one stream. */
export class Resampler {
  readonly #step: number;
  readonly #half: number;
  readonly #kernel: readonly Float32Array[];
  #input: Float32Array;
  /** Of the next output sample, in #input. */
  #position: number;
  /** The first byte of a sample, when a piece ended within one. */
  #odd = new Uint8Array(0);

  /** @param rate of the input, Hz; 4000 to 192,000 */
  constructor(rate: number) {
    if (!(rate >= 4000 && rate <= 192_000)) {
      throw new RangeError(`The rate of speech must be 4000 to 192000 Hz, not ${rate}.`);
    }
    this.#step = rate / SPEECH_RATE;
    this.#half = Math.ceil(HALF_WIDTH * Math.max(1, this.#step));
    this.#kernel = makeKernel(this.#half, Math.min(1, 0.92 / this.#step));
    this.#input = new Float32Array(this.#half);
    this.#position = this.#half;
  }

  /** @param bytes PCM16. @returns what can be computed now, PCM16 at 16 kHz */
  push(bytes: Uint8Array): Int16Array<ArrayBuffer> {
    const all = new Uint8Array(this.#odd.length + bytes.length);
    all.set(this.#odd);
    all.set(bytes, this.#odd.length);
    const whole = all.length & ~1;
    this.#odd = all.slice(whole);
    const view = new DataView(all.buffer, 0, whole);
    const input = new Float32Array(this.#input.length + view.byteLength / 2);
    input.set(this.#input);
    for (let at = 0; at < view.byteLength / 2; at++) {
      input[this.#input.length + at] = view.getInt16(at * 2, true);
    }
    return this.#convert(input);
  }

  /** @returns the end of the stream */
  flush(): Int16Array<ArrayBuffer> {
    const input = new Float32Array(this.#input.length + this.#half);
    input.set(this.#input);
    return this.#convert(input);
  }

  #convert(input: Float32Array): Int16Array<ArrayBuffer> {
    const count = Math.max(0, Math.ceil((input.length - this.#half - this.#position) / this.#step));
    const output = new Int16Array(count);
    for (let at = 0; at < count; at++) {
      const whole = Math.floor(this.#position);
      const taps = this.#kernel[Math.floor((this.#position - whole) * PHASES)]!;
      let sum = 0;
      for (let tap = 0; tap < taps.length; tap++) {
        sum += taps[tap]! * input[whole + tap - this.#half + 1]!;
      }
      output[at] = Math.round(Math.max(-32_768, Math.min(32_767, sum)));
      this.#position += this.#step;
    }
    const done = Math.min(input.length, Math.floor(this.#position) - this.#half);
    this.#input = input.subarray(done);
    this.#position -= done;
    return output;
  }
}

/** Hann-windowed low-pass filters, one per phase. `cutoff` is a share of the Nyquist frequency. */
function makeKernel(half: number, cutoff: number): readonly Float32Array[] {
  return Array.from({ length: PHASES }, (_, phase) => {
    const taps = Float32Array.from({ length: half * 2 }, (_, tap) => {
      const x = tap - half + 1 - phase / PHASES;
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * cutoff * x) / (Math.PI * cutoff * x);
      return sinc * (0.5 + 0.5 * Math.cos((Math.PI * x) / (half + 1)));
    });
    const sum = taps.reduce((total, tap) => total + tap, 0);
    return taps.map((tap) => tap / sum);
  });
}

// PCM16 bytes of a provider, at its rate, as samples at SPEECH_RATE.
import { SPEECH_RATE } from '../media/timeline.ts';

/** Taps on each side of the low-pass filter, in input samples. */
const HALF_TAPS = 16;

/** A windowed sinc resampler for a stream: continuous over the borders of its chunks. */
export class PcmResampler {
  readonly #step: number;
  readonly #cutoff: number;
  #input = new Float32Array(HALF_TAPS);
  #inputLength = HALF_TAPS;
  /** Position of the next output sample in `#input`. */
  #at = HALF_TAPS;
  #oddByte = -1;

  /** @param rate of the input, samples a second */
  constructor(rate: number) {
    this.#step = rate / SPEECH_RATE;
    this.#cutoff = Math.min(1, SPEECH_RATE / rate);
  }

  /** @param bytes PCM16 little-endian, of any length. @returns samples that are ready */
  push(bytes: Uint8Array): Int16Array {
    this.#append(bytes);
    const ready = Math.max(0, Math.floor((this.#inputLength - HALF_TAPS - this.#at) / this.#step));
    const out = new Int16Array(ready);
    for (let i = 0; i < ready; i++) {
      out[i] = this.#sample(this.#at + i * this.#step);
    }
    this.#at += ready * this.#step;
    this.#drop(Math.floor(this.#at) - HALF_TAPS);
    return out;
  }

  #append(bytes: Uint8Array): void {
    const all =
      this.#oddByte < 0 ? bytes : Uint8Array.from([this.#oddByte, ...bytes.subarray(0, 1)]);
    const rest = this.#oddByte < 0 ? bytes.subarray(0, 0) : bytes.subarray(1);
    this.#oddByte = -1;
    for (const part of [all, rest]) {
      const view = new DataView(part.buffer, part.byteOffset, part.byteLength);
      const count = part.length >> 1;
      this.#reserve(count);
      for (let i = 0; i < count; i++) {
        this.#input[this.#inputLength + i] = view.getInt16(i * 2, true);
      }
      this.#inputLength += count;
      if (part.length % 2 === 1) {
        this.#oddByte = part[part.length - 1]!;
      }
    }
  }

  #reserve(count: number): void {
    if (this.#inputLength + count > this.#input.length) {
      const larger = new Float32Array((this.#inputLength + count) * 2);
      larger.set(this.#input.subarray(0, this.#inputLength));
      this.#input = larger;
    }
  }

  #drop(count: number): void {
    if (count > 0) {
      this.#input.copyWithin(0, count, this.#inputLength);
      this.#inputLength -= count;
      this.#at -= count;
    }
  }

  #sample(at: number): number {
    if (this.#step === 1) {
      return this.#input[Math.round(at)]!;
    }
    const centre = Math.floor(at);
    let sum = 0;
    for (let i = centre - HALF_TAPS + 1; i <= centre + HALF_TAPS; i++) {
      const x = at - i;
      const window = 0.5 + 0.5 * Math.cos((Math.PI * x) / HALF_TAPS);
      const y = Math.PI * x * this.#cutoff;
      sum += this.#input[i]! * (y === 0 ? 1 : Math.sin(y) / y) * this.#cutoff * window;
    }
    return Math.max(-32_768, Math.min(32_767, Math.round(sum)));
  }
}

// An audio worklet: resamples the microphone from the rate of the device to 16 kHz PCM16 and posts
// it in blocks of 20 ms. It uses a windowed sinc, because not every browser accepts a microphone of
// another rate in a 16 kHz audio context.

/** Output rate, Hz. */
const RATE = 16_000;
/** Samples of a block: 20 ms. */
const PIECE = 320;
/** Filter phases per input sample. */
const PHASES = 64;
/** Half the length of the filter. */
const HALF_WIDTH_MS = 1;

class SpeechSender extends AudioWorkletProcessor {
  constructor() {
    super();
    this.step = sampleRate / RATE;
    this.half = Math.ceil((HALF_WIDTH_MS * sampleRate) / 1000);
    this.kernel = makeKernel(this.half, Math.min(1, 0.92 / this.step));
    this.ring = new Float32Array(1 << 13);
    this.written = 0;
    this.position = this.half;
    this.piece = new Int16Array(PIECE);
    this.filled = 0;
  }

  process([input]) {
    const channel = input?.[0];
    if (!channel) {
      return true;
    }
    const mask = this.ring.length - 1;
    for (const sample of channel) {
      this.ring[this.written & mask] = sample;
      this.written++;
    }
    for (; this.position + this.half < this.written; this.position += this.step) {
      this.#put(this.#at(this.position, mask));
    }
    return true;
  }

  #at(position, mask) {
    const whole = Math.floor(position);
    const taps = this.kernel[Math.floor((position - whole) * PHASES)];
    let sum = 0;
    for (let tap = 0; tap < taps.length; tap++) {
      sum += taps[tap] * this.ring[(whole + tap - this.half + 1) & mask];
    }
    return sum;
  }

  #put(value) {
    this.piece[this.filled] = Math.round(Math.max(-1, Math.min(1, value)) * 32767);
    this.filled++;
    if (this.filled < PIECE) {
      return;
    }
    this.port.postMessage(this.piece, [this.piece.buffer]);
    this.piece = new Int16Array(PIECE);
    this.filled = 0;
  }
}

/**
 * Hann-windowed sinc low-pass filters, one per phase. `cutoff` is a share of the input's Nyquist
 * frequency.
 */
function makeKernel(half, cutoff) {
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

registerProcessor('speech-sender', SpeechSender);

// The mel spectrogram that Wav2Lip-type networks are trained on, computed as speech comes in: 80
// columns a second, a window of 16 columns for each video frame.
//
// Parameters of the published training code (Prajwal et al. 2020, hparams): 16 kHz, pre-emphasis
// 0.97, n_fft and window 800 (Hann, periodic), hop 200, magnitudes, 80 Slaney mels 55-7600 Hz with
// area normalisation, 20 log10 - 20 dB, -100 dB floor, scaled to ±4 and clipped.
import { FRAME_MS, SPEECH_RATE } from '../../media/timeline.ts';

/** Mel bands of a column. */
export const WAV2LIP_MELS = 80;
/** Columns of a window. */
export const WAV2LIP_COLUMNS = 16;

const WINDOW = 800;
const HOP = 200;
const BINS = WINDOW / 2 + 1;
const PRE_EMPHASIS = 0.97;
const MIN_LEVEL_DB = -100;
const REF_LEVEL_DB = 20;
const MAX_ABS = 4;
const LOWEST_HZ = 55;
const HIGHEST_HZ = 7600;
const COLUMNS_PER_MS = SPEECH_RATE / HOP / 1000;
/** Columns kept: 3.2 s. A window and the speech that came in ahead of it take far less. */
const RING_COLUMNS = 256;

/**
 * In training, the window of a frame begins two frames of 25 fps before it (crop_audio_window, i -
 * 2).
 */
const WINDOW_LEADS_MS = 80;

/** Speech after a frame's own time that its window needs, half an analysis window included. */
export const WAV2LIP_LOOKAHEAD_MS =
  WAV2LIP_COLUMNS / COLUMNS_PER_MS - WINDOW_LEADS_MS + ((WINDOW / 2) * 1000) / SPEECH_RATE;

// Slaney's mel scale (Auditory Toolbox, 1998): linear below 1 kHz, logarithmic above.
const SLANEY_HZ_PER_MEL = 200 / 3;
const SLANEY_LOG_FROM_HZ = 1000;
const SLANEY_LOG_STEP = Math.log(6.4) / 27;
const hzToMel = (hz: number): number =>
  hz < SLANEY_LOG_FROM_HZ
    ? hz / SLANEY_HZ_PER_MEL
    : SLANEY_LOG_FROM_HZ / SLANEY_HZ_PER_MEL + Math.log(hz / SLANEY_LOG_FROM_HZ) / SLANEY_LOG_STEP;
const melToHz = (mel: number): number => {
  const knee = SLANEY_LOG_FROM_HZ / SLANEY_HZ_PER_MEL;
  return mel < knee
    ? mel * SLANEY_HZ_PER_MEL
    : SLANEY_LOG_FROM_HZ * Math.exp(SLANEY_LOG_STEP * (mel - knee));
};

/**
 * Triangular filters: WAV2LIP_MELS rows of BINS, each of unit area in hertz (librosa's
 * norm='slaney').
 */
export function slaneyFilters(): Float32Array[] {
  const low = hzToMel(LOWEST_HZ);
  const high = hzToMel(HIGHEST_HZ);
  const edges = Array.from({ length: WAV2LIP_MELS + 2 }, (_, i) =>
    melToHz(low + ((high - low) * i) / (WAV2LIP_MELS + 1)),
  );
  return Array.from({ length: WAV2LIP_MELS }, (_, band) => {
    const [left, centre, right] = [edges[band]!, edges[band + 1]!, edges[band + 2]!];
    return Float32Array.from({ length: BINS }, (_, bin) => {
      const hz = (bin * SPEECH_RATE) / WINDOW;
      return (
        (Math.max(0, Math.min((hz - left) / (centre - left), (right - hz) / (right - centre))) *
          2) /
        (right - left)
      );
    });
  });
}

const filters = slaneyFilters().map((row) => {
  const first = row.findIndex((weight) => weight > 0);
  const last = row.findLastIndex((weight) => weight > 0);
  return { first: Math.max(0, first), weights: row.slice(Math.max(0, first), last + 1) };
});
const hann = Float32Array.from(
  { length: WINDOW },
  (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / WINDOW),
);

// 800 = 25 x 32 is not a power of two. One level of Cooley-Tukey, 25 interleaved transforms of 32
// points, is fast enough.
const ROWS = 25;
const COLS = 32;
const cos = Float32Array.from({ length: WINDOW }, (_, i) => Math.cos((2 * Math.PI * i) / WINDOW));
const sin = Float32Array.from({ length: WINDOW }, (_, i) => Math.sin((2 * Math.PI * i) / WINDOW));

/** Magnitudes of the DFT of WINDOW real samples. */
class Spectrum {
  readonly #re = new Float32Array(WINDOW);
  readonly #im = new Float32Array(WINDOW);
  readonly magnitudes = new Float32Array(BINS);

  run(input: Float32Array): void {
    const re = this.#re;
    const im = this.#im;
    const { magnitudes } = this;
    for (let r = 0; r < ROWS; r++) {
      for (let k = 0; k < COLS; k++) {
        let sumRe = 0;
        let sumIm = 0;
        for (let c = 0; c < COLS; c++) {
          const value = input[ROWS * c + r]!;
          const angle = (ROWS * c * k) % WINDOW;
          sumRe += value * cos[angle]!;
          sumIm -= value * sin[angle]!;
        }
        re[r * COLS + k] = sumRe;
        im[r * COLS + k] = sumIm;
      }
    }
    for (let bin = 0; bin < BINS; bin++) {
      const k = bin % COLS;
      let sumRe = 0;
      let sumIm = 0;
      for (let r = 0; r < ROWS; r++) {
        const angle = (r * bin) % WINDOW;
        const [x, y, c, s] = [re[r * COLS + k]!, im[r * COLS + k]!, cos[angle]!, sin[angle]!];
        sumRe += x * c + y * s;
        sumIm += y * c - x * s;
      }
      magnitudes[bin] = Math.hypot(sumRe, sumIm);
    }
  }
}

/** One per session. */
export class Wav2LipMel {
  readonly #spectrum = new Spectrum();
  readonly #recent = new Float32Array(WINDOW);
  readonly #windowed = new Float32Array(WINDOW);
  readonly #ring = new Float32Array(RING_COLUMNS * WAV2LIP_MELS);
  #samples = 0;
  #previous = 0;
  /** Columns computed so far. Column `c` is centred on sample `c * 200`. */
  columns = 0;

  /** A new utterance begins: what came before is silence. */
  reset(): void {
    this.#recent.fill(0);
    this.#ring.fill(-MAX_ABS);
    this.#samples = 0;
    this.#previous = 0;
    this.columns = 0;
  }

  constructor() {
    this.reset();
  }

  /** Takes the first `count` samples of `pcm`. */
  push(pcm: Int16Array, count: number): void {
    for (let i = 0; i < count; i++) {
      const value = pcm[i]! / 32_768;
      this.#recent[this.#samples % WINDOW] = value - PRE_EMPHASIS * this.#previous;
      this.#previous = value;
      this.#samples++;
      // A column is complete once half a window has followed its centre.
      if (this.#samples >= WINDOW / 2 && (this.#samples - WINDOW / 2) % HOP === 0) {
        this.#addColumn();
      }
    }
  }

  #addColumn(): void {
    const start = this.#samples - WINDOW;
    for (let i = 0; i < WINDOW; i++) {
      this.#windowed[i] = start + i < 0 ? 0 : this.#recent[(start + i) % WINDOW]! * hann[i]!;
    }
    this.#spectrum.run(this.#windowed);
    const { magnitudes } = this.#spectrum;
    const offset = (this.columns % RING_COLUMNS) * WAV2LIP_MELS;
    for (let band = 0; band < WAV2LIP_MELS; band++) {
      const { first, weights } = filters[band]!;
      let sum = 0;
      for (let i = 0; i < weights.length; i++) {
        sum += weights[i]! * magnitudes[first + i]!;
      }
      const db = 20 * Math.log10(Math.max(1e-5, sum)) - REF_LEVEL_DB;
      this.#ring[offset + band] = Math.min(
        MAX_ABS,
        Math.max(-MAX_ABS, (2 * MAX_ABS * (db - MIN_LEVEL_DB)) / -MIN_LEVEL_DB - MAX_ABS),
      );
    }
    this.columns++;
  }

  /**
   * Writes the window of the frame whose middle is `middleMs` into the speech pushed so far:
   * silence before its beginning and after its end.
   * @param out [WAV2LIP_MELS][WAV2LIP_COLUMNS]
   */
  window(middleMs: number, out: Float32Array): void {
    const first = Math.round((middleMs - FRAME_MS / 2 - WINDOW_LEADS_MS) * COLUMNS_PER_MS);
    for (let i = 0; i < WAV2LIP_COLUMNS; i++) {
      const column = first + i;
      const isKept = column >= 0 && column < this.columns && column >= this.columns - RING_COLUMNS;
      const offset = (column % RING_COLUMNS) * WAV2LIP_MELS;
      for (let band = 0; band < WAV2LIP_MELS; band++) {
        out[band * WAV2LIP_COLUMNS + i] = isKept ? this.#ring[offset + band]! : -MAX_ABS;
      }
    }
  }
}

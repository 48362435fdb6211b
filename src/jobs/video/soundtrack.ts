// The sound of a static video at two rates: 16 kHz mono for the speech model, 48 kHz for the
// listener.
import { SampleQueue } from '../../media/sample-queue.ts';
import { AUDIO_RATE, SPEECH_RATE } from '../../media/timeline.ts';
import { StreamResampler, mixToMono } from '../../native/stream-resampler.ts';
import type { PcmStream } from './audio/pcm-stream.ts';

/** Reads one PCM stream for both. */
export class Soundtrack {
  readonly channels: 1 | 2;
  readonly #source: AsyncIterator<Int16Array>;
  readonly #speech = new SampleQueue();
  readonly #sound = new SampleQueue();
  readonly #toSpeech: StreamResampler;
  readonly #toSound: StreamResampler;
  #isOver = false;

  constructor({ rate, channels, pieces }: PcmStream) {
    this.channels = channels;
    this.#source = iterate(pieces);
    this.#toSpeech = new StreamResampler({
      inputRate: rate,
      outputRate: SPEECH_RATE,
      channels: 1,
      quality: 'medium',
    });
    this.#toSound = new StreamResampler({
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
    out.fill(0, this.#speech.take(out, count), count);
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
    const out = new Int16Array(Math.min(wanted, this.#sound.length));
    this.#sound.take(out, out.length);
    return out;
  }

  /** Releases the resamplers and the source. */
  close(): void {
    this.#toSpeech.close();
    this.#toSound.close();
    void this.#source.return?.();
  }

  async #readPiece(): Promise<void> {
    const { done, value } = await this.#source.next();
    if (done === true) {
      this.#isOver = true;
      this.#sound.push(this.#toSound.flush());
      this.#speech.push(this.#toSpeech.flush());
    } else {
      this.#sound.push(this.#toSound.push(value));
      this.#speech.push(this.#toSpeech.push(mixToMono(value, this.channels)));
    }
  }
}

async function* iterate(pieces: PcmStream['pieces']): AsyncGenerator<Int16Array> {
  yield* pieces;
}

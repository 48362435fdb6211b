// What every audio decoder here gives: a stream of 16-bit samples; and the refusal that tells the sender what to change.

/** A file's sound, decoded piece by piece so that a small file can not fill the memory. */
export interface PcmStream {
  /** Hz. */
  readonly rate: number;
  readonly channels: 1 | 2;
  /** Interleaved pieces, each valid until the next is asked for. */
  readonly pieces: AsyncIterable<Int16Array> | Iterable<Int16Array>;
}

/** The audio can not be used; the message tells its sender what is wrong and what to do. */
export class AudioError extends Error {
  override readonly name = 'AudioError';
}

export const MAX_SECONDS = 600;
export const MIN_RATE = 8000;
export const MAX_RATE = 96_000;

/** Samples per channel in a piece. */
export const PIECE_SAMPLES = 8192;

export function checkRate(rate: number): number {
  if (rate >= MIN_RATE && rate <= MAX_RATE) {
    return rate;
  }
  throw new AudioError(`The audio has ${rate} samples a second; send ${MIN_RATE} to ${MAX_RATE}.`);
}

export function checkChannels(channels: number): 1 | 2 {
  if (channels === 1 || channels === 2) {
    return channels;
  }
  throw new AudioError(`The audio has ${channels} channels; send one (mono) or two (stereo).`);
}

/** Full scale is 1; louder is clipped. */
export const toInt16 = (value: number): number =>
  value >= 1 ? 32_767 : value <= -1 ? -32_768 : Math.round(value * 32_767) || 0;

/** Interleaves what the WebAssembly decoders give: one Float32Array a channel. */
export function interleave(
  planes: readonly Float32Array[],
  channels: 1 | 2,
  from: number,
  samples: number,
): Int16Array {
  const out = new Int16Array(samples * channels);
  for (let c = 0; c < channels; c++) {
    const plane = planes[c]!;
    for (let i = 0; i < samples; i++) {
      out[i * channels + c] = toInt16(plane[from + i]!);
    }
  }
  return out;
}

/** Ends the stream with an AudioError as soon as it is longer than MAX_SECONDS. */
export async function* limitDuration({
  rate,
  channels,
  pieces,
}: PcmStream): AsyncGenerator<Int16Array> {
  let left = MAX_SECONDS * rate;
  for await (const piece of pieces) {
    left -= piece.length / channels;
    if (left < 0) {
      throw tooLong();
    }
    if (piece.length > 0) {
      yield piece;
    }
  }
}

export const tooLong = (): AudioError =>
  new AudioError(`The audio is longer than ${MAX_SECONDS / 60} minutes. Send it in parts.`);

/** Errors that a decoder may report about one packet. */
const MAX_DECODER_ERRORS = 3;

/**
 * Runs a decoder on what a stranger sent: whatever it trips over, the file is at fault. The decoders write each error to the console, and mpg123's
 * wrapper asks again for ever if an error stays: they are left to complain a few times, unheard, and then taken out of their loop. This runs on
 * job threads, where nobody else uses the console.
 *
 * No decoder's `free` is ever called. A packet that is refused can leave the heap of opus-decoder 0.7.12 broken,
 * and `free` then reads outside of it. Each decoder has a WebAssembly memory of its own, which is collected with
 * it: after 2000 decoders the process holds 3 MB more than after the first.
 * @throws AudioError
 */
export async function decodeUntrusted<T>(kind: string, decode: () => T | Promise<T>): Promise<T> {
  const { error } = console;
  let complaints = 0;
  console.error = (...words: unknown[]) => {
    complaints++;
    if (complaints > MAX_DECODER_ERRORS) {
      throw new Error(words.join(' '));
    }
  };
  try {
    return await decode();
  } catch (cause) {
    throw new AudioError(
      `The ${kind} file is broken and cannot be decoded. Send it again, or in another format.`,
      { cause },
    );
  } finally {
    console.error = error;
  }
}

// The common output of all audio decoders, a stream of 16-bit samples, and the error that tells the
// client what to change.

/** Audio that is decoded piece by piece, so that a small file cannot fill the memory. */
export interface PcmStream {
  /** Hz. */
  readonly rate: number;
  readonly channels: 1 | 2;
  /** Interleaved samples. Each piece is valid until the next one is read. */
  readonly pieces: AsyncIterable<Int16Array> | Iterable<Int16Array>;
}

/** The audio cannot be used. The message tells the client what is wrong and what to do. */
export class AudioError extends Error {
  override readonly name = 'AudioError';
}

/** Longest audio, seconds. */
export const MAX_SECONDS = 600;
/** Accepted sample rates, Hz. */
export const MIN_RATE = 8000;
export const MAX_RATE = 96_000;

/** Samples per channel in a piece. */
export const PIECE_SAMPLES = 8192;

/** @throws AudioError when the rate (Hz) is not accepted */
export function checkRate(rate: number): number {
  if (rate >= MIN_RATE && rate <= MAX_RATE) {
    return rate;
  }
  throw new AudioError(`The audio has ${rate} samples a second; send ${MIN_RATE} to ${MAX_RATE}.`);
}

/** @throws AudioError unless the audio is mono or stereo */
export function checkChannels(channels: number): 1 | 2 {
  if (channels === 1 || channels === 2) {
    return channels;
  }
  throw new AudioError(`The audio has ${channels} channels; send one (mono) or two (stereo).`);
}

/** Converts a float sample to 16 bits. Full scale is 1; louder samples are clipped. */
export const toInt16 = (value: number): number =>
  value >= 1 ? 32_767 : value <= -1 ? -32_768 : Math.round(value * 32_767) || 0;

/** Interleaves the output of the WebAssembly decoders, one Float32Array per channel. */
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

/** Passes the stream on, and throws an AudioError when it gets longer than MAX_SECONDS. */
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

/** The error for audio longer than MAX_SECONDS. */
export const tooLong = (): AudioError =>
  new AudioError(`The audio is longer than ${MAX_SECONDS / 60} minutes. Send it in parts.`);

/** Errors that a decoder may report in one call. */
const MAX_DECODER_ERRORS = 3;

/**
 * Runs a decoder on untrusted data; any error means that the file is broken. The decoders write
 * each error to the console, and the wrapper of mpg123 repeats a call for ever when an error
 * persists. So console.error is replaced during the call: it drops the first errors and then
 * throws, which ends the loop. This runs on job threads, where nothing else uses the console.
 *
 * Never call `free` of a decoder. A refused packet can corrupt the heap of opus-decoder 0.7.12, and
 * `free` then reads outside of it. Each decoder has a WebAssembly memory of its own, which is
 * garbage-collected with it: after 2000 decoders the process holds 3 MB more than after the first.
 * @throws AudioError
 */
export async function decodeUntrusted<T>(kind: string, decode: () => T | Promise<T>): Promise<T> {
  const { error } = console;
  let errors = 0;
  console.error = (...words: unknown[]) => {
    errors++;
    if (errors > MAX_DECODER_ERRORS) {
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

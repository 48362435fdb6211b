// Reads the sample formats of raw audio and WAV files: integers, floats and G.711, converted to 16
// bits.
import {
  AudioError,
  PIECE_SAMPLES,
  checkChannels,
  checkRate,
  toInt16,
  tooLong,
  MAX_SECONDS,
  type PcmStream,
} from './pcm-stream.ts';

/** Little-endian sample formats. */
export type SampleFormat = 'u8' | 's16' | 's24' | 's32' | 'f32' | 'f64' | 'alaw' | 'mulaw';

/** Bytes of one sample. */
export const SAMPLE_BYTES: Readonly<Record<SampleFormat, number>> = {
  u8: 1,
  s16: 2,
  s24: 3,
  s32: 4,
  f32: 4,
  f64: 8,
  alaw: 1,
  mulaw: 1,
};

/** Reads the sample at byte `at` as a 16-bit value. */
type Reader = (view: DataView, at: number) => number;

const clip = (value: number): number => Math.max(-32_768, Math.min(32_767, value));

/** G.711 µ-law: one sign bit, three bits of exponent, four of mantissa; inverted. */
const mulaw: Reader = (view, at) => {
  const code = ~view.getUint8(at) & 0xff;
  const size = ((((code & 15) << 3) + 0x84) << ((code >> 4) & 7)) - 0x84;
  return code & 0x80 ? -size : size;
};
/** G.711 A-law: the same fields; even bits inverted. */
const alaw: Reader = (view, at) => {
  const code = view.getUint8(at) ^ 0x55;
  const exponent = (code >> 4) & 7;
  const mantissa = (code & 15) << 4;
  const size = exponent === 0 ? mantissa + 8 : (mantissa + 0x108) << (exponent - 1);
  return code & 0x80 ? size : -size;
};

const READERS: Readonly<Record<SampleFormat, Reader>> = {
  u8: (view, at) => (view.getUint8(at) - 128) * 256,
  s16: (view, at) => view.getInt16(at, true),
  s24: (view, at) => clip(((view.getUint16(at, true) + 128) >> 8) + view.getInt8(at + 2) * 256),
  s32: (view, at) => clip(Math.round(view.getInt32(at, true) / 65_536)),
  f32: (view, at) => toInt16(view.getFloat32(at, true)),
  f64: (view, at) => toInt16(view.getFloat64(at, true)),
  alaw,
  mulaw,
};

/**
 * Opens raw samples.
 * @throws AudioError when they are not a whole number of samples, or over the limits
 */
export function openPcm(
  bytes: Uint8Array,
  format: SampleFormat,
  rate: number,
  channelCount: number,
): PcmStream {
  const channels = checkChannels(channelCount);
  checkRate(rate);
  const stride = SAMPLE_BYTES[format] * channels;
  if (bytes.length % stride !== 0) {
    throw new AudioError(
      `${bytes.length} bytes are not a whole number of samples: a sample of ${format} ` +
        `with ${channels === 1 ? 'one channel' : 'two channels'} has ${stride}. Check format ` +
        'and channel count, and that the audio is complete.',
    );
  }
  if (bytes.length / stride > MAX_SECONDS * rate) {
    throw tooLong();
  }
  return { rate, channels, pieces: pieces(bytes, format, channels) };
}

function* pieces(bytes: Uint8Array, format: SampleFormat, channels: number): Generator<Int16Array> {
  const size = SAMPLE_BYTES[format];
  const read = READERS[format];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const total = bytes.length / size;
  const out = new Int16Array(PIECE_SAMPLES * channels);
  for (let first = 0; first < total; first += out.length) {
    const count = Math.min(out.length, total - first);
    for (let i = 0; i < count; i++) {
      out[i] = read(view, (first + i) * size);
    }
    yield out.subarray(0, count);
  }
}

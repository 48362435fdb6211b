// Reads WAV files: finds format and data among the RIFF chunks ("New Multimedia Data Types",
// Microsoft 1994), and notices truncated files.
import { openPcm, SAMPLE_BYTES, type SampleFormat } from './pcm.ts';
import { AudioError, type PcmStream } from './pcm-stream.ts';

/** Chunk names as big-endian numbers. */
const RIFF = 0x5249_4646;
const WAVE = 0x5741_5645;
const FMT = 0x666d_7420;
const DATA = 0x6461_7461;

// Format tags (WAVE_FORMAT_*).
const PCM = 1;
const FLOAT = 3;
const A_LAW = 6;
const MU_LAW = 7;
const EXTENSIBLE = 0xfffe;

/** Lengths that programs write when they do not know the length, for example into a pipe. */
const UNKNOWN_LENGTHS = [0, 0x7fff_ffff, 0xffff_ffff];
/** Whether a length means "unknown". ffmpeg and sox round such a length down to whole blocks. */
const isUnknown = (length: number): boolean =>
  UNKNOWN_LENGTHS.some(
    (unknown) => length <= unknown && length > unknown - 128 && (unknown !== 0 || length === 0),
  );

interface Format {
  readonly sample: SampleFormat;
  readonly channels: number;
  readonly rate: number;
}

/**
 * Opens a WAV file.
 * @throws AudioError
 */
export function openWav(bytes: Uint8Array): PcmStream {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 12 || view.getUint32(0) !== RIFF || view.getUint32(8) !== WAVE) {
    throw new AudioError(
      'This is not a WAV file: it does not begin with RIFF and WAVE. Check audioFormat.',
    );
  }
  let format: Format | undefined;
  for (let at = 12; at + 8 <= bytes.length;) {
    const chunk = view.getUint32(at);
    const length = view.getUint32(at + 4, true);
    const start = at + 8;
    if (chunk === FMT) {
      format = readFormat(view, start, length);
    }
    if (chunk === DATA) {
      if (format === undefined) {
        throw new AudioError(
          'The WAV file is broken: its data chunk comes before its format chunk.',
        );
      }
      return openData(bytes, start, length, format);
    }
    at = start + length + (length & 1);
  }
  throw new AudioError(
    'The WAV file holds no audio: its data chunk is missing or truncated. Send the whole file.',
  );
}

function openData(
  bytes: Uint8Array,
  start: number,
  length: number,
  { sample, channels, rate }: Format,
): PcmStream {
  const there = bytes.length - start;
  if (length > there && !isUnknown(length)) {
    throw new AudioError(
      `The WAV file is incomplete: it announces ${length} bytes of audio and ` +
        `holds ${there}. Send the whole file.`,
    );
  }
  const stride = SAMPLE_BYTES[sample] * channels;
  const used = isUnknown(length) ? there - (there % stride) : length;
  return openPcm(bytes.subarray(start, start + used), sample, rate, channels);
}

function readFormat(view: DataView, start: number, length: number): Format {
  if (length < 16 || start + length > view.byteLength) {
    throw new AudioError(
      'The WAV file is incomplete: it ends within its header. Send the whole file.',
    );
  }
  let tag = view.getUint16(start, true);
  if (tag === EXTENSIBLE && length >= 26) {
    tag = view.getUint16(start + 24, true);
  }
  const bits = view.getUint16(start + 14, true);
  const sample = sampleFormat(tag, bits);
  if (sample === undefined) {
    throw new AudioError(
      `WAV files of this kind (format ${tag}, ${bits} bits) are not read; save as 16-bit PCM.`,
    );
  }
  return {
    sample,
    channels: view.getUint16(start + 2, true),
    rate: view.getUint32(start + 4, true),
  };
}

function sampleFormat(tag: number, bits: number): SampleFormat | undefined {
  if (tag === PCM) {
    return ({ 8: 'u8', 16: 's16', 24: 's24', 32: 's32' } as const)[bits];
  }
  if (tag === FLOAT) {
    return ({ 32: 'f32', 64: 'f64' } as const)[bits];
  }
  if (tag === A_LAW && bits === 8) {
    return 'alaw';
  }
  if (tag === MU_LAW && bits === 8) {
    return 'mulaw';
  }
  return undefined;
}

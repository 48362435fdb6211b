// Reads MP3 (MPEG audio layer III). Finds the frames, so that the decoder (mpg123 as WebAssembly)
// gets nothing else, and so that a truncated file is noticed.
import { MPEGDecoder } from 'mpg123-decoder';
import {
  AudioError,
  decodeUntrusted,
  checkRate,
  interleave,
  type PcmStream,
} from './pcm-stream.ts';

/** A frame header. */
interface Frame {
  readonly bytes: number;
  readonly rate: number;
  readonly channels: 1 | 2;
  readonly samples: number;
  readonly isMpeg1: boolean;
}

/** Bitrates in kbit/s and sample rates in Hz by index (ISO 11172-3 and 13818-3, layer III). */
const BITRATES_1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const BITRATES_2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const RATES = [44_100, 48_000, 32_000];
/** Frames that must follow each other where the stream begins or resumes. */
const CHAIN = 3;
/** Largest gap before the first frame, without tags, bytes. */
const MAX_LEAD_BYTES = 256 * 1024;

/**
 * Opens an MP3 file.
 * @throws AudioError
 */
export async function openMp3(bytes: Uint8Array): Promise<PcmStream> {
  const start = findStart(bytes);
  const first = start < 0 ? undefined : readHeader(bytes, start);
  if (first === undefined) {
    throw new AudioError(
      'This is not an MP3 file: no MPEG layer III audio was found in it. Check audioFormat.',
    );
  }
  checkRate(first.rate);
  const announced = announcedFrames(bytes, start, first);
  return {
    rate: first.rate,
    channels: first.channels,
    pieces: decode(bytes, start, first, announced),
  };
}

async function* decode(
  bytes: Uint8Array,
  start: number,
  first: Frame,
  announced: number | undefined,
): AsyncGenerator<Int16Array> {
  const decoder = new MPEGDecoder();
  await decoder.ready;
  let frames = -Number(announced !== undefined); // the Xing or VBRI frame holds no sound
  for (let at = start; at < bytes.length;) {
    const frame = readHeader(bytes, at);
    if (frame === undefined || !isLike(frame, first)) {
      at = findChain(bytes, at + 1, bytes.length, first);
      if (at < 0) {
        break;
      }
      continue;
    }
    if (at + frame.bytes > bytes.length) {
      break;
    }
    frames++;
    const unit = bytes.slice(at, at + frame.bytes);
    const { channelData, samplesDecoded } = await decodeUntrusted('MP3', () =>
      decoder.decode(unit),
    );
    if (samplesDecoded > 0) {
      yield interleave(channelData, first.channels, 0, samplesDecoded);
    }
    at += frame.bytes;
  }
  if (announced !== undefined && frames < announced) {
    throw new AudioError(
      `The MP3 file is incomplete: it announces ${announced} frames and ` +
        `holds ${Math.max(0, frames)}. Send the whole file.`,
    );
  }
}

const isLike = (frame: Frame, first: Frame): boolean =>
  frame.rate === first.rate && frame.isMpeg1 === first.isMpeg1;

/** The position of the first frame, after ID3v2 tags and other data; -1 when there is none. */
function findStart(bytes: Uint8Array): number {
  let at = 0;
  while (
    at + 10 <= bytes.length &&
    bytes[at] === 0x49 &&
    bytes[at + 1] === 0x44 &&
    bytes[at + 2] === 0x33
  ) {
    const size =
      ((bytes[at + 6]! & 127) << 21) |
      ((bytes[at + 7]! & 127) << 14) |
      ((bytes[at + 8]! & 127) << 7) |
      (bytes[at + 9]! & 127);
    at += 10 + size + (bytes[at + 5]! & 0x10 ? 10 : 0);
  }
  return findChain(bytes, at, Math.min(bytes.length, at + MAX_LEAD_BYTES));
}

/**
 * The next position where CHAIN frames of one kind follow each other, or fewer when the file ends
 * with them; -1 when there is none.
 */
function findChain(bytes: Uint8Array, from: number, to: number, like?: Frame): number {
  for (let at = from; at < to; at++) {
    const first = readHeader(bytes, at);
    if (first === undefined || (like !== undefined && !isLike(first, like))) {
      continue;
    }
    let next = at + first.bytes;
    let length = 1;
    for (; length < CHAIN && next + 4 <= bytes.length; length++) {
      const frame = readHeader(bytes, next);
      if (frame === undefined || !isLike(frame, first)) {
        break;
      }
      next += frame.bytes;
    }
    if (length === CHAIN || next === bytes.length || (length > 1 && isTag(bytes, next))) {
      return at;
    }
  }
  return -1;
}

/** Whether an ID3v1 or APE tag begins here; both lie at the end of a file. */
const isTag = (bytes: Uint8Array, at: number): boolean =>
  ['TAG', 'APE'].includes(String.fromCharCode(...bytes.subarray(at, at + 3)));

/** The frame header at `at`; undefined when there is none. */
function readHeader(bytes: Uint8Array, at: number): Frame | undefined {
  if (bytes[at] !== 0xff || at + 4 > bytes.length) {
    return undefined;
  }
  const b1 = bytes[at + 1]!;
  const b2 = bytes[at + 2]!;
  const b3 = bytes[at + 3]!;
  const version = (b1 >> 3) & 3; // 3: MPEG 1, 2: MPEG 2, 0: MPEG 2.5
  if ((b1 & 0xe0) !== 0xe0 || version === 1 || ((b1 >> 1) & 3) !== 1) {
    return undefined;
  }
  const isMpeg1 = version === 3;
  const kbps = (isMpeg1 ? BITRATES_1 : BITRATES_2)[b2 >> 4];
  const rate = RATES[(b2 >> 2) & 3];
  if (!kbps || rate === undefined) {
    return undefined;
  }
  const actual = isMpeg1 ? rate : version === 2 ? rate / 2 : rate / 4;
  const samples = isMpeg1 ? 1152 : 576;
  return {
    bytes: Math.floor(((samples / 8) * kbps * 1000) / actual) + ((b2 >> 1) & 1),
    rate: actual,
    channels: b3 >> 6 === 3 ? 1 : 2,
    samples,
    isMpeg1,
  };
}

/**
 * The number of audio frames that the Xing, Info or VBRI header in the first frame announces;
 * undefined without such a header.
 */
function announcedFrames(
  bytes: Uint8Array,
  at: number,
  { isMpeg1, channels }: Frame,
): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const name = (offset: number): string =>
    String.fromCharCode(...bytes.subarray(offset, offset + 4));
  const sideInfo = isMpeg1 ? (channels === 1 ? 17 : 32) : channels === 1 ? 9 : 17;
  const xing = at + 4 + sideInfo;
  const vbri = at + 36;
  if (xing + 12 <= bytes.length && ['Xing', 'Info'].includes(name(xing))) {
    return view.getUint32(xing + 4) & 1 ? view.getUint32(xing + 8) : 0;
  }
  if (vbri + 18 <= bytes.length && name(vbri) === 'VBRI') {
    return view.getUint32(vbri + 14);
  }
  return undefined;
}

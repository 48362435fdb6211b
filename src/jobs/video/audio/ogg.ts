// Reads Ogg files with Opus (RFC 7845) or Vorbis: decodes the first stream of the file with libopus
// or libvorbis as WebAssembly.
import { OggVorbisDecoder } from '@wasm-audio-decoders/ogg-vorbis';
import { OpusDecoder } from 'opus-decoder';
import { oggPages, type OggPage } from './ogg-pages.ts';
import {
  AudioError,
  decodeUntrusted,
  checkChannels,
  checkRate,
  interleave,
  type PcmStream,
} from './pcm-stream.ts';

const OPUS_RATE = 48_000;
/** Bytes per call of the Vorbis decoder: bounds what one call decodes. */
const VORBIS_BYTES = 16 * 1024;

const startsWith = (packet: Uint8Array | undefined, text: string): boolean =>
  packet !== undefined && text === String.fromCharCode(...packet.subarray(0, text.length));

/**
 * Opens an Ogg file.
 * @throws AudioError
 */
export function openOgg(bytes: Uint8Array): PcmStream {
  for (const page of oggPages(bytes)) {
    const head = page.packets[0];
    if (startsWith(head, 'OpusHead')) {
      return openOpus(bytes, head!, page.serial);
    }
    if (startsWith(head, '\u0001vorbis')) {
      return openVorbis(bytes, head!);
    }
    // The headers of all streams are on the first pages.
    if (!page.isFirst) {
      break;
    }
  }
  throw new AudioError('The Ogg file holds neither Opus nor Vorbis audio.');
}

function openOpus(bytes: Uint8Array, head: Uint8Array, serial: number): PcmStream {
  if (head.length < 19) {
    throw new AudioError('The Ogg file is broken: its Opus header is too short.');
  }
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const channels = checkChannels(head[9]!);
  const preSkip = view.getUint16(10, true);
  const gain = 10 ** (view.getInt16(16, true) / 256 / 20); // Q7.8 dB, section 5.1
  if (head[18] !== 0) {
    throw new AudioError(
      'The Ogg file has its Opus channels mapped as surround sound; send mono or stereo.',
    );
  }
  return { rate: OPUS_RATE, channels, pieces: decodeOpus(bytes, serial, channels, preSkip, gain) };
}

async function* decodeOpus(
  bytes: Uint8Array,
  serial: number,
  channels: 1 | 2,
  preSkip: number,
  gain: number,
): AsyncGenerator<Int16Array> {
  const decoder = new OpusDecoder({ channels });
  await decoder.ready;
  let position = 0; // in decoded samples, with the pre-skip
  let headers = 2;
  for (const page of oggPages(bytes)) {
    if (page.serial !== serial) {
      continue;
    }
    for (const packet of page.packets) {
      if (headers > 0) {
        headers--;
        continue;
      }
      const { channelData, samplesDecoded } = await decodeUntrusted('Ogg', () =>
        decoder.decodeFrame(packet),
      );
      if (samplesDecoded === 0) {
        throw new AudioError('The Ogg file is broken: one of its Opus packets cannot be decoded.');
      }
      const from = Math.min(samplesDecoded, Math.max(0, preSkip - position));
      const to = endWithin(page, position, samplesDecoded);
      position += samplesDecoded;
      if (gain !== 1) {
        for (const plane of channelData) {
          for (let i = 0; i < plane.length; i++) {
            plane[i]! *= gain;
          }
        }
      }
      if (to > from) {
        yield interleave(channelData, channels, from, to - from);
      }
    }
  }
}

/**
 * Samples of this packet before the end of the stream. The last page may end it within a packet
 * (section 4.4).
 */
const endWithin = (page: OggPage, position: number, samples: number): number =>
  page.isLast && page.granule >= 0
    ? Math.max(0, Math.min(samples, page.granule - position))
    : samples;

function openVorbis(bytes: Uint8Array, head: Uint8Array): PcmStream {
  if (head.length < 30) {
    throw new AudioError('The Ogg file is broken: its Vorbis header is too short.');
  }
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const channels = checkChannels(head[11]!);
  const rate = checkRate(view.getUint32(12, true));
  return { rate, channels, pieces: decodeVorbis(bytes, channels, rate) };
}

async function* decodeVorbis(
  bytes: Uint8Array,
  channels: 1 | 2,
  rate: number,
): AsyncGenerator<Int16Array> {
  // Read all pages first: a truncated file fails before anything is decoded.
  for (const _page of oggPages(bytes)) {
  }
  const decoder = new OggVorbisDecoder();
  await decoder.ready;
  for (let at = 0; at <= bytes.length; at += VORBIS_BYTES) {
    const isOver = at + VORBIS_BYTES > bytes.length;
    const decoded = await decodeUntrusted('Ogg', () =>
      decoder.decode(bytes.slice(at, at + VORBIS_BYTES)),
    );
    if (decoded.samplesDecoded > 0) {
      yield take(decoded);
    }
    if (!isOver) {
      continue;
    }
    const rest = await decodeUntrusted('Ogg', () => decoder.flush());
    if (rest.samplesDecoded > 0) {
      yield take(rest);
    }
  }

  function take({
    channelData,
    samplesDecoded,
    sampleRate,
    errors,
  }: Awaited<ReturnType<OggVorbisDecoder['decode']>>): Int16Array {
    if (sampleRate !== rate || channelData.length !== channels || errors.length > 0) {
      throw new AudioError('The Ogg file is broken: its Vorbis packets cannot be decoded.');
    }
    return interleave(channelData, channels, 0, samplesDecoded);
  }
}

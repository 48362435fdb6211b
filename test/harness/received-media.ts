// Decodes the packets of a session into pictures and sound on the sender's clock. Tests measure the
// audio-video offset without a player's jitter buffers.
import { spawnSync } from 'node:child_process';
import type { RtpPacket } from 'werift';
import { writeBitstream } from '../../bench/peers/bitstream.ts';
import type { VideoCodec } from '../../src/media/coded-frame.ts';
import { AUDIO_RATE, SPEECH_RATE, VIDEO_CLOCK } from '../../src/media/timeline.ts';
import { native } from '../../src/native/addon.ts';
import type { Recording } from './probe.ts';
import { senderMs, type WeriftPeer } from './werift-peer.ts';

const SIZE = 96;
/** 120 ms, the longest Opus packet, at 16 kHz. */
const MAX_PACKET_SAMPLES = 1920;

/**
 * Times are the sender's wall clock by its sender reports.
 * @throws Error when a packet is missing or ffmpeg complains.
 */
export function toRecording({ video, audio }: WeriftPeer, codec: VideoCodec): Recording {
  const frames = [...Map.groupBy(inOrder(video.packets), ({ header }) => header.timestamp)].filter(
    ([, packets]) => packets.at(-1)!.header.marker,
  ); // the newest may still be arriving
  const bitstream = writeBitstream(
    codec,
    frames.map(([, packets]) => ({ payloads: packets.map(({ payload }) => payload) }) as never),
  );
  const result = spawnSync(
    'ffmpeg',
    [
      '-v',
      'error',
      '-threads',
      '1',
      '-f',
      codec === 'vp8' ? 'ivf' : 'h264',
      '-i',
      'pipe:0',
      '-fps_mode',
      'passthrough',
      '-vf',
      `scale=${SIZE}:${SIZE}:flags=area`,
      '-f',
      'rawvideo',
      '-pix_fmt',
      'gray',
      'pipe:1',
    ],
    { input: bitstream, maxBuffer: 1 << 29 },
  );
  if (result.error) {
    throw result.error;
  }
  if (result.status !== 0 || result.stderr.length > 0) {
    throw new Error(`ffmpeg: ${result.stderr.toString().slice(0, 500)}`);
  }
  const decoded = result.stdout.length / SIZE ** 2;
  if (decoded !== frames.length) {
    throw new Error(`${frames.length} frames arrived, ${decoded} could be decoded`);
  }
  return {
    size: SIZE,
    frames: frames.map(([timestamp], n) => ({
      shownMs: senderMs(video, timestamp, VIDEO_CLOCK),
      calledMs: 0,
      captureMs: undefined,
      receiveMs: undefined,
      rtp: timestamp,
      presented: n,
      width: 512,
      height: 512,
      luma: result.stdout.subarray(n * SIZE ** 2, (n + 1) * SIZE ** 2),
    })),
    ...decodeSound(inOrder(audio.packets), (timestamp) => senderMs(audio, timestamp, AUDIO_RATE)),
    events: [],
    nowMs: 0,
  };
}

function decodeSound(
  packets: readonly RtpPacket[],
  timeOf: (timestamp: number) => number,
): { sound: Int16Array; soundStartMs: number } {
  const decoder = new native.OpusDecoder({ sampleRate: SPEECH_RATE, channels: 1 });
  const first = packets[0]!.header.timestamp;
  const total =
    (((packets.at(-1)!.header.timestamp - first) >>> 0) * SPEECH_RATE) / AUDIO_RATE +
    MAX_PACKET_SAMPLES;
  const sound = new Int16Array(total);
  const piece = new Int16Array(MAX_PACKET_SAMPLES);
  for (const { header, payload } of packets) {
    const samples = decoder.decode(payload, piece);
    sound.set(
      piece.subarray(0, samples),
      (((header.timestamp - first) >>> 0) * SPEECH_RATE) / AUDIO_RATE,
    );
  }
  decoder.close();
  return { sound, soundStartMs: timeOf(first) };
}

/** By sequence number (which wraps at 2^16), each once. @throws Error when one is missing. */
function inOrder(packets: readonly RtpPacket[]): RtpPacket[] {
  const first = packets[0]!.header.sequenceNumber;
  const distance = ({ header }: RtpPacket): number => ((header.sequenceNumber - first) << 16) >> 16;
  const sorted = [...new Map(packets.map((packet) => [distance(packet), packet])).entries()].sort(
    ([a], [b]) => a - b,
  );
  const missing = sorted.findIndex(([at], n) => n > 0 && at !== sorted[n - 1]![0] + 1);
  if (missing > 0) {
    throw new Error(
      `a packet is missing after number ${sorted[missing - 1]![0]} of ${sorted.length}`,
    );
  }
  return sorted.map(([, packet]) => packet);
}

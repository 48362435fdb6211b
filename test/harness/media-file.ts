// Reads media files with ffprobe and ffmpeg: their streams and packets, and the pictures and
// samples that a player would present.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Recording } from './probe.ts';
import { SPEECH_RATE, FPS, FRAME_MS } from '../../src/media/timeline.ts';

const run = promisify(execFile);

export interface MediaStream {
  readonly codec_name: string;
  readonly codec_type: 'video' | 'audio';
  readonly profile: string;
  readonly width?: number;
  readonly height?: number;
  readonly avg_frame_rate: string;
  readonly sample_rate?: string;
  readonly channels?: number;
  readonly start_time: string;
  readonly duration?: string;
  readonly nb_frames?: string;
}

export interface MediaPacket {
  readonly codec_type: 'video' | 'audio';
  readonly dts: number;
  readonly pts: number;
  readonly seconds: number;
  readonly isKey: boolean;
}

export interface MediaInfo {
  readonly video: MediaStream;
  readonly audio: MediaStream;
  readonly seconds: number;
  readonly packets: readonly MediaPacket[];
}

/** @param file a path or URL of an MP4 or an HLS playlist */
export async function probeFile(file: string): Promise<MediaInfo> {
  const { stdout, stderr } = await run(
    'ffprobe',
    [
      '-v',
      'warning',
      '-show_format',
      '-show_streams',
      '-show_packets',
      '-of',
      'json',
      ...allow(file),
      file,
    ],
    { maxBuffer: 1 << 28 },
  );
  if (stderr !== '') {
    throw new Error(`ffprobe complains about ${file}: ${stderr}`);
  }
  const { streams, format, packets } = JSON.parse(stdout) as {
    streams: MediaStream[];
    format: { duration: string };
    packets: Record<string, string>[];
  };
  const one = (type: string): MediaStream => {
    const found = streams.filter(({ codec_type }) => codec_type === type);
    if (found.length !== 1) {
      throw new Error(`${file} has ${found.length} ${type} streams`);
    }
    return found[0]!;
  };
  return {
    video: one('video'),
    audio: one('audio'),
    seconds: Number(format.duration),
    packets: packets.map((packet) => ({
      codec_type: packet['codec_type'] as 'video' | 'audio',
      dts: Number(packet['dts_time']),
      pts: Number(packet['pts_time']),
      seconds: Number(packet['duration_time']),
      isKey: packet['flags']!.includes('K'),
    })),
  };
}

/**
 * All that is seen, small and grey, and all that is heard. Each frame stands for the middle of its
 * interval. In HLS ffmpeg lets the encoder's priming be heard, before time 0; in MP4 it leaves it
 * out.
 */
export async function watchFile(file: string, size = 128): Promise<Recording> {
  const { audio, video } = await probeFile(file);
  const soundStartMs = (Number(audio.start_time) - Number(video.start_time)) * 1000;
  const options = { encoding: 'buffer', maxBuffer: 1 << 30 } as const;
  const [seen, heard] = await Promise.all([
    run(
      'ffmpeg',
      [
        '-v',
        'error',
        ...allow(file),
        '-i',
        file,
        '-map',
        '0:v:0',
        '-fps_mode',
        'passthrough',
        '-vf',
        `scale=${size}:${size}:flags=area,format=gray`,
        '-f',
        'rawvideo',
        '-',
      ],
      options,
    ),
    run(
      'ffmpeg',
      [
        '-v',
        'error',
        ...allow(file),
        '-i',
        file,
        '-map',
        '0:a:0',
        '-ac',
        '1',
        '-ar',
        String(SPEECH_RATE),
        '-f',
        's16le',
        '-',
      ],
      options,
    ),
  ]);
  for (const { stderr } of [seen, heard]) {
    if (stderr.length > 0) {
      throw new Error(`ffmpeg complains about ${file}: ${stderr.toString()}`);
    }
  }
  const area = size * size;
  const frames = Array.from({ length: seen.stdout.length / area }, (_, n) => {
    const shownMs = (n + 0.5) * FRAME_MS;
    return {
      shownMs,
      calledMs: shownMs,
      captureMs: undefined,
      receiveMs: undefined,
      rtp: undefined,
      presented: n,
      width: size,
      height: size,
      luma: new Uint8Array(seen.stdout.buffer, seen.stdout.byteOffset + n * area, area),
    };
  });
  const sound = new Int16Array(Uint8Array.from(heard.stdout).buffer);
  return { size, frames, sound, soundStartMs, events: [], nowMs: (frames.length * 1000) / FPS };
}

/**
 * ffmpeg follows a playlist's segments only where it is told which names and protocols are meant.
 */
const allow = (file: string): string[] =>
  file.includes('.m3u8')
    ? ['-allowed_extensions', 'ALL', '-protocol_whitelist', 'file,http,tcp,crypto']
    : [];

/** Names of the top-level boxes of an MP4 file, in order. */
export function topBoxes(bytes: Uint8Array): string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const names: string[] = [];
  for (let at = 0; at + 8 <= bytes.length;) {
    const short = view.getUint32(at);
    names.push(String.fromCharCode(...bytes.subarray(at + 4, at + 8)));
    const length = short === 1 ? Number(view.getBigUint64(at + 8)) : short;
    if (length < 8 || at + length > bytes.length) {
      throw new Error(
        `box ${names.at(-1)} at ${at} has ${length} bytes, of which ${bytes.length - at} are there`,
      );
    }
    at += length;
  }
  return names;
}

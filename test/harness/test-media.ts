// Coded test media made by ffmpeg: moving test picture with a tone, as VP8 or H.264 frames and Opus
// packets.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { VideoCodec } from '../../src/media/coded-frame.ts';

const run = promisify(execFile);

export interface TestMedia {
  readonly frames: readonly Buffer[];
  readonly packets: readonly Buffer[];
}

/**
 * `seconds` of 512x512 at 30 fps, key frame first (and then each `keyInterval` frames), and 20 ms
 * Opus packets of a tone.
 */
export async function makeMedia(
  codec: VideoCodec,
  seconds = 2,
  keyInterval = 60,
): Promise<TestMedia> {
  const picture = ['-f', 'lavfi', '-i', `testsrc2=size=512x512:rate=30:duration=${seconds}`];
  const vp8 = [
    '-c:v',
    'libvpx',
    '-deadline',
    'realtime',
    '-cpu-used',
    '12',
    '-b:v',
    '800k',
    '-g',
    String(keyInterval),
    '-auto-alt-ref',
    '0',
    '-lag-in-frames',
    '0',
    '-f',
    'ivf',
  ];
  const h264 = [
    '-c:v',
    'libx264',
    '-profile:v',
    'baseline',
    '-pix_fmt',
    'yuv420p',
    '-preset',
    'ultrafast',
    '-tune',
    'zerolatency',
    '-b:v',
    '800k',
    '-g',
    String(keyInterval),
    '-x264-params',
    'slices=1:sliced-threads=0:aud=1',
    '-f',
    'h264',
  ];
  const tone = [
    '-f',
    'lavfi',
    '-i',
    `sine=frequency=440:sample_rate=48000:duration=${seconds}`,
    '-c:a',
    'libopus',
    '-b:a',
    '32k',
    '-ac',
    '1',
    '-frame_duration',
    '20',
    '-f',
    'ogg',
  ];
  const ffmpeg = async (args: readonly string[]): Promise<Buffer> =>
    (
      await run('ffmpeg', ['-v', 'error', '-threads', '1', ...args, 'pipe:1'], {
        encoding: 'buffer',
        maxBuffer: 64 << 20,
      })
    ).stdout;
  const [video, audio] = await Promise.all([
    ffmpeg([...picture, ...(codec === 'vp8' ? vp8 : h264)]),
    ffmpeg(tone),
  ]);
  return {
    frames: codec === 'vp8' ? framesOfIvf(video) : accessUnits(video),
    packets: packetsOfOgg(audio),
  };
}

function framesOfIvf(file: Buffer): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = file.readUInt16LE(6); at + 12 <= file.length;) {
    const bytes = file.readUInt32LE(at);
    frames.push(file.subarray(at + 12, at + 12 + bytes));
    at += 12 + bytes;
  }
  return frames;
}

/** Splits an Annex B stream at access unit delimiters. */
function accessUnits(stream: Buffer): Buffer[] {
  const delimiter = Buffer.from([0, 0, 0, 1, 9]);
  const starts: number[] = [];
  for (let at = stream.indexOf(delimiter); at >= 0; at = stream.indexOf(delimiter, at + 1)) {
    starts.push(at);
  }
  return starts.map((start, index) => stream.subarray(start, starts[index + 1] ?? stream.length));
}

function packetsOfOgg(file: Buffer): Buffer[] {
  const packets: Buffer[] = [];
  let parts: Buffer[] = [];
  for (let page = 0; page + 27 <= file.length;) {
    const segments = file[page + 26] ?? 0;
    let at = page + 27 + segments;
    for (let index = 0; index < segments; index++) {
      const bytes = file[page + 27 + index] ?? 0;
      parts.push(file.subarray(at, at + bytes));
      at += bytes;
      if (bytes < 255) {
        packets.push(Buffer.concat(parts));
        parts = [];
      }
    }
    page = at;
  }
  return packets.slice(2); // without the two Ogg Opus headers
}

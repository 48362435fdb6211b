// Decodes frames with ffmpeg and compares pictures.
import { spawnSync } from 'node:child_process';
import { i420Bytes } from '../../src/media/picture.ts';

/** Wraps VP8 frames in an IVF file for ffmpeg. */
function toIvf(frames: readonly Uint8Array[], width: number, height: number): Buffer {
  const header = Buffer.alloc(32);
  header.write('DKIF\0\0\x20\0VP80', 'latin1');
  header.writeUInt16LE(width, 12);
  header.writeUInt16LE(height, 14);
  header.writeUInt32LE(30, 16);
  header.writeUInt32LE(1, 20);
  header.writeUInt32LE(frames.length, 24);
  const parts: Uint8Array[] = [header];
  frames.forEach((frame, index) => {
    const head = Buffer.alloc(12);
    head.writeUInt32LE(frame.length, 0);
    head.writeUInt32LE(index, 4);
    parts.push(head, frame);
  });
  return Buffer.concat(parts);
}

/** @returns the decoded I420 pictures. @throws when ffmpeg reports an error or a warning. */
export function decode(
  codec: 'vp8' | 'h264',
  frames: readonly Uint8Array[],
  width: number,
  height: number,
): Uint8Array[] {
  const input = codec === 'vp8' ? toIvf(frames, width, height) : Buffer.concat(frames);
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
      '-f',
      'rawvideo',
      '-pix_fmt',
      'yuv420p',
      'pipe:1',
    ],
    { input, maxBuffer: 1 << 29 },
  );
  if (result.error) {
    throw result.error;
  }
  if (result.status !== 0 || result.stderr.length > 0) {
    throw new Error(`ffmpeg: ${result.stderr.toString().slice(0, 500)}`);
  }
  const size = i420Bytes(width, height);
  return Array.from({ length: result.stdout.length / size }, (_, i) =>
    result.stdout.subarray(i * size, (i + 1) * size),
  );
}

/** @returns the peak signal-to-noise ratio of luma, dB, in the whole picture or a rectangle */
export function psnr(
  a: Uint8Array,
  b: Uint8Array,
  width: number,
  height: number,
  [left, top, right, bottom]: readonly [number, number, number, number] = [0, 0, width, height],
): number {
  let sum = 0;
  for (let y = top; y < bottom; y++) {
    for (let x = left; x < right; x++) {
      sum += (a[y * width + x]! - b[y * width + x]!) ** 2;
    }
  }
  const mse = sum / ((right - left) * (bottom - top));
  return mse === 0 ? 99 : 10 * Math.log10(255 ** 2 / mse);
}

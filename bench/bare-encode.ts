// The least a session could cost: nothing but the encoder, on pictures a peer received, round robin
// over as many encoders as there were sessions. Run as a process of its own, on the worker's core:
// `node bare-encode.ts FILE CODEC KBPS ENCODERS ROUNDS` prints JSON.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { VideoCodec } from '../src/media/coded-frame.ts';
import { PICTURE_SIZE, i420Bytes } from '../src/media/picture.ts';
import { FPS } from '../src/media/timeline.ts';
import { KEY_FRAME_BIT, native } from '../src/native/addon.ts';

export interface BareEncode {
  readonly msPerFrame: number;
  readonly kbps: number;
  readonly frames: number;
}

const MAX_PICTURES = 240;
const WARM_UP_ROUNDS = 30;

async function main([
  file,
  codec,
  kbps,
  encoderCount,
  rounds,
]: readonly string[]): Promise<BareEncode> {
  const bytes = i420Bytes(PICTURE_SIZE, PICTURE_SIZE);
  // The first second is the key frame and its refinement, and idle.
  const { stdout } = await promisify(execFile)(
    'ffmpeg',
    [
      '-v',
      'error',
      '-i',
      file!,
      '-fps_mode',
      'passthrough',
      '-vf',
      `select=gte(n\\,60),scale=${PICTURE_SIZE}:${PICTURE_SIZE}`,
      '-frames:v',
      String(MAX_PICTURES),
      '-pix_fmt',
      'yuv420p',
      '-f',
      'rawvideo',
      '-',
    ],
    { encoding: 'buffer', maxBuffer: bytes * (MAX_PICTURES + 1) },
  );
  const count = Math.floor(stdout.length / bytes);
  if (count < 30) {
    throw new Error(`only ${count} pictures to encode in ${file}`);
  }
  const pictures = Array.from(
    { length: count },
    (_, index) => new Uint8Array(stdout.subarray(index * bytes, (index + 1) * bytes)),
  );
  const options = {
    codec: codec as VideoCodec,
    width: PICTURE_SIZE,
    height: PICTURE_SIZE,
    fps: FPS,
    bitrateKbps: Number(kbps),
  };
  const encoders = Array.from(
    { length: Number(encoderCount) },
    () => new native.VideoEncoder(options),
  );
  const out = new Uint8Array(bytes + 65_536);
  let coded = 0;
  let startMs = 0;
  for (let round = -WARM_UP_ROUNDS; round < Number(rounds); round++) {
    if (round === 0) {
      startMs = native.threadCpuMs();
    }
    for (const [index, encoder] of encoders.entries()) {
      // There and back again, so that no cut comes between the last picture and the first.
      const step = (round + WARM_UP_ROUNDS + index * 7) % (2 * count - 2);
      const result = encoder.encode(
        pictures[step < count ? step : 2 * count - 2 - step]!,
        out,
        false,
        null,
      );
      if (round >= 0) {
        coded += result & ~KEY_FRAME_BIT;
      }
    }
  }
  const frames = encoders.length * Number(rounds);
  const msPerFrame = (native.threadCpuMs() - startMs) / frames;
  for (const encoder of encoders) {
    encoder.close();
  }
  return { msPerFrame, frames, kbps: (coded * 8 * FPS) / 1000 / frames };
}

if (process.argv[1] === import.meta.filename) {
  console.log(JSON.stringify(await main(process.argv.slice(2))));
}

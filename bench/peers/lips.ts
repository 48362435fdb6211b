// When lips began to move, judged from decoded pictures alone: where the picture moves with speech
// and not without, there is the mouth.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { quantile } from '../report/stats.ts';

const SIDE = 128;
const BLOCK = 8;
const BLOCKS = SIDE / BLOCK;
const MOUTH_BLOCKS = 8;

/**
 * Luma of every frame of a bitstream, scaled to 128x128.
 * @throws Error when ffmpeg is absent or finds nothing to decode.
 */
export async function decodeLuma(file: string): Promise<Buffer[]> {
  const { stdout } = await promisify(execFile)(
    'ffmpeg',
    [
      '-v',
      'error',
      '-i',
      file,
      '-fps_mode',
      'passthrough',
      '-vf',
      `scale=${SIDE}:${SIDE}:flags=area`,
      '-pix_fmt',
      'gray',
      '-f',
      'rawvideo',
      '-',
    ],
    { encoding: 'buffer', maxBuffer: 1 << 30 },
  );
  return Array.from({ length: Math.floor(stdout.length / SIDE ** 2) }, (_, index) =>
    stdout.subarray(index * SIDE ** 2, (index + 1) * SIDE ** 2),
  );
}

/** Mean absolute change of each block against the frame before. */
function changes(frames: readonly Buffer[]): Float32Array[] {
  return frames.map((frame, index) => {
    const change = new Float32Array(BLOCKS ** 2);
    const before = frames[Math.max(0, index - 1)]!;
    for (let y = 0; y < SIDE; y++) {
      for (let x = 0; x < SIDE; x++) {
        change[Math.floor(y / BLOCK) * BLOCKS + Math.floor(x / BLOCK)]! +=
          Math.abs(frame[y * SIDE + x]! - before[y * SIDE + x]!) / BLOCK ** 2;
      }
    }
    return change;
  });
}

const meanOver = (change: readonly Float32Array[], block: number): number =>
  change.reduce((sum, one) => sum + one[block]!, 0) / Math.max(1, change.length);

/** A stretch of time in which the face speaks for certain. */
export interface SpeakingSpan {
  readonly sentMs: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * @param arrivalsMs when each frame was complete
 * @param spans one per utterance; frames outside of all of them (from `sentMs` on) are taken as
 * idle
 * @returns per utterance the milliseconds from `sentMs` to the first frame whose lips move; NaN
 * where none was found
 */
export function lipOnsets(
  frames: readonly Buffer[],
  arrivalsMs: readonly number[],
  spans: readonly SpeakingSpan[],
): number[] {
  const change = changes(frames);
  const during =
    (from: (span: SpeakingSpan) => number, to: (span: SpeakingSpan) => number) =>
    (_: unknown, index: number): boolean =>
      spans.some((span) => arrivalsMs[index]! >= from(span) && arrivalsMs[index]! <= to(span));
  const speaking = change.filter(
    during(
      ({ fromMs }) => fromMs,
      ({ toMs }) => toMs,
    ),
  );
  const isBusy = during(
    ({ sentMs }) => sentMs,
    ({ toMs }) => toMs + 700,
  );
  // The first second holds the key frame and its refinement.
  const idle = change.filter((_, index) => index > 30 && !isBusy(_, index));
  const mouth = Array.from({ length: BLOCKS ** 2 }, (_, block) => ({
    block,
    gain: meanOver(speaking, block) - meanOver(idle, block),
  }))
    .sort((a, b) => b.gain - a.gain)
    .slice(0, MOUTH_BLOCKS)
    .map(({ block }) => block);
  const energy = change.map(
    (one) => mouth.reduce((sum, block) => sum + one[block]!, 0) / MOUTH_BLOCKS,
  );
  const rest = energy.filter((_, index) => index > 30 && !isBusy(_, index));
  const threshold = Math.max(0.3, quantile(rest, 0.995) * 1.5);
  return spans.map(({ sentMs, toMs }) => {
    const first = energy.findIndex(
      (value, index) =>
        arrivalsMs[index]! >= sentMs &&
        arrivalsMs[index]! <= toMs &&
        // One lone change may be the encoder refining; a mouth that opens goes on moving.
        value > threshold &&
        ((energy[index + 1] ?? 0) > threshold || (energy[index + 2] ?? 0) > threshold),
    );
    return first < 0 ? Number.NaN : arrivalsMs[first]! - sentMs;
  });
}

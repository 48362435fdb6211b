// When lips began to move, judged from decoded pictures alone: the head is held still, and where the
// picture then moves with speech and not without, there is the mouth.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { steadyLumas } from '../../test/harness/steady.ts';
import { quantile } from '../report/stats.ts';

const SIDE = 128;
const BLOCK = 8;
const BLOCKS = SIDE / BLOCK;
const MOUTH_BLOCKS = 8;
/** Blocks from the one that moves most. */
const MOUTH_REACH = 3;
/** The first second holds the key frame and its refinement. */
const FIRST_FRAMES = 30;
/** Lips are compared with the mean of so many frames before. */
const REFERENCE_FRAMES = 3;
/**
 * A mouth that opens goes on moving: the difference lasts for so many frames. One lone difference may
 * be the encoder's.
 */
const LASTING_FRAMES = 3;
/** The mouth is at rest for so long before speech is sent, milliseconds. */
const REST_MS = 350;
/**
 * Lips move when the difference exceeds this multiple of the greatest at rest, and this share of the
 * median in speech. With a head of natural motion it is up to 1.8 grey levels at rest, 2.2 to 14 in
 * the first frames of speech.
 */
const ABOVE_REST = 1.1;
const SHARE_OF_SPEECH = 0.4;

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

/** Mean absolute difference of each block of two pictures. */
function blockDifferences(a: Uint8Array, b: ArrayLike<number>): Float32Array {
  const out = new Float32Array(BLOCKS ** 2);
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      out[Math.floor(y / BLOCK) * BLOCKS + Math.floor(x / BLOCK)]! +=
        Math.abs(a[y * SIDE + x]! - b[y * SIDE + x]!) / BLOCK ** 2;
    }
  }
  return out;
}

const meanOver = (change: readonly Float32Array[], block: number): number =>
  change.reduce((sum, one) => sum + one[block]!, 0) / Math.max(1, change.length);

/** In blocks, along the axis on which it is greater. */
const distance = (one: number, other: number): number =>
  Math.max(
    Math.abs((one % BLOCKS) - (other % BLOCKS)),
    Math.abs(Math.floor(one / BLOCKS) - Math.floor(other / BLOCKS)),
  );

/** The least difference over a few frames from `at` on against the mean of those before. */
function lastingDifference(
  frames: readonly Uint8Array[],
  mouth: readonly number[],
  at: number,
): number {
  const reference = new Float32Array(SIDE ** 2);
  for (const frame of frames.slice(Math.max(0, at - REFERENCE_FRAMES), at)) {
    for (let i = 0; i < reference.length; i++) {
      reference[i]! += frame[i]! / REFERENCE_FRAMES;
    }
  }
  const following = frames.slice(at, at + LASTING_FRAMES).map((frame) => {
    const difference = blockDifferences(frame, reference);
    return mouth.reduce((sum, block) => sum + difference[block]!, 0) / mouth.length;
  });
  return Math.min(...following);
}

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
  const held = steadyLumas(frames, SIDE);
  const count = Math.min(held.length, arrivalsMs.length);
  const indices = [...Array(count).keys()];
  const isWithin = (
    index: number,
    from: (span: SpeakingSpan) => number,
    to: (span: SpeakingSpan) => number,
  ): boolean =>
    spans.some((span) => arrivalsMs[index]! >= from(span) && arrivalsMs[index]! <= to(span));
  const isIdle = (index: number): boolean =>
    index > FIRST_FRAMES &&
    !isWithin(
      index,
      ({ sentMs }) => sentMs,
      ({ toMs }) => toMs + 600,
    );
  const isSpeaking = (index: number): boolean =>
    isWithin(
      index,
      ({ fromMs }) => fromMs,
      ({ toMs }) => toMs,
    );
  const change = indices.map((n) => blockDifferences(held[n]!, held[Math.max(0, n - 1)]!));
  const speaking = change.filter((_, n) => isSpeaking(n));
  const idle = change.filter((_, n) => isIdle(n));
  const gains = Array.from({ length: BLOCKS ** 2 }, (_, block) => ({
    block,
    gain: meanOver(speaking, block) - meanOver(idle, block),
  }))
    // Eyes move with speech, too.
    .filter(({ block }) => block >= BLOCKS ** 2 / 2)
    .sort((one, other) => other.gain - one.gain);
  const middle = gains[0]!.block;
  const mouth = gains
    .map(({ block }) => block)
    .filter((block) => distance(block, middle) <= MOUTH_REACH)
    .slice(0, MOUTH_BLOCKS);
  // Each frame is compared with those just before it: since longer ago the head has turned.
  const difference = (n: number): number => lastingDifference(held, mouth, n);
  const rest = indices.filter((n) => {
    const [from, to] = [arrivalsMs[n - REFERENCE_FRAMES], arrivalsMs[n + LASTING_FRAMES - 1]];
    return spans.some(({ sentMs }) => from! >= sentMs - REST_MS && to! < sentMs);
  });
  const threshold = Math.max(
    ABOVE_REST * Math.max(0, ...rest.map(difference)),
    SHARE_OF_SPEECH * quantile(indices.filter(isSpeaking).map(difference), 0.5),
  );
  return spans.map(({ sentMs, toMs }) => {
    const first = indices.find(
      (n) => arrivalsMs[n]! >= sentMs && arrivalsMs[n]! <= toMs && difference(n) > threshold,
    );
    return first === undefined ? Number.NaN : arrivalsMs[first]! - sentMs;
  });
}

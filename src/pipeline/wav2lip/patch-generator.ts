// The patches of one session, made on the inference thread: speech in, patches out.
import { monotonicMs } from '../../base/time.ts';
import { FPS, FRAME_MS, SPEECH_RATE, speechSamplesInStep } from '../../media/timeline.ts';
import { PatchConverter, patchBytes } from './patch.ts';
import type { Wav2LipFace } from './wav2lip-face.ts';
import { WAV2LIP_LOOKAHEAD_MS, Wav2LipMel } from './wav2lip-mel.ts';
import { type Wav2LipNetwork, Wav2LipRefused } from './wav2lip-network.ts';

const TIMED_PATCHES = 12;
/** Share of a frame that a patch may take: the inference thread has its core not to itself. */
const MAX_FRAME_SHARE = 0.8;

/**
 * Makes the patches of one session with its Wav2Lip-type network: collects speech of 16 kHz, and
 * runs the network on the mel window and the face image of each requested frame.
 */
export class PatchGenerator {
  readonly face: Wav2LipFace;
  readonly #network: Wav2LipNetwork;
  readonly #image;
  readonly #converter: PatchConverter;
  readonly #mel = new Wav2LipMel();
  #samples = 0;

  constructor(face: Wav2LipFace, network: Wav2LipNetwork) {
    this.face = face;
    this.#network = network;
    this.#image = network.imageTensor(face.image);
    this.#converter = new PatchConverter(face.box, network.side);
  }

  /** A new utterance begins: forget the speech before it. */
  reset(): void {
    this.#mel.reset();
    this.#samples = 0;
  }

  /** @param pcm speech, 16 kHz */
  pushAudio(pcm: Int16Array): void {
    this.#mel.push(pcm, pcm.length);
    this.#samples += pcm.length;
  }

  /**
   * Makes the patch of the frame whose window ends `backMs` before the end of the speech so far.
   * @param patch I420, `patchBytes(face.box)` bytes, overwritten
   * @throws Wav2LipRefused when the network's output is not a picture
   */
  async make(backMs: number, patch: Uint8Array): Promise<void> {
    const network = this.#network;
    const speechMs = (this.#samples * 1000) / SPEECH_RATE;
    this.#mel.window(speechMs - WAV2LIP_LOOKAHEAD_MS - backMs, network.mel);
    await network.run(this.#image);
    this.#converter.convert(network.picture, patch);
  }
}

/**
 * Times whole patches, from speech to I420, on the calling thread.
 * @returns milliseconds per patch, the shortest of TIMED_PATCHES
 * @throws Wav2LipRefused with the figures when one takes longer than `maxFrameMs`
 */
export async function measurePatchMs(
  network: Wav2LipNetwork,
  face: Wav2LipFace,
  maxFrameMs = FRAME_MS * MAX_FRAME_SHARE,
): Promise<number> {
  const generator = new PatchGenerator(face, network);
  const patch = new Uint8Array(patchBytes(face.box));
  let bestMs = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 1 + TIMED_PATCHES; i++) {
    const startMs = monotonicMs();
    generator.pushAudio(new Int16Array(speechSamplesInStep(i)));
    await generator.make(0, patch);
    // The first run allocates.
    if (i > 0) {
      bestMs = Math.min(bestMs, monotonicMs() - startMs);
    }
  }
  if (bestMs <= maxFrameMs) {
    return bestMs;
  }
  const threads = network.threads === 1 ? 'one thread' : `${network.threads} threads`;
  throw new Wav2LipRefused(
    `WAV2LIP_MODEL takes ${bestMs.toFixed(1)} ms a frame on this machine with ${threads} ` +
      `(WAV2LIP_THREADS) and has ${maxFrameMs.toFixed(1)}: it cannot hold ${FPS} frames a second`,
  );
}

// One session's mouth in the inference thread: speech in, patches out.
import { monotonicMs } from '../../base/time.ts';
import { FPS, FRAME_MS, SPEECH_RATE, speechSamplesInStep } from '../../media/timeline.ts';
import { PatchMaker, type Wav2LipFace, patchBytes } from './face.ts';
import { WAV2LIP_LOOKAHEAD_MS, Wav2LipMel } from './mel.ts';
import { type Wav2LipNetwork, Wav2LipRefused } from './network.ts';

const TIMED_MOUTHS = 12;
/** Share of a frame that a mouth may take: the thread has nothing else to do, but not the core to itself. */
const MAX_FRAME_SHARE = 0.8;

export class InferenceClient {
  readonly face: Wav2LipFace;
  readonly #network: Wav2LipNetwork;
  readonly #image;
  readonly #maker: PatchMaker;
  readonly #mel = new Wav2LipMel();
  #heardSamples = 0;

  constructor(face: Wav2LipFace, network: Wav2LipNetwork) {
    this.face = face;
    this.#network = network;
    this.#image = network.imageTensor(face.image);
    this.#maker = new PatchMaker(face.box, network.side);
  }

  /** A new utterance begins: forget what was heard. */
  reset(): void {
    this.#mel.reset();
    this.#heardSamples = 0;
  }

  /** Speech, 16 kHz. */
  hear(pcm: Int16Array): void {
    this.#mel.push(pcm, pcm.length);
    this.#heardSamples += pcm.length;
  }

  /** The mouth of the frame whose window ends `backMs` before the speech heard so far, as I420 in `patch` (`patchBytes`). @throws Wav2LipRefused when the network gives no picture */
  async make(backMs: number, patch: Uint8Array): Promise<void> {
    const network = this.#network;
    this.#mel.window(
      (this.#heardSamples * 1000) / SPEECH_RATE - WAV2LIP_LOOKAHEAD_MS - backMs,
      network.mel,
    );
    await network.run(this.#image);
    this.#maker.make(network.picture, patch);
  }
}

/**
 * Times whole mouths, speech to patch, on the calling thread.
 * @returns milliseconds that one takes
 * @throws Wav2LipRefused with the figures when it can not hold the frame rate here
 */
export async function measureInference(
  network: Wav2LipNetwork,
  face: Wav2LipFace,
  maxFrameMs = FRAME_MS * MAX_FRAME_SHARE,
): Promise<number> {
  const mouth = new InferenceClient(face, network);
  const patch = new Uint8Array(patchBytes(face.box));
  let bestMs = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 1 + TIMED_MOUTHS; i++) {
    const startMs = monotonicMs();
    mouth.hear(new Int16Array(speechSamplesInStep(i)));
    await mouth.make(0, patch);
    if (i > 0) {
      bestMs = Math.min(bestMs, monotonicMs() - startMs);
    } // the first run allocates
  }
  if (bestMs <= maxFrameMs) {
    return bestMs;
  }
  const threads = network.threads === 1 ? 'one thread' : `${network.threads} threads`;
  throw new Wav2LipRefused(
    `WAV2LIP_MODEL takes ${bestMs.toFixed(1)} ms a frame on this machine with ${threads} (WAV2LIP_THREADS) and has ${maxFrameMs.toFixed(1)}: it can not hold ${FPS} frames a second`,
  );
}

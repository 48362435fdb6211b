// The lips of a static video: runs features and model over the soundtrack, so far ahead of the picture as the model looks.
import { FPS, FRAME_MS, SPEECH_RATE, speechSamplesInStep } from '../../media/timeline.ts';
import { native, type MelFrontEnd } from '../../native/addon.ts';
import { ArticulationTrack } from '../../pipeline/features/articulation-track.ts';
import type { SpeechModel, ModelState } from '../../pipeline/inference/speech-model.ts';
import type { Soundtrack } from './soundtrack.ts';

/** Louder than this (of 32768) is speech to the idle motion; quiet for this long is not, as in the live path. */
const AUDIBLE_PEAK = 128;
const INAUDIBLE_FRAMES = Math.round(1200 / FRAME_MS);

/**
 * What the model says of each frame. Its answer after step k is of the instant (k + 1) / 30 s - lookahead, and a frame shows the middle of
 * its interval. So the model hears some silence first, of just such a length that its steps end where they must, and runs some whole steps ahead.
 */
export class ArticulationSource {
  readonly articulation = new ArticulationTrack();
  readonly #mel: MelFrontEnd = new native.MelFrontEnd();
  readonly #slot: ModelState;
  readonly #batch: ModelState[];
  readonly #pcm = new Int16Array(Math.ceil(SPEECH_RATE / FPS));
  readonly #model: SpeechModel;
  readonly #soundtrack: Soundtrack;
  readonly #stepsAhead: number;
  #silenceLeft: number;
  #nextStep = 0;
  #quietFrames = INAUDIBLE_FRAMES;

  constructor(model: SpeechModel, soundtrack: Soundtrack) {
    this.#model = model;
    this.#soundtrack = soundtrack;
    this.#slot = model.createState();
    this.#batch = [this.#slot];
    this.#stepsAhead = Math.ceil(model.lookaheadMs / FRAME_MS - 0.5);
    this.#silenceLeft = Math.round(
      (((this.#stepsAhead + 0.5) * FRAME_MS - model.lookaheadMs) * SPEECH_RATE) / 1000,
    );
  }

  get isSpeaking(): boolean {
    return this.#quietFrames < INAUDIBLE_FRAMES;
  }

  /** Runs ahead, up to the first frame. */
  async start(): Promise<void> {
    for (let step = 0; step < this.#stepsAhead; step++) {
      await this.#hear();
    }
  }

  /** Shuts the mouth from the next frame on. */
  close(): void {
    this.articulation.close();
  }

  /** The next frame's articulation. */
  async step(): Promise<void> {
    await this.#hear();
    this.articulation.update(this.#slot.articulation);
  }

  async #hear(): Promise<void> {
    const pcm = this.#pcm;
    const count = speechSamplesInStep(this.#nextStep);
    const silence = Math.min(count, this.#silenceLeft);
    pcm.fill(0, 0, silence);
    await this.#soundtrack.readSpeech(pcm.subarray(silence), count - silence);
    this.#silenceLeft -= silence;
    this.#nextStep++;
    this.#quietFrames = pcm
      .subarray(0, count)
      .some((sample) => sample >= AUDIBLE_PEAK || sample <= -AUDIBLE_PEAK)
      ? 0
      : this.#quietFrames + 1;
    this.#mel.step(pcm, count, this.#slot.mel, 0);
    await this.#model.run(this.#batch);
  }
}

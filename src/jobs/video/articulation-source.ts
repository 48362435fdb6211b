// Articulation for a static video: runs features and speech model over the soundtrack, ahead of the
// picture by the look-ahead of the model.
import { isAudible } from '../../media/audio-level.ts';
import { FPS, FRAME_MS, SPEECH_RATE, speechSamplesInStep } from '../../media/timeline.ts';
import { native, type MelFrontEnd } from '../../native/addon.ts';
import { ArticulationTrack } from '../../pipeline/features/articulation-track.ts';
import type { SpeechModel, ModelState } from '../../pipeline/inference/speech-model.ts';
import type { Soundtrack } from './soundtrack.ts';

/** As in the live path: speech ends after so many quiet frames. */
const INAUDIBLE_FRAMES = Math.round(1200 / FRAME_MS);

/**
 * The articulation of each frame. The model's answer after step k describes the time (k + 1) / 30 s
 * - lookahead, and a frame shows the middle of its interval. So the model first gets some silence,
 * long enough that its steps end at the middle of frames, and then runs a whole number of steps
 * ahead.
 */
export class ArticulationSource {
  /** The articulation of the current frame, in `values`. */
  readonly track = new ArticulationTrack();
  readonly #mel: MelFrontEnd = new native.MelFrontEnd();
  readonly #state: ModelState;
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
    this.#state = model.createState();
    this.#batch = [this.#state];
    this.#stepsAhead = Math.ceil(model.lookaheadMs / FRAME_MS - 0.5);
    this.#silenceLeft = Math.round(
      (((this.#stepsAhead + 0.5) * FRAME_MS - model.lookaheadMs) * SPEECH_RATE) / 1000,
    );
  }

  /** Whether the soundtrack is audible now, for the idle motion. */
  get isSpeaking(): boolean {
    return this.#quietFrames < INAUDIBLE_FRAMES;
  }

  /** Runs the model up to the first frame. */
  async start(): Promise<void> {
    for (let step = 0; step < this.#stepsAhead; step++) {
      await this.#runModel();
    }
  }

  /** Closes the mouth from the next frame on. */
  close(): void {
    this.track.close();
  }

  /** Advances `track` to the next frame. */
  async step(): Promise<void> {
    await this.#runModel();
    this.track.update(this.#state.articulation);
  }

  /** Feeds one step of speech to the model and runs it. */
  async #runModel(): Promise<void> {
    const pcm = this.#pcm;
    const count = speechSamplesInStep(this.#nextStep);
    const silence = Math.min(count, this.#silenceLeft);
    pcm.fill(0, 0, silence);
    await this.#soundtrack.readSpeech(pcm.subarray(silence), count - silence);
    this.#silenceLeft -= silence;
    this.#nextStep++;
    this.#quietFrames = isAudible(pcm, count) ? 0 : this.#quietFrames + 1;
    this.#mel.step(pcm, count, this.#state.mel, 0);
    await this.#model.run(this.#batch);
  }
}

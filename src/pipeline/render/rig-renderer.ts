// One session's face on stage: articulation and idle life in, a picture and its changed macroblocks out.
import { ARTICULATION_SIZE, ARTICULATOR_INDEX } from '../../media/articulation.ts';
import { i420Bytes, macroblocks } from '../../media/picture.ts';
import { type FaceAsset, type FaceRenderer, native } from '../../native/addon.ts';
import { IdleMotion } from './idle-motion.ts';

export interface RigRendererOptions {
  /** Chooses this session's drift, blinks and glances. */
  readonly seed: number;
  /** Index into EMOTIONS. */
  readonly emotion: number;
  /** Number of the first frame to be drawn. */
  readonly startFrame: number;
}

const { speech: SPEECH, nod: NOD } = ARTICULATOR_INDEX;
/** The gate opens between these speech probabilities, quickly, and closes more slowly, so that a word's end is not cut. */
const GATE: readonly [number, number] = [0.2, 0.5];
const GATE_OPENS = 0.6;
const GATE_CLOSES = 0.25;

export class RigRenderer {
  /** I420, drawn into by `draw`: always the same buffer. */
  readonly picture: Uint8Array;
  /** One byte per macroblock: 1 where `draw` changed the picture. */
  readonly dirty: Uint8Array;
  readonly #renderer: FaceRenderer;
  readonly #motion: IdleMotion;
  readonly #mouth = new Float32Array(ARTICULATION_SIZE);
  #gate = 0;

  constructor(asset: FaceAsset, { seed, emotion, startFrame }: RigRendererOptions) {
    this.picture = new Uint8Array(i420Bytes(asset.width, asset.height));
    this.dirty = new Uint8Array(macroblocks(asset.width, asset.height));
    this.#renderer = new native.FaceRenderer(asset);
    this.#renderer.setEmotion(emotion, 1);
    this.#motion = new IdleMotion(seed, startFrame);
  }

  /**
   * Draws a frame (numbers count at 30 a second, and may skip). `articulation` has ARTICULATION_SIZE channels; its `speech` channel gates the mouth, so that a
   * model's murmur in silence moves nothing.
   */
  draw(frame: number, articulation: Float32Array, isSpeaking: boolean): void {
    const heard = Math.min(1, Math.max(0, (articulation[SPEECH]! - GATE[0]) / (GATE[1] - GATE[0])));
    this.#gate += (heard - this.#gate) * (heard > this.#gate ? GATE_OPENS : GATE_CLOSES);
    if (heard === 0 && this.#gate < 0.02) {
      this.#gate = 0;
    }
    const gate = this.#gate;
    const mouth = this.#mouth;
    for (let i = 0; i < ARTICULATION_SIZE; i++) {
      mouth[i] = articulation[i]! * gate;
    }
    this.#renderer.render(
      mouth,
      this.#motion.step(frame, isSpeaking, mouth[NOD]!),
      this.picture,
      this.dirty,
    );
  }

  /** A frame in which nothing moves. */
  hold(): void {
    this.dirty.fill(0);
  }

  /** `emotion` indexes EMOTIONS; the face eases into it. */
  setEmotion(emotion: number, strength = 1): void {
    this.#renderer.setEmotion(emotion, strength);
  }
}

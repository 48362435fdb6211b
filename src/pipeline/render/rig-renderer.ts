// Draws a face with the native rig: articulation and motion in, a picture and its changed
// macroblocks out.
import {
  ARTICULATION_SIZE,
  ARTICULATOR_INDEX,
  type Motion,
  POSE_INDEX,
} from '../../media/articulation.ts';
import type { ConversationState } from '../../media/conversation-state.ts';
import type { PictureSize } from '../../media/face-look.ts';
import { i420Bytes, macroblocks } from '../../media/picture.ts';
import { type FaceAsset, type FaceRenderer, native } from '../../native/addon.ts';
import { stretchRange } from './articulation-range.ts';
import { Expression } from './expression.ts';
import { FaceMotion } from './motion/face-motion.ts';
import type { LookCommand, Renderer } from './renderer.ts';

/** What differs between two sessions with one face. */
export interface RigRendererOptions {
  /** Of the face's motion. */
  readonly seed: number;
  /** Index into EMOTIONS. */
  readonly emotion: number;
  /** How much the head moves; natural by default. */
  readonly motion?: Motion;
  /** Number of the first frame. */
  readonly startFrame: number;
}

const { speech: SPEECH, nod: NOD, jaw: JAW } = ARTICULATOR_INDEX;
/**
 * The gate opens between these speech probabilities. It opens fast and closes slower, so that the
 * end of a word is not cut.
 */
const GATE: readonly [number, number] = [0.2, 0.5];
/** Share of the way per frame. */
const GATE_OPENS = 0.6;
const GATE_CLOSES = 0.25;
/**
 * Share of the way per frame by which the skin of the chin follows the jaw. The lips do not wait for
 * it: lips that lag are seen to be late, a chin is not. People's chins go with the opening of the
 * mouth by r .26 to .60 (docs/motion.md).
 */
const CHIN_FOLLOWS = 0.36;
/** The chin is where the jaw has it when it is as near, so that a mouth at rest is. */
const CHIN_REST = 0.01;

/**
 * Draws one session's face with the native rig. `picture` is I420 in the size of the asset; `dirty`
 * has one byte per macroblock of 16x16 pixels. Both are overwritten by each `draw`.
 */
export class RigRenderer implements Renderer {
  readonly size: PictureSize;
  readonly picture: Uint8Array;
  readonly dirty: Uint8Array;
  readonly motion: Int16Array;
  mayShift = false;
  readonly #renderer: FaceRenderer;
  readonly #motion: FaceMotion;
  readonly #expression: Expression;
  readonly #gated = new Float32Array(ARTICULATION_SIZE);
  #gate = 0;
  /** Where the chin is, in units of the jaw's channel. */
  #chin = 0;

  constructor(asset: FaceAsset, { seed, emotion, motion, startFrame }: RigRendererOptions) {
    this.size = { width: asset.width, height: asset.height };
    this.picture = new Uint8Array(i420Bytes(asset.width, asset.height));
    this.dirty = new Uint8Array(macroblocks(asset.width, asset.height));
    this.motion = new Int16Array(2 * this.dirty.length);
    this.#renderer = new native.FaceRenderer(asset);
    this.#motion = new FaceMotion(seed, motion, startFrame);
    this.#expression = new Expression(this.#renderer, this.#motion, emotion);
  }

  /**
   * Draws a frame. The `speech` channel gates the mouth, so that the model's noise in silence moves
   * nothing.
   */
  draw(frame: number, articulation: Float32Array, isSpeaking: boolean): void {
    const speech = Math.min(
      1,
      Math.max(0, (articulation[SPEECH]! - GATE[0]) / (GATE[1] - GATE[0])),
    );
    this.#gate += (speech - this.#gate) * (speech > this.#gate ? GATE_OPENS : GATE_CLOSES);
    if (speech === 0 && this.#gate < 0.02) {
      this.#gate = 0;
    }
    const gate = this.#gate;
    const gated = this.#gated;
    for (let i = 0; i < ARTICULATION_SIZE; i++) {
      gated[i] = articulation[i]! * gate;
    }
    stretchRange(gated);
    // Between two frames only the mouth moves.
    const isFrame = Number.isInteger(frame);
    if (isFrame) {
      this.#expression.step();
    }
    const pose = isFrame ? this.#motion.step(frame, isSpeaking, gated[NOD]!) : this.#motion.pose;
    this.#chin += (gated[JAW]! - this.#chin) * CHIN_FOLLOWS;
    if (Math.abs(gated[JAW]! - this.#chin) < CHIN_REST) {
      this.#chin = gated[JAW]!;
    }
    pose[POSE_INDEX.chin] = this.#chin - gated[JAW]!;
    const { picture, dirty, motion, mayShift } = this;
    this.#renderer.render(gated, pose, picture, dirty, motion, mayShift);
  }

  get pose(): Float32Array {
    return this.#motion.pose;
  }

  hold(): void {
    this.dirty.fill(0);
  }

  setConversation(state: ConversationState): void {
    this.#motion.setConversation(state);
  }

  obey(command: LookCommand): void {
    this.#expression.obey(command);
  }
}

// All that moves in a face besides the mouth, as a pose for each frame: head, breath, brows, gaze and
// blinks, driven by the rhythm of the speech and by the state of a conversation.
import { type Emotion, type Motion, POSE_INDEX, POSE_SIZE } from '../../../media/articulation.ts';
import type { ConversationState } from '../../../media/conversation-state.ts';
import type { Gesture } from '../../../media/face-command.ts';
import { FPS } from '../../../media/timeline.ts';
import { Attention } from './attention.ts';
import { EmotionBearing } from './bearing.ts';
import { Blinks } from './blinks.ts';
import { Brows } from './brows.ts';
import { DirectedMotion } from './directed-motion.ts';
import { Gaze } from './gaze.ts';
import { HeadMotion } from './head-motion.ts';
import { Random } from './random.ts';
import { SpeechRhythm } from './speech-rhythm.ts';

/** Factor of the head's and the brows' movements. */
const AMOUNT: Readonly<Record<Motion, number>> = {
  none: 0,
  calm: 0.5,
  natural: 1,
  lively: 1.7,
};

/** Between the first numbers of two sessions: seeds beside each other share none. */
const SEED_STEP = 0x9e3779b1;
/** 0.25 Hz, a resting adult. */
const BREATH_SECONDS = 4;
/** More skipped frames than these are one long frame: what has happened meanwhile is not visible. */
const MAX_CATCH_UP = 30;

/**
 * Deterministic: the same seed and calls give the same movements. Frame numbers count at FPS and may
 * skip ahead.
 */
export class FaceMotion {
  /** The latest pose, POSE_SIZE channels; `step` overwrites it. */
  readonly pose = new Float32Array(POSE_SIZE);
  readonly #amount: number;
  readonly #rhythm = new SpeechRhythm();
  readonly #attention = new Attention();
  readonly #directed = new DirectedMotion();
  readonly #bearing = new EmotionBearing();
  readonly #head: HeadMotion;
  readonly #brows: Brows;
  readonly #gaze: Gaze;
  readonly #blinks: Blinks;
  readonly #breathPhase: number;
  #frame: number;

  constructor(seed: number, motion: Motion = 'natural', startFrame = 0) {
    // Each part has numbers of its own: what one draws changes nothing in the others.
    const random = (part: number): Random => new Random(Math.imul(seed, SEED_STEP) + part);
    this.#amount = AMOUNT[motion];
    this.#breathPhase = 2 * Math.PI * random(0).next();
    this.#head = new HeadMotion(random(1));
    this.#brows = new Brows(random(2));
    this.#gaze = new Gaze(random(3), startFrame);
    this.#blinks = new Blinks(random(6), startFrame);
    this.#frame = startFrame - 1;
  }

  /** What the face does in its conversation, from the next frame on. */
  setConversation(state: ConversationState): void {
    this.#attention.set(state);
  }

  /** Head and eyes take the bearing of an emotion. @param strength 0 to 1 */
  setEmotion(emotion: Emotion, strength: number): void {
    this.#bearing.set(emotion, strength);
  }

  /** The eyes look there for some seconds: -1 to 1 of their range, right and down positive. */
  look(x: number, y: number, seconds: number): void {
    this.#directed.look(x, y, seconds, this.#gaze);
  }

  /** A movement of the head. */
  make(gesture: Exclude<Gesture, 'smile'>): void {
    this.#directed.make(gesture);
  }

  /**
   * The pose of a frame.
   * @param nod loudness and stress of the speech as the model gives it, 0 to 1
   * @returns `pose`
   */
  step(frame: number, isSpeaking: boolean, nod: number): Float32Array {
    const steps = Math.min(MAX_CATCH_UP, Math.max(1, frame - this.#frame));
    this.#frame = frame;
    for (let at = frame - steps + 1; at <= frame; at++) {
      this.#rhythm.step(isSpeaking, nod);
      this.#attention.step();
      this.#head.step(this.#rhythm, this.#attention);
      this.#directed.step();
      this.#bearing.step();
      this.#brows.step(at, this.#rhythm);
      this.#gaze.step(
        at,
        this.#rhythm,
        this.#attention,
        this.#share * this.#head.of('yaw') + this.#directed.yaw,
        this.#share * this.#head.of('pitch') + this.#posed('pitch') + this.#directed.pitch,
      );
      const isNod = this.#attention.isHearing && this.#head.isNod;
      this.#blinks.step(at, this.#rhythm, this.#gaze.isShift, isNod);
    }
    this.#write(frame);
    return this.pose;
  }

  /** Factor of what head and brows do by themselves. */
  get #share(): number {
    return this.#amount * this.#bearing.amount;
  }

  /** A head that is to be still is not held in another way either. */
  #posed(axis: 'pitch' | 'roll' | 'shiftY' | 'gazeY'): number {
    return Math.min(1, this.#amount) * this.#bearing[axis];
  }

  #write(frame: number): void {
    const { pose } = this;
    for (const axis of ['yaw', 'pitch', 'roll', 'shiftX', 'shiftY'] as const) {
      pose[POSE_INDEX[axis]] = this.#share * this.#head.of(axis);
    }
    for (const axis of ['pitch', 'roll', 'shiftY'] as const) {
      pose[POSE_INDEX[axis]]! += this.#posed(axis);
    }
    const breath = (2 * Math.PI * frame) / FPS / BREATH_SECONDS + this.#breathPhase;
    // Breathing in is faster than out: a second harmonic makes the wave asymmetric.
    pose[POSE_INDEX.breath] = 0.5 - 0.43 * Math.cos(breath) - 0.07 * Math.sin(2 * breath);
    pose[POSE_INDEX.brow] = Math.min(1, this.#share * this.#brows.raise);
    pose[POSE_INDEX.yaw]! += this.#directed.yaw;
    pose[POSE_INDEX.pitch]! += this.#directed.pitch;
    const gaze = this.#directed.gaze ?? this.#gaze;
    pose[POSE_INDEX.gazeX] = gaze.x;
    pose[POSE_INDEX.gazeY] =
      this.#directed.gaze === undefined ? Math.min(1, gaze.y + this.#posed('gazeY')) : gaze.y;
    pose[POSE_INDEX.blinkLeft] = pose[POSE_INDEX.blinkRight] = this.#blinks.closed;
  }
}

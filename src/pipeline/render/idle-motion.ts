// Idle motion: breathing, head drift, blinks, saccades and nods, as a pose for each frame.
import { POSE_INDEX, POSE_SIZE } from '../../media/articulation.ts';
import { FPS } from '../../media/timeline.ts';

const TAU = 2 * Math.PI;
const frames = (seconds: number): number => seconds * FPS;

/**
 * Each channel drifts as a sum of slow waves: amplitude in radians or pixels while silent, period
 * in seconds.
 */
const DRIFT = [
  {
    channel: POSE_INDEX.yaw,
    waves: [
      [0.011, 9.7],
      [0.006, 5.3],
    ],
  },
  {
    channel: POSE_INDEX.pitch,
    waves: [
      [0.006, 7.9],
      [0.004, 4.7],
    ],
  },
  {
    channel: POSE_INDEX.roll,
    waves: [
      [0.006, 12.1],
      [0.003, 6.7],
    ],
  },
  {
    channel: POSE_INDEX.shiftX,
    waves: [
      [0.9, 11.3],
      [0.4, 6.1],
    ],
  },
  {
    channel: POSE_INDEX.shiftY,
    waves: [
      [0.5, 8.3],
      [0.3, 5.9],
    ],
  },
] as const;
const MAX_WAVES = 2;

/** Factor of the drift while speaking. */
const SPEAKING_DRIFT = 1.7;
const BREATH_SECONDS = 4; // 0.25 Hz, a resting adult
const NOD_PITCH = 0.024; // radians at full stress
/** Share of the way to the stress that a nod goes per frame. */
const NOD_EASE = 0.22;
/** The drift grows and shrinks over 0.8 s. */
const LIVELY_EASE = 1 / frames(0.8);

// Blinks after Bentivoglio et al. (1997): about 17 a minute at rest and 26 in conversation, 150 to
// 250 ms long, opening slower than closing. Gaps in seconds.
const BLINK_GAP_IDLE: readonly [number, number] = [2.2, 6];
const BLINK_GAP_SPEAKING: readonly [number, number] = [1.6, 4.2];
const CLOSING_FRAMES = 2.2;
const SHUT_FRAMES = 0.8;
const OPENING_FRAMES: readonly [number, number] = [2.6, 4];
/** Probability of a second blink right after one. */
const DOUBLE_BLINK = 0.12;
/** Probability of a blink at the end of an utterance. */
const BLINK_AFTER_UTTERANCE = 0.6;

/** Duration of a fixation in seconds. */
const FIXATION: readonly [number, number] = [0.5, 2.4];
/** Share of fixations on the viewer. */
const GAZE_AT_VIEWER = 0.6;
const GAZE_REACH = { x: 0.55, y: 0.3 };
const SACCADE_EASE = 0.62; // of the way per frame: done in 2-3 frames

/**
 * Deterministic: the same seed and calls give the same movements. Frame numbers count at FPS and
 * may skip ahead.
 */
export class IdleMotion {
  /** The latest pose, POSE_SIZE channels; `step` overwrites it. */
  readonly pose = new Float32Array(POSE_SIZE);
  #randomState: number;
  readonly #phases = new Float64Array(DRIFT.length * MAX_WAVES + 1);
  #lively = 0;
  #nod = 0;
  #wasSpeaking = false;
  #blinkStart: number;
  #blinkOpening = 3;
  #gazeUntil: number;
  #gazeX = 0;
  #gazeY = 0;

  constructor(seed: number, startFrame = 0) {
    this.#randomState = seed >>> 0;
    for (let i = 0; i < this.#phases.length; i++) {
      this.#phases[i] = this.#random() * TAU;
    }
    this.#blinkStart = startFrame + frames(this.#between(BLINK_GAP_IDLE)) * 0.6;
    this.#gazeUntil = startFrame + frames(this.#between(FIXATION));
  }

  /**
   * The pose of a frame.
   * @param nod stress of the speech, 0 to 1
   * @returns `pose`
   */
  step(frame: number, isSpeaking: boolean, nod: number): Float32Array {
    this.#lively +=
      Math.sign((isSpeaking ? 1 : 0) - this.#lively) *
      Math.min(LIVELY_EASE, Math.abs((isSpeaking ? 1 : 0) - this.#lively));
    this.#nod += (nod - this.#nod) * NOD_EASE;
    this.#drift(frame);
    this.#blink(frame, isSpeaking);
    this.#look(frame);
    this.#wasSpeaking = isSpeaking;
    return this.pose;
  }

  #drift(frame: number): void {
    const phases = this.#phases;
    const { pose } = this;
    const seconds = frame / FPS;
    const eased = this.#lively * this.#lively * (3 - 2 * this.#lively);
    const scale = 1 + (SPEAKING_DRIFT - 1) * eased;
    for (let i = 0; i < DRIFT.length; i++) {
      const { channel, waves } = DRIFT[i]!;
      let sum = 0;
      for (let k = 0; k < waves.length; k++) {
        sum += waves[k]![0] * Math.sin((TAU * seconds) / waves[k]![1] + phases[i * MAX_WAVES + k]!);
      }
      pose[channel] = sum * scale;
    }
    const breath = (TAU * seconds) / BREATH_SECONDS + phases[phases.length - 1]!;
    // Breathing in is faster than out: a second harmonic makes the wave asymmetric.
    pose[POSE_INDEX.breath] = 0.5 - 0.43 * Math.cos(breath) - 0.07 * Math.sin(2 * breath);
    pose[POSE_INDEX.pitch]! += NOD_PITCH * this.#nod;
  }

  #blink(frame: number, isSpeaking: boolean): void {
    const length = CLOSING_FRAMES + SHUT_FRAMES + this.#blinkOpening;
    if (frame > this.#blinkStart + length) {
      const isDouble = this.#random() < DOUBLE_BLINK;
      const gap = isDouble ? 0.12 : this.#between(isSpeaking ? BLINK_GAP_SPEAKING : BLINK_GAP_IDLE);
      this.#blinkStart = frame + frames(gap);
      this.#blinkOpening = this.#between(OPENING_FRAMES);
    }
    if (
      this.#wasSpeaking &&
      !isSpeaking &&
      this.#blinkStart > frame + frames(0.5) &&
      this.#random() < BLINK_AFTER_UTTERANCE
    ) {
      this.#blinkStart = frame + frames(0.1 + 0.25 * this.#random());
    }
    const at = frame - this.#blinkStart;
    const linear =
      at < CLOSING_FRAMES
        ? at / CLOSING_FRAMES
        : at < CLOSING_FRAMES + SHUT_FRAMES
          ? 1
          : 1 - (at - CLOSING_FRAMES - SHUT_FRAMES) / this.#blinkOpening;
    const t = Math.min(1, Math.max(0, linear));
    const closed = t * t * (3 - 2 * t);
    this.pose[POSE_INDEX.blinkLeft] = closed;
    this.pose[POSE_INDEX.blinkRight] = closed;
  }

  #look(frame: number): void {
    if (frame >= this.#gazeUntil) {
      const atViewer = this.#random() < GAZE_AT_VIEWER;
      this.#gazeX = atViewer ? 0 : (this.#random() * 2 - 1) * GAZE_REACH.x;
      this.#gazeY = atViewer ? 0 : (this.#random() * 2 - 1) * GAZE_REACH.y;
      this.#gazeUntil = frame + frames(this.#between(FIXATION));
    }
    this.pose[POSE_INDEX.gazeX] = approach(this.pose[POSE_INDEX.gazeX]!, this.#gazeX);
    this.pose[POSE_INDEX.gazeY] = approach(this.pose[POSE_INDEX.gazeY]!, this.#gazeY);
  }

  #between([low, high]: readonly [number, number]): number {
    return low + (high - low) * this.#random();
  }

  /** The mulberry32 generator. */
  #random(): number {
    this.#randomState = (this.#randomState + 0x6d2b79f5) >>> 0;
    let t = this.#randomState;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }
}

/** Reaches `to` exactly, so that a resting gaze needs no drawing. */
const approach = (from: number, to: number): number =>
  Math.abs(to - from) < 0.01 ? to : from + (to - from) * SACCADE_EASE;

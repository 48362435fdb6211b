// How an emotion is borne: where the head is held, where the eyes rest, and how lively both are. What
// it does to the features is native (face_mouth_shape.cc).
import type { Emotion } from '../../../media/articulation.ts';

/** What one emotion changes. Chosen by eye, after what people do who act it. */
interface Bearing {
  /** Radians; down and to the right are positive. */
  readonly pitch: number;
  readonly roll: number;
  /** Pixels of a 512 picture, down. */
  readonly shiftY: number;
  /** Of the eye's range, down. */
  readonly gazeY: number;
  /** Factor of the movements of head and brows. */
  readonly amount: number;
}

const BEARINGS: Readonly<Record<Emotion, Bearing>> = {
  neutral: { pitch: 0, roll: 0, shiftY: 0, gazeY: 0, amount: 1 },
  happy: { pitch: -0.012, roll: 0.03, shiftY: -1, gazeY: 0, amount: 1.15 },
  sad: { pitch: 0.04, roll: -0.03, shiftY: 4, gazeY: 0.3, amount: 0.6 },
  surprised: { pitch: -0.035, roll: 0, shiftY: -4, gazeY: 0, amount: 1 },
  angry: { pitch: 0.032, roll: 0, shiftY: 2, gazeY: 0, amount: 1.1 },
  calm: { pitch: 0.008, roll: -0.015, shiftY: 0, gazeY: 0, amount: 0.6 },
};

/** Share of the way per frame: a new bearing is taken in about a second. */
const EASE = 0.1;
/** As near as this it is there, so that a face can be still. */
const NEAR = 1e-4;

const KEYS = ['pitch', 'roll', 'shiftY', 'gazeY', 'amount'] as const;

/** The bearing of one face. It begins neutral. */
export class EmotionBearing implements Bearing {
  pitch = 0;
  roll = 0;
  shiftY = 0;
  gazeY = 0;
  amount = 1;
  #goal: Bearing = BEARINGS.neutral;

  /** @param strength 0 to 1 */
  set(emotion: Emotion, strength: number): void {
    const [from, to] = [BEARINGS.neutral, BEARINGS[emotion]];
    const between = (key: keyof Bearing): number => from[key] + (to[key] - from[key]) * strength;
    this.#goal = {
      pitch: between('pitch'),
      roll: between('roll'),
      shiftY: between('shiftY'),
      gazeY: between('gazeY'),
      amount: between('amount'),
    };
  }

  /** One frame. */
  step(): void {
    for (const key of KEYS) {
      const missing = this.#goal[key] - this[key];
      this[key] = Math.abs(missing) < NEAR ? this.#goal[key] : this[key] + EASE * missing;
    }
  }
}

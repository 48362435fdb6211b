// What the face was told to do: a look to one side, a nod, a shake of the head. Goes on top of what
// the face does by itself.
import type { Gesture } from '../../../media/face-command.ts';
import { FPS } from '../../../media/timeline.ts';

/**
 * People nod with 2 to 4 Hz and some degrees, and shake the head slower and further (Hadar et al.
 * 1983, Kinematics of head movements accompanying speech).
 */
const NOD = { seconds: 0.9, cycles: 2, radians: 0.06 };
const SHAKE = { seconds: 1.2, cycles: 2, radians: 0.075 };
/** Share of the way per frame: a saccade takes 2 to 3 frames. */
const SACCADE = 0.62;

/** The orders to one face. */
export class DirectedMotion {
  /** Radians, on top of the head's own motion. */
  yaw = 0;
  pitch = 0;
  /** Where the eyes are told to look; undefined: wherever they like. */
  gaze: { x: number; y: number } | undefined = undefined;
  #gesture: Exclude<Gesture, 'smile'> | undefined = undefined;
  /** Frames of the gesture so far. */
  #frames = 0;
  #gazeFrames = 0;
  #to = { x: 0, y: 0 };

  /** @param from where the eyes are now */
  look(x: number, y: number, seconds: number, from: { x: number; y: number }): void {
    this.#gazeFrames = Math.round(seconds * FPS);
    this.#to = { x, y };
    this.gaze = this.#gazeFrames === 0 ? undefined : (this.gaze ?? { ...from });
  }

  make(gesture: Exclude<Gesture, 'smile'>): void {
    this.#gesture = gesture;
    this.#frames = 0;
  }

  /** One frame. */
  step(): void {
    this.#stepGesture();
    const { gaze } = this;
    if (gaze === undefined) {
      return;
    }
    if (this.#gazeFrames-- <= 0) {
      this.gaze = undefined;
      return;
    }
    gaze.x += (this.#to.x - gaze.x) * SACCADE;
    gaze.y += (this.#to.y - gaze.y) * SACCADE;
  }

  #stepGesture(): void {
    if (this.#gesture === undefined) {
      return;
    }
    const { seconds, cycles, radians } = this.#gesture === 'nod' ? NOD : SHAKE;
    const share = ++this.#frames / (seconds * FPS);
    if (share >= 1) {
      this.#gesture = undefined;
      this.yaw = this.pitch = 0;
      return;
    }
    const angle = 2 * Math.PI * cycles * share;
    const fade = Math.sin(Math.PI * share);
    if (this.#gesture === 'nod') {
      this.pitch = radians * fade * 0.5 * (1 - Math.cos(angle));
    } else {
      this.yaw = radians * fade * Math.sin(angle);
    }
  }
}

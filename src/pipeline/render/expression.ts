// The emotion that a face shows, and a smile that passes.
import { type Emotion, EMOTIONS } from '../../media/articulation.ts';
import { FPS } from '../../media/timeline.ts';
import type { FaceRenderer } from '../../native/addon.ts';
import type { FaceMotion } from './motion/face-motion.ts';
import type { LookCommand } from './renderer.ts';

const SMILE = EMOTIONS.indexOf('happy');
const SMILE_STRENGTH = 0.8;
const SMILE_FRAMES = 2.5 * FPS;

/** The expression of one session. */
export class Expression {
  readonly #renderer: FaceRenderer;
  readonly #motion: FaceMotion;
  #emotion: Emotion = 'neutral';
  #strength = 1;
  /** Frames that the smile still lasts. */
  #smile = 0;

  /** @param emotion index into EMOTIONS */
  constructor(renderer: FaceRenderer, motion: FaceMotion, emotion: number) {
    this.#renderer = renderer;
    this.#motion = motion;
    this.#set(EMOTIONS[emotion] ?? 'neutral', 1);
  }

  /** Obeys by the expression, or by the motion. */
  obey(command: LookCommand): void {
    switch (command.type) {
      case 'emotion':
        this.#set(command.emotion, command.strength);
        return;
      case 'gaze':
        this.#motion.look(command.x, command.y, command.seconds);
        return;
      case 'gesture':
        if (command.gesture === 'smile') {
          this.#smile = SMILE_FRAMES;
          this.#renderer.setEmotion(SMILE, SMILE_STRENGTH);
        } else {
          this.#motion.make(command.gesture);
        }
    }
  }

  #set(emotion: Emotion, strength: number): void {
    this.#emotion = emotion;
    this.#strength = strength;
    this.#smile = 0;
    this.#motion.setEmotion(emotion, strength);
    this.#renderer.setEmotion(EMOTIONS.indexOf(emotion), strength);
  }

  /** One frame. */
  step(): void {
    if (this.#smile > 0 && --this.#smile === 0) {
      this.#renderer.setEmotion(EMOTIONS.indexOf(this.#emotion), this.#strength);
    }
  }
}

// The emotion that a face shows, and a smile that passes.
import { EMOTIONS } from '../../media/articulation.ts';
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
  #emotion: number;
  #strength = 1;
  /** Frames that the smile still lasts. */
  #smile = 0;

  /** @param emotion index into EMOTIONS */
  constructor(renderer: FaceRenderer, emotion: number) {
    this.#renderer = renderer;
    this.#emotion = emotion;
    renderer.setEmotion(emotion, 1);
  }

  /** Obeys by the expression, or by the motion. */
  obey(command: LookCommand, motion: FaceMotion): void {
    switch (command.type) {
      case 'emotion':
        this.#set(EMOTIONS.indexOf(command.emotion), command.strength);
        return;
      case 'gaze':
        motion.look(command.x, command.y, command.seconds);
        return;
      case 'gesture':
        if (command.gesture === 'smile') {
          this.#smile = SMILE_FRAMES;
          this.#renderer.setEmotion(SMILE, SMILE_STRENGTH);
        } else {
          motion.make(command.gesture);
        }
    }
  }

  #set(emotion: number, strength: number): void {
    this.#emotion = emotion;
    this.#strength = strength;
    this.#smile = 0;
    this.#renderer.setEmotion(emotion, strength);
  }

  /** One frame. */
  step(): void {
    if (this.#smile > 0 && --this.#smile === 0) {
      this.#renderer.setEmotion(this.#emotion, this.#strength);
    }
  }
}

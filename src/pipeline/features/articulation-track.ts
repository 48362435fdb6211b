// The articulation that a session's face shows: the model's, or rest; eased shut when speech is cut off.
import { ARTICULATION_SIZE } from '../../media/articulation.ts';

/** What is left of the mouth's opening one frame after an interruption: nothing, unless it was wide open; nothing is left after two. */
const CLOSING = 0.15;

export class ArticulationTrack {
  readonly values = new Float32Array(ARTICULATION_SIZE);
  #isClosing = false;

  /** Speech was cut off: whatever the model still says, the mouth closes now, until `reopen`. */
  close(): void {
    this.#isClosing = true;
  }

  reopen(): void {
    this.#isClosing = false;
  }

  /** To be called once a frame. `model` is null while nobody speaks. */
  update(model: Float32Array | undefined): void {
    if (model !== undefined && !this.#isClosing) {
      this.values.set(model);
      return;
    }
    for (let i = 0; i < ARTICULATION_SIZE; i++) {
      const next = this.values[i]! * CLOSING;
      this.values[i] = next < 0.1 ? 0 : next;
    }
  }
}

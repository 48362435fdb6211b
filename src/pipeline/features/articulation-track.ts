// The articulation that a session's face shows: the model's while there is speech, otherwise rest.
import { ARTICULATION_SIZE } from '../../media/articulation.ts';

/**
 * Share of the opening that is left one frame after an interruption. Below 0.1 it becomes 0: the
 * mouth is closed after two frames at most.
 */
const CLOSING = 0.15;

/**
 * The articulation of one session, updated once per frame: the output of the model while somebody
 * speaks. After speech and after an interruption, all channels decay to 0 (rest) by CLOSING.
 */
export class ArticulationTrack {
  /** ARTICULATION_SIZE channels. */
  readonly values = new Float32Array(ARTICULATION_SIZE);
  #isClosing = false;

  /** Speech was interrupted: closes the mouth, whatever the model still says, until `reopen`. */
  close(): void {
    this.#isClosing = true;
  }

  /** A new utterance begins: follow the model again. */
  reopen(): void {
    this.#isClosing = false;
  }

  /** Call once per frame. @param model undefined while nobody speaks */
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

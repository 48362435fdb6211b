// The articulation that a session's face shows: the model's while there is speech, otherwise rest.
import { ARTICULATION_SIZE, ARTICULATOR_INDEX } from '../../media/articulation.ts';

/**
 * Share of the opening that is left one frame after an interruption. Below 0.1 it becomes 0: the
 * mouth is closed after two frames at most.
 */
const CLOSING = 0.15;

/**
 * Lips that were pressed part at once: of what the pressing has lost since the frame before, this
 * share goes as well. The model fades a closure as slowly as it begins, and between two of them
 * ("mum", "baby") the lips stayed together: of 96 such vowels of four voices of flite 20 showed no
 * opening, now 10. As before, 207 of the 216 closures are seen.
 */
const RELEASE = 0.5;

/**
 * The articulation of one session, updated once per frame: the output of the model while somebody
 * speaks. After speech and after an interruption, all channels decay to 0 (rest) by CLOSING.
 */
export class ArticulationTrack {
  /** ARTICULATION_SIZE channels. */
  readonly values = new Float32Array(ARTICULATION_SIZE);
  #isClosing = false;
  /** The model's in the frame before. */
  #pressed = 0;

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
      const pressed = model[ARTICULATOR_INDEX.press]!;
      const released = RELEASE * Math.max(0, this.#pressed - pressed);
      this.values[ARTICULATOR_INDEX.press] = Math.max(0, pressed - released);
      this.#pressed = pressed;
      return;
    }
    this.#pressed = 0;
    for (let i = 0; i < ARTICULATION_SIZE; i++) {
      const next = this.values[i]! * CLOSING;
      this.values[i] = next < 0.1 ? 0 : next;
    }
  }
}

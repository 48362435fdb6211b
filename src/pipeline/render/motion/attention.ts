// What a face in a conversation attends to, for what moves with it: the person who speaks, or its own
// thought.
import type { ConversationState } from '../../../media/conversation-state.ts';

/** Follows the state of the conversation, frame by frame. */
export class Attention {
  /** The person speaks, and the face listens. */
  isHearing = false;
  /** The person begins to speak in this frame. */
  hearingBegins = false;
  /** The face thinks about its answer. */
  isThinking = false;
  /** It begins to in this frame. */
  thinkingBegins = false;
  #next: ConversationState = 'listening';
  #state: ConversationState = 'listening';

  /** Counts from the next step on. */
  set(state: ConversationState): void {
    this.#next = state;
  }

  step(): void {
    const isChange = this.#next !== this.#state;
    this.#state = this.#next;
    this.isHearing = this.#state === 'hearing';
    this.hearingBegins = isChange && this.isHearing;
    this.isThinking = this.#state === 'thinking';
    this.thinkingBegins = isChange && this.isThinking;
  }
}

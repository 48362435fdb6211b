// What was heard of replies that were cut: by an interruption, or by a voice that failed. The library
// holds some of them whole.
import type { ChatContext, ChatItem } from './library.ts';
import type { ChatMessage } from './turn-types.ts';

/** The replies of one conversation. */
export class HeardReplies {
  /** What was heard of the reply that the library does not have in its history yet. */
  #last = '';
  /** What was heard of items of the history, by their ids. */
  readonly #cut = new Map<string, string>();

  /** Some of a reply was played to its end, or to its interruption. */
  add(text: string): void {
    this.#last += text;
  }

  /**
   * A reply is in the history.
   * @param isCut not all of it was spoken
   * @returns what was heard of it
   */
  enter({ id, textContent = '' }: ChatItem, isCut: boolean): string {
    const heard = this.#last.trim();
    this.#last = '';
    if (!isCut) {
      return textContent;
    }
    this.#cut.set(id, heard);
    return heard;
  }

  /**
   * The messages of a context as they were heard, without what is not said.
   * @param playing what was heard of a reply that is not over
   */
  messages(context: ChatContext, playing: string): ChatMessage[] {
    const messages = context.items.flatMap(({ type, id, role, textContent }): ChatMessage[] => {
      const content = this.#cut.get(id) ?? textContent ?? '';
      return type !== 'message' || role === undefined || content === ''
        ? []
        : [{ role: role === 'developer' ? 'system' : role, content }];
    });
    const content = this.#last.trim() || playing.trim();
    if (content !== '') {
      const at = messages.at(-1)?.role === 'user' ? messages.length - 1 : messages.length;
      messages.splice(at, 0, { role: 'assistant', content });
    }
    return messages;
  }
}

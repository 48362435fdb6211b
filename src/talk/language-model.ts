// The replies of one conversation: from a language model, or from a script.
import type { LanguageModelSpec } from '../link/talk-messages.ts';
import type { Attempts, ProviderListener } from './attempts.ts';
import { chatReply } from './providers/chat.ts';
import { scriptReply } from './providers/script.ts';
import type { ReplyGate } from './reply-gates.ts';
import type { ChatMessage } from './turn-types.ts';

/** Asks a model for the rest of a reply that was held and goes on. */
const GO_ON = 'Go on from exactly where you stopped. Repeat nothing.';

/** Writes the replies of one conversation. */
export class LanguageModel {
  readonly #spec: LanguageModelSpec;
  readonly #attempts: Attempts;
  readonly #listener: ProviderListener;

  constructor(spec: LanguageModelSpec, attempts: Attempts, listener: ProviderListener) {
    this.#spec = spec;
    this.#attempts = attempts;
    this.#listener = listener;
  }

  /** The reply to `messages`, piece by piece. Held by its gate, it is asked for the rest later. */
  async *reply(
    messages: readonly ChatMessage[],
    signal: AbortSignal,
    gate: ReplyGate,
  ): AsyncGenerator<string> {
    const spec = this.#spec;
    let tokens = 0;
    for (let text = ''; await gate.passes(signal);) {
      const { heldSignal } = gate;
      const either = AbortSignal.any([signal, heldSignal]);
      const asked = continued(messages, text);
      const pieces = this.#attempts.run('language_model', spec.kind, either, () =>
        spec.kind === 'script' ? scriptReply(messages) : chatReply(spec, asked, either),
      );
      for await (const piece of pieces) {
        if (tokens === 0) {
          this.#listener.onStep('firstToken');
        }
        tokens++;
        text += piece;
        yield piece;
      }
      if (!heldSignal.aborted) {
        break;
      }
    }
    this.#listener.onUsage(spec.kind === 'script' ? 0 : tokens, 0);
  }
}

/** The messages that ask for the rest of a reply; `text` is what there is of it. */
const continued = (messages: readonly ChatMessage[], text: string): readonly ChatMessage[] =>
  text === ''
    ? messages
    : [...messages, { role: 'assistant', content: text }, { role: 'user', content: GO_ON }];

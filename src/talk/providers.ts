// The providers of one conversation, as its turns need them.
import type { ConversationSpec } from '../link/talk-messages.ts';
import { Attempts, type ProviderListener } from './attempts.ts';
import { LanguageModel } from './language-model.ts';
import { Recogniser } from './recogniser.ts';
import { ReplyGates } from './reply-gates.ts';
import type { TurnProviders } from './turn-types.ts';
import { Voice } from './voice.ts';

/** The providers of `spec`. `close` frees what waits for the next turn. */
export function createProviders(
  spec: ConversationSpec,
  listener: ProviderListener,
): TurnProviders & { prepareToListen(): void; close(): void } {
  const gates = new ReplyGates();
  const attempts = new Attempts(listener);
  const model = new LanguageModel(spec.languageModel, attempts, listener);
  const voice = new Voice(spec.voice, spec.language, attempts, listener);
  const recogniser = new Recogniser(spec.recogniser, spec.language, attempts, listener);
  return {
    gates,
    takeVoiceFault: () => voice.takeFault(),
    async *reply(messages, signal) {
      listener.onStep('asked');
      yield* gates.with((gate) => model.reply(messages, signal, gate));
    },
    speak: (text, signal) => gates.with((gate) => voice.speak(text, signal, gate)),
    transcribe: (pcm, signal) => recogniser.transcribe(pcm, signal),
    ...recogniser.streaming,
    prepareToListen: () => {
      recogniser.prepare();
      voice.prepare();
    },
    close: () => {
      recogniser.close();
      voice.close();
    },
  };
}

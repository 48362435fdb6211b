// The agent that speaks when no language model is configured: a few fixed lines, labelled as such.
import type { ChatMessage } from '../turn-types.ts';

const LINES: readonly (readonly [RegExp, string])[] = [
  [
    /\b(hello|hi|hey|morning|evening)\b/i,
    'Hello! I am a demonstration, and I only know a few lines. Ask me what I am.',
  ],
  [
    /\b(who|what) are you|your name\b/i,
    'I am a face that listens and speaks. No language model is configured, so I follow a script.',
  ],
  [
    /\b(work|how)\b/i,
    'Your voice comes over WebRTC, a recogniser writes it down, and a voice reads my line to you. ' +
      'My lips follow the sound.',
  ],
  [/\b(thanks?|thank you|bye|goodbye)\b/i, 'Thank you for talking to me. Goodbye!'],
];

const OTHERS = [
  'I heard you, but my script has no answer to that. Set a language model to talk about anything.',
  'My script is short. With a language model I could tell you more.',
  'I am listening. Try to interrupt me while I speak, and I will stop at once.',
];

/** The line that answers the last message of the person. */
export async function* scriptReply(messages: readonly ChatMessage[]): AsyncGenerator<string> {
  const said = messages.filter(({ role }) => role === 'user');
  const last = said.at(-1)?.content ?? '';
  yield LINES.find(([pattern]) => pattern.test(last))?.[1] ?? OTHERS[said.length % OTHERS.length]!;
}

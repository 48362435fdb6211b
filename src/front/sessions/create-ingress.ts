// Chooses who takes the audio of a session.
import type { AudioIngress } from './audio-ingress.ts';
import type { BlockPool } from './byte-queue.ts';
import { ConversationIngress } from './conversation-ingress.ts';
import type { OpenConversation } from './conversation-port.ts';
import { OpusIngress, type sharedDecoding } from './opus-ingress.ts';
import { PcmIngress } from './pcm-ingress.ts';
import type { SessionGrant } from './session-tokens.ts';

/** Takes the audio of a session: a conversation, or the format that its token names. */
export function createIngress(
  grant: SessionGrant,
  conversation: OpenConversation | undefined,
  openedMs: number,
  backlog: BlockPool,
  decoding: ReturnType<typeof sharedDecoding>,
): AudioIngress {
  if (conversation !== undefined) {
    return new ConversationIngress(() => {
      conversation.interrupt();
    });
  }
  return grant.audioInputFormat === 'opus'
    ? new OpusIngress(openedMs, backlog, decoding)
    : new PcmIngress(backlog);
}

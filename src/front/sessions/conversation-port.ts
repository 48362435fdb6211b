// Conversations as sessions use them.
import type { EndReason } from '../../base/session-ends.ts';
import type { ConversationState } from '../../media/conversation-state.ts';
import type { ServerMessage } from './server-messages.ts';

/** What the conversation of a session needs of it. */
export interface ConversationHost {
  /** The speech ring of the session: the voice writes it. */
  readonly speechRing: SharedArrayBuffer;
  /** Sends a message to the page. */
  send(message: ServerMessage): void;
  /** What the face is to do. */
  setState(state: ConversationState): void;
  /** Ends the session, and says why in words. */
  fail(message: string): void;
}

/** The conversation that a session holds. */
export interface OpenConversation {
  /** For the media worker: what the person says. */
  readonly microphoneRing: SharedArrayBuffer;
  /** The session has media. */
  begin(host: ConversationHost): void;
  /** The person asks for silence. */
  interrupt(): void;
  /** The session is over. */
  end(reason: EndReason): void;
}

/** Opens conversations. */
export interface ConversationSource {
  /** @throws ServiceError when it is over, or there is no room for it */
  open(conversationId: string): Promise<OpenConversation>;
}

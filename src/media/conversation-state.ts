// What the face does in a conversation: decided by the turns, shown by the page and by the face.

/** `hearing`: the person speaks. A face without a conversation is `listening`. */
export type ConversationState = 'listening' | 'hearing' | 'thinking' | 'speaking';

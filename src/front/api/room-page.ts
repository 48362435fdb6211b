// The page of a conversation's room, with the origins that may show it in a frame.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Reply } from '../http/reply.ts';
import type { StoredConversation } from '../talk/conversation-store.ts';
import { frameAncestors } from './origins.ts';

const ROOM_FILE = path.join(import.meta.dirname, '../../page/room/index.html');

/** The page of a room, with the origins that may frame it. */
export async function roomPage(conversation: StoredConversation | undefined): Promise<Reply> {
  const frames =
    conversation === undefined ? "'none'" : frameAncestors(conversation.originAllowList);
  return {
    // An unknown room gets the page too: it says in words that the link is no longer valid.
    status: 200,
    headers: {
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; " +
        `media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; ` +
        `frame-ancestors ${frames}`,
      'referrer-policy': 'no-referrer',
      'permissions-policy': 'microphone=(self), camera=()',
      'cache-control': 'no-store',
    },
    body: {
      kind: 'text',
      contentType: 'text/html; charset=utf-8',
      text: await readFile(ROOM_FILE, 'utf8'),
    },
  };
}

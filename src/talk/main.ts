// The entry of the thread of conversations: loads the library, and then serves the messages of the
// front.
import path from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { every, guarded, reportDefectsTo } from '../base/guard.ts';
import { monotonicMs } from '../base/time.ts';
import { HEARTBEAT_MS, beatHeart } from '../link/heartbeat.ts';
import type { FromTalk, TalkInit, ToTalk } from '../link/talk-messages.ts';
import { Conversation } from './conversation.ts';
import { DetectorClient } from './detector-client.ts';
import { type TalkLibrary, loadLibrary } from './library.ts';

/** How often the rings are read. */
const POLL_MS = 10;

const init = workerData as TalkInit;
const post = (message: FromTalk): void => {
  parentPort!.postMessage(message);
};
const log = (message: string, error: unknown, sessionId?: string): void => {
  const stack = error instanceof Error ? error.stack : undefined;
  post({
    type: 'log',
    level: 'error',
    sessionId,
    message,
    fields: { error: String(error), stack },
  });
};
reportDefectsTo((where, error) => {
  log(`${where} failed`, error);
});
// The library starts promises that nobody waits for. One of them must not end all conversations.
process.on('unhandledRejection', (reason) => {
  log('unhandled rejection on the thread of conversations', reason);
});

const detector = new DetectorClient(init.detectorPort);
const conversations = new Map<string, Conversation>();

async function open(library: TalkLibrary, message: ToTalk & { type: 'open' }): Promise<void> {
  const conversation = new Conversation(message.spec, post);
  conversations.set(conversation.id, conversation);
  try {
    await conversation.open(library, detector);
  } catch (error) {
    log('a conversation could not be opened', error, conversation.id);
    await close(conversation.id);
  }
}

async function close(sessionId: string): Promise<void> {
  const conversation = conversations.get(sessionId);
  conversations.delete(sessionId);
  await conversation?.close();
}

async function receive(library: TalkLibrary, message: ToTalk): Promise<void> {
  switch (message.type) {
    case 'open':
      await open(library, message);
      return;
    case 'interrupt':
      conversations.get(message.sessionId)?.interrupt();
      return;
    case 'close':
      await close(message.sessionId);
      return;
    case 'stop':
      await Promise.allSettled([...conversations.keys()].map(close));
      process.exit(0);
  }
}

every(HEARTBEAT_MS, 'the heartbeat', () => {
  beatHeart(init.heartbeat);
});
try {
  const library = await loadLibrary(path.join(import.meta.dirname, '../../scripts/talk/index.mjs'));
  every(POLL_MS, 'the rings of conversations', () => {
    const nowMs = monotonicMs();
    for (const conversation of conversations.values()) {
      conversation.poll(nowMs);
    }
  });
  parentPort!.on(
    'message',
    guarded('a message of the front', (message: ToTalk) => receive(library, message)),
  );
  post({ type: 'ready' });
} catch (error) {
  post({ type: 'unusable', why: String(error) });
}

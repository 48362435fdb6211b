// The conversations of this server: from the session that joins a room to the transcript.
import type { Worker } from 'node:worker_threads';
import { every } from '../../base/guard.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { EndReason } from '../../base/session-ends.ts';
import { monotonicMs, wallMs } from '../../base/time.ts';
import { createSpeechRing } from '../../link/speech-ring.ts';
import type { FromTalk, TranscriptItem } from '../../link/talk-messages.ts';
import type { ConversationHost, OpenConversation } from '../sessions/conversation-port.ts';
import type { ConversationMeter } from './conversation-meter.ts';
import type { ConversationStore, StoredConversation } from './conversation-store.ts';
import type { TalkLibraryInstaller } from './library-installer.ts';
import { TalkThread } from './talk-thread.ts';

/** Options of the service. */
export interface ConversationsOptions {
  readonly store: ConversationStore;
  readonly maxConversations: number;
  readonly isPreemptive: boolean;
  readonly library: TalkLibraryInstaller;
  readonly meter: ConversationMeter;
  readonly log: Logger;
}

/** What is remembered of a conversation until its transcript is written. */
interface Held {
  readonly conversation: StoredConversation;
  readonly items: TranscriptItem[];
  readonly startedAtMs: number;
  readonly startMs: number;
  /** A session holds it now. */
  isHeld: boolean;
  /** No session can hold it again. */
  isOver: boolean;
  isFinished: boolean;
  /** When it was last held, and why that ended. */
  leftMs: number;
  leftAtMs: number;
  reason: EndReason;
}

/** A page that is gone for longer than this does not come back. */
const LINGER_MS = 20_000;
const SWEEP_MS = 2000;
/** Turns kept of one conversation. */
const MAX_ITEMS = 2000;
/** Ends after which a conversation is over. After the others its page may come back. */
const FINAL_ENDS = new Set<EndReason>([
  'done',
  'idle_limit',
  'length_limit',
  'deleted',
  'conversation_failed',
]);

/** Opens conversations for sessions, and writes their transcripts. */
export class Conversations {
  readonly #options: ConversationsOptions;
  readonly #thread: TalkThread;
  readonly #records = new Map<string, Held>();
  readonly #sweep: NodeJS.Timeout;

  constructor(options: ConversationsOptions) {
    this.#options = options;
    this.#thread = new TalkThread(options.log, () => {
      options.meter.lost();
    });
    options.meter.watch(() => this.#thread.size);
    this.#sweep = every(SWEEP_MS, 'the conversations whose page is gone', () => {
      this.#finishLeft(monotonicMs() - LINGER_MS);
    }).unref();
  }

  /** The threads that run. */
  get threads(): Worker[] {
    return this.#thread.threads;
  }

  /**
   * Installs the library unless it is there, and starts the thread.
   * @throws ServiceError CONVERSATIONS_INSTALLING, CONVERSATIONS_UNAVAILABLE
   */
  async prepare(): Promise<void> {
    if (this.#options.maxConversations === 0) {
      throw new ServiceError(
        'CONVERSATIONS_UNAVAILABLE',
        'The operator of this server has switched conversations off (MAX_CONVERSATIONS=0).',
      );
    }
    await this.#options.library.install();
    try {
      await this.#thread.start();
    } catch (error) {
      this.#options.log.error({ err: error }, 'conversations are not available');
      throw new ServiceError('CONVERSATIONS_UNAVAILABLE');
    }
  }

  /**
   * A session joins the conversation of its token.
   * @throws ServiceError when it is over, or there is no room
   */
  async open(id: string): Promise<OpenConversation> {
    const record = this.#records.get(id) ?? (await this.#recall(id));
    if (record === undefined || record.isOver) {
      throw new ServiceError('ROOM_CLOSED');
    }
    if (this.#thread.size >= this.#options.maxConversations) {
      throw new ServiceError('SERVER_OVERLOADED');
    }
    await this.prepare();
    return this.#hold(record);
  }

  /** A conversation that this server does not hold: a new one, or one of a server that stopped. */
  async #recall(id: string): Promise<Held | undefined> {
    const { store } = this.#options;
    const conversation = await store.find(id);
    if (conversation === undefined) {
      return undefined;
    }
    const written = await store.transcript(conversation.ownerId, id);
    const nowMs = wallMs();
    const startedAtMs = written === undefined ? nowMs : Date.parse(written.startedAt);
    return {
      conversation,
      items: [...(written?.items ?? [])],
      startedAtMs,
      startMs: monotonicMs() - Math.max(0, nowMs - startedAtMs),
      isHeld: false,
      isOver: false,
      isFinished: false,
      leftMs: 0,
      leftAtMs: 0,
      reason: 'done',
    };
  }

  #hold(record: Held): OpenConversation {
    if (record.isOver) {
      throw new ServiceError('ROOM_CLOSED'); // while the library was installed
    }
    const { conversation } = record;
    const { id } = conversation;
    this.#records.set(id, record);
    record.isHeld = true;
    const microphoneRing = createSpeechRing();
    const sessionId = `${id}/${String(monotonicMs())}`;
    const offsetMs = Math.round(monotonicMs() - record.startMs);
    let host: ConversationHost | undefined;
    let isOver = false;
    return {
      microphoneRing,
      begin: (given) => {
        host = given;
        const { providers, prompt, firstMessage, language } = conversation;
        this.#thread.open(
          {
            id: sessionId,
            receive: (message) => {
              this.#options.meter.receive(message);
              this.#receive(record, offsetMs, message, isOver ? undefined : host);
            },
            lost: () => {
              host?.fail(
                'The part of the server that holds conversations failed. Please start another one.',
              );
            },
          },
          {
            sessionId,
            microphoneRing,
            speechRing: given.speechRing,
            prompt,
            firstMessage,
            language,
            history: record.items,
            isPreemptive: this.#options.isPreemptive,
            ...providers,
          },
        );
      },
      interrupt: () => {
        this.#thread.interrupt(sessionId);
      },
      end: (reason) => {
        if (isOver) {
          return;
        }
        isOver = true;
        this.#thread.close(sessionId);
        record.isHeld = false;
        record.isOver = FINAL_ENDS.has(reason);
        record.leftMs = monotonicMs();
        record.leftAtMs = wallMs();
        record.reason = reason;
      },
    };
  }

  #receive(
    record: Held,
    offsetMs: number,
    message: Extract<FromTalk, { sessionId: string }>,
    host: ConversationHost | undefined,
  ): void {
    switch (message.type) {
      case 'state':
        host?.setState(message.state);
        host?.send({ type: 'conversation', state: message.state });
        return;
      case 'caption': {
        const { role, text, isFinal } = message;
        host?.send({ type: 'conversation', caption: { role, text, final: isFinal } });
        return;
      }
      case 'item':
        if (record.items.length < MAX_ITEMS) {
          const { startMs, endMs } = message.item;
          record.items.push({
            ...message.item,
            startMs: startMs + offsetMs,
            endMs: endMs + offsetMs,
          });
        }
        return;
      case 'fault':
        this.#options.log.warn(
          {
            session: record.conversation.id,
            provider: message.kind,
            role: message.role,
            fault: message.fault,
          },
          message.message,
        );
        if (message.isFatal) {
          host?.fail(message.message);
        } else {
          host?.send({ type: 'conversation', problem: message.message });
        }
        return;
      case 'slow':
        host?.send({ type: 'conversation', problem: message.message });
        return;
      case 'ended':
        if (record.isOver) {
          void this.#finish(record);
        }
        return;
      default:
    }
  }

  /** The pages that left by then do not come back. */
  #finishLeft(beforeMs: number): void {
    for (const record of this.#records.values()) {
      if (!record.isHeld && record.leftMs <= beforeMs) {
        record.isOver = true;
        void this.#finish(record);
      }
    }
  }

  /** Writes the transcript. No server opens a conversation again that is over. */
  async #finish(record: Held): Promise<void> {
    if (record.isFinished) {
      return;
    }
    record.isFinished = true;
    const { conversation, items, startedAtMs, leftAtMs, reason } = record;
    const { id, agentId, ownerId } = conversation;
    const { store, log } = this.#options;
    try {
      if (conversation.createTranscript) {
        await store.writeTranscript({
          sessionId: id,
          agentId,
          ownerId,
          startedAt: new Date(startedAtMs).toISOString(),
          endedAt: new Date(leftAtMs).toISOString(),
          endReason: reason,
          items: items.toSorted((a, b) => a.startMs - b.startMs),
        });
      }
      if (record.isOver) {
        await store.forget(id);
      }
    } catch (error) {
      log.error({ err: error, session: id }, 'the end of a conversation could not be written');
    }
    this.#records.delete(id);
  }

  /** Writes what is left, and ends the thread. Pages may come back to another server. */
  async close(): Promise<void> {
    clearInterval(this.#sweep);
    await this.#thread.stop();
    const left = [...this.#records.values()].filter(({ isHeld }) => !isHeld);
    await Promise.all(left.map((record) => this.#finish(record)));
  }
}

// The thread of conversations as the main thread sees it: started on first use, watched, replaced.
// Beside it runs the thread of the voice activity detector.
import { MessageChannel, Worker } from 'node:worker_threads';
import { after, every, guarded } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, sleep } from '../../base/time.ts';
import { createHeartbeat, readHeart } from '../../link/heartbeat.ts';
import type { ConversationSpec, FromTalk, TalkInit, ToTalk } from '../../link/talk-messages.ts';

/** A conversation as its thread's handle sees it. */
export interface AttachedConversation {
  readonly id: string;
  receive(message: Extract<FromTalk, { sessionId: string }>): void;
  /** The thread has ended. */
  lost(): void;
}

/** Loading the library takes half a second on an idle core. */
const START_MS = 30_000;
/** A thread without a heartbeat for this long is given up. */
const SILENCE_MS = 10_000;
const CHECK_MS = 1000;
const STOP_MS = 3000;

/** The thread, from its first conversation on. */
export class TalkThread {
  readonly #log: Logger;
  readonly #onLost: () => void;
  readonly #conversations = new Map<string, AttachedConversation>();
  #thread: Worker | undefined = undefined;
  #detector: Worker | undefined = undefined;
  #starting: Promise<void> | undefined = undefined;
  #watch: NodeJS.Timeout | undefined = undefined;

  /** @param onLost called when the thread has ended by itself, or hung */
  constructor(log: Logger, onLost: () => void) {
    this.#onLost = onLost;
    this.#log = log;
  }

  /** Conversations now. */
  get size(): number {
    return this.#conversations.size;
  }

  /** The threads that run. */
  get threads(): Worker[] {
    return [this.#thread, this.#detector].filter((thread) => thread !== undefined);
  }

  /**
   * Starts the thread unless it runs.
   * @throws Error when the library cannot be loaded
   */
  async start(): Promise<void> {
    this.#starting ??= this.#start().catch((error: unknown) => {
      this.#starting = undefined;
      throw error;
    });
    await this.#starting;
  }

  /** Opens a conversation. Call `start` first. */
  open(conversation: AttachedConversation, spec: ConversationSpec): void {
    this.#conversations.set(conversation.id, conversation);
    this.#post({ type: 'open', spec });
  }

  /** The person asks for silence. */
  interrupt(sessionId: string): void {
    this.#post({ type: 'interrupt', sessionId });
  }

  /** Ends a conversation; its last messages still arrive, `ended` is the last. */
  close(sessionId: string): void {
    this.#post({ type: 'close', sessionId });
  }

  /** Ends the thread of conversations at once; each conversation is told. */
  async kill(): Promise<void> {
    const thread = this.#thread;
    this.#lost(thread);
    await thread?.terminate();
  }

  /** Ends both threads. */
  async stop(): Promise<void> {
    clearInterval(this.#watch);
    const [thread, detector] = [this.#thread, this.#detector];
    this.#thread = undefined;
    this.#detector = undefined;
    if (thread !== undefined) {
      await ended(thread, () => {
        thread.postMessage({ type: 'stop' } satisfies ToTalk);
      });
    }
    if (detector !== undefined) {
      await ended(detector, () => {
        detector.postMessage('stop');
      });
    }
  }

  #post(message: ToTalk): void {
    this.#thread?.postMessage(message);
  }

  async #start(): Promise<void> {
    this.#detector ??= this.#startDetector();
    const heartbeat = createHeartbeat();
    const { port1, port2 } = new MessageChannel();
    this.#detector.postMessage(port2, [port2]);
    const init: TalkInit = { heartbeat, detectorPort: port1 };
    const thread = new Worker(new URL('../../talk/main.ts', import.meta.url), {
      workerData: init,
      transferList: [port1],
      execArgv: ['--disable-warning=ExperimentalWarning'],
      name: 'talk',
    });
    this.#thread = thread;
    thread.on('error', (error) => {
      this.#log.error({ err: error }, 'the thread of conversations failed');
    });
    thread.once('exit', () => {
      this.#lost(thread);
    });
    await new Promise<void>((resolve, reject) => {
      const timer = after(START_MS, 'the start of the thread of conversations', () => {
        reject(new Error('The thread of conversations did not start in time'));
      });
      thread.on(
        'message',
        guarded('a message of the thread of conversations', (message: FromTalk) => {
          if (message.type === 'ready') {
            clearTimeout(timer);
            resolve();
          } else if (message.type === 'unusable') {
            clearTimeout(timer);
            reject(new Error(message.why));
          } else {
            this.#receive(message);
          }
        }),
      );
      thread.once('exit', () => {
        clearTimeout(timer);
        reject(new Error('The thread of conversations ended at its start'));
      });
    });
    this.#watchHeart(heartbeat);
  }

  #startDetector(): Worker {
    const detector = new Worker(new URL('../../talk/detector-thread.ts', import.meta.url), {
      execArgv: ['--disable-warning=ExperimentalWarning'],
      name: 'detector',
    });
    detector.on('error', (error) => {
      this.#log.error({ err: error }, 'the detector of speech failed');
    });
    detector.once('exit', () => {
      if (this.#detector === detector) {
        // The thread is gone: end its conversations. The next one starts a new thread.
        this.#detector = undefined;
        void this.kill();
      }
    });
    return detector;
  }

  #receive(message: Exclude<FromTalk, { type: 'ready' | 'unusable' }>): void {
    if (message.type === 'log') {
      this.#log[message.level](
        {
          ...message.fields,
          ...(message.sessionId === undefined ? {} : { session: message.sessionId }),
        },
        message.message,
      );
      return;
    }
    const conversation = this.#conversations.get(message.sessionId);
    if (message.type === 'ended') {
      this.#conversations.delete(message.sessionId);
    }
    conversation?.receive(message);
  }

  #watchHeart(heartbeat: SharedArrayBuffer): void {
    let beats = -1;
    let changedMs = monotonicMs();
    clearInterval(this.#watch);
    this.#watch = every(CHECK_MS, 'the watchdog of the thread of conversations', () => {
      const now = readHeart(heartbeat);
      if (now !== beats) {
        beats = now;
        changedMs = monotonicMs();
      } else if (monotonicMs() - changedMs > SILENCE_MS) {
        this.#log.error('the thread of conversations does not answer: ending it');
        void this.kill();
      }
    }).unref();
  }

  /** Ends each conversation of the thread; the next one starts a new thread. */
  #lost(thread: Worker | undefined): void {
    if (thread === undefined || this.#thread !== thread) {
      return;
    }
    clearInterval(this.#watch);
    this.#thread = undefined;
    this.#starting = undefined;
    this.#onLost();
    const conversations = [...this.#conversations.values()];
    this.#conversations.clear();
    for (const conversation of conversations) {
      guarded('the end of a conversation', () => {
        conversation.lost();
      })();
    }
  }
}

/** Asks a thread to end; ends it when it does not. */
async function ended(thread: Worker, ask: () => void): Promise<void> {
  const gone = new Promise<void>((resolve) => {
    thread.once('exit', () => {
      resolve();
    });
  });
  ask();
  await Promise.race([gone, sleep(STOP_MS)]);
  await thread.terminate();
}

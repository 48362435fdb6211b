// The thread of conversations under test, with the rings of one conversation: the test is the person
// and the media worker.
import { BroadcastChannel, MessageChannel, Worker } from 'node:worker_threads';
import { createHeartbeat } from '../../src/link/heartbeat.ts';
import {
  SpeechRingReader,
  SpeechRingWriter,
  createSpeechRing,
} from '../../src/link/speech-ring.ts';
import type { ConversationSpec, FromTalk, ToTalk } from '../../src/link/talk-messages.ts';

const COLLECT_GARBAGE = new URL('collect-garbage.ts', import.meta.url).href;
/** Samples of 20 ms. */
const PACKET = 320;

/** The thread. */
export interface TalkThread {
  readonly messages: FromTalk[];
  post(message: ToTalk): void;
  until<T extends FromTalk['type']>(
    type: T,
    test?: (message: Extract<FromTalk, { type: T }>) => boolean,
    timeoutMs?: number,
  ): Promise<Extract<FromTalk, { type: T }>>;
  /** MB that live in the thread's heap. */
  heapMb(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts the thread, and waits until it is ready. */
export async function startTalkThread(): Promise<TalkThread> {
  const { port1, port2 } = new MessageChannel();
  const detector = new Worker(new URL('../../src/talk/detector-thread.ts', import.meta.url));
  detector.postMessage(port2, [port2]);
  const thread = new Worker(new URL('../../src/talk/main.ts', import.meta.url), {
    workerData: { heartbeat: createHeartbeat(), detectorPort: port1 },
    transferList: [port1],
    execArgv: ['--disable-warning=ExperimentalWarning', '--import', COLLECT_GARBAGE],
  });
  const messages: FromTalk[] = [];
  const waiting = new Set<() => void>();
  thread.on('message', (message: FromTalk) => {
    messages.push(message);
    for (const look of waiting) {
      look();
    }
  });
  const talk: TalkThread = {
    messages,
    post: (message) => {
      thread.postMessage(message);
    },
    until: (type, test = () => true, timeoutMs = 30_000) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = messages.find(
            (message): message is Extract<FromTalk, { type: typeof type }> =>
              message.type === type && test(message as Extract<FromTalk, { type: typeof type }>),
          );
          if (found !== undefined) {
            waiting.delete(look);
            clearTimeout(timer);
            resolve(found);
          }
        };
        const timer = setTimeout(() => {
          waiting.delete(look);
          reject(
            new Error(`no ${type}; the last messages: ${JSON.stringify(messages.slice(-12))}`),
          );
        }, timeoutMs);
        waiting.add(look);
        look();
      }),
    heapMb: async () => {
      const channel = new BroadcastChannel('collect-garbage');
      const collected = new Promise((resolve) => {
        channel.onmessage = resolve;
      });
      channel.postMessage('collect');
      await collected;
      channel.close();
      return (await thread.getHeapStatistics()).used_heap_size / 2 ** 20;
    },
    stop: async () => {
      const gone = new Promise((resolve) => {
        thread.once('exit', resolve);
      });
      thread.postMessage({ type: 'stop' });
      const timer = setTimeout(() => void thread.terminate(), 5000);
      await gone;
      clearTimeout(timer);
      const quiet = new Promise((resolve) => {
        detector.once('exit', resolve);
      });
      detector.postMessage('stop');
      await quiet;
    },
  };
  await talk.until('ready', undefined, 60_000);
  return talk;
}

/** The person and the media worker of one conversation, in real time. */
export class Person {
  readonly rings = { microphoneRing: createSpeechRing(), speechRing: createSpeechRing() };
  /** Packets of the face: when each left, whether it held speech, and whether that was loud. */
  readonly packets: {
    readonly atMs: number;
    readonly isSpeech: boolean;
    readonly isSound: boolean;
  }[] = [];
  readonly #microphone = new SpeechRingWriter(this.rings.microphoneRing);
  readonly #speech = new SpeechRingReader(this.rings.speechRing);
  readonly #timer: NodeJS.Timeout;
  readonly #said: Int16Array[] = [];
  #at = 0;
  readonly #startMs = performance.now();
  #tick = 0;

  constructor() {
    this.#timer = setInterval(() => {
      while (this.#tick * 20 < performance.now() - this.#startMs) {
        this.#tick++;
        this.#step();
      }
    }, 5);
  }

  /** Says something. @returns when its last sample was said, performance.now() */
  async say(pcm: Int16Array): Promise<number> {
    this.#said.push(pcm);
    while (this.#said.length > 0) {
      await new Promise((resolve) => {
        setTimeout(resolve, 5);
      });
    }
    return performance.now();
  }

  /** When the face fell silent for 200 ms, after `sinceMs`. */
  silentSince(sinceMs: number): number | undefined {
    const { packets } = this;
    const at = packets.findIndex(
      ({ atMs }, i) => atMs > sinceMs && packets.slice(i, i + 10).every(({ isSound }) => !isSound),
    );
    return packets[at]?.atMs;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #step(): void {
    const packet = new Int16Array(PACKET);
    const speech = this.#said[0];
    if (speech !== undefined) {
      packet.set(speech.subarray(this.#at, this.#at + PACKET));
      this.#at += PACKET;
      if (this.#at >= speech.length) {
        this.#said.shift();
        this.#at = 0;
      }
    }
    this.#microphone.write(packet, performance.now());
    this.#speech.takeFlush();
    const heard = new Int16Array(PACKET);
    const count = this.#speech.read(heard, 0, PACKET);
    this.#speech.setHeard(0);
    this.packets.push({
      atMs: performance.now(),
      isSpeech: count > 0,
      isSound: count > 0 && heard.some((sample) => Math.abs(sample) > 100),
    });
  }
}

/** A conversation with local providers. */
export const specOf = (
  person: Pick<Person, 'rings'>,
  baseUrl: string,
  more: Partial<ConversationSpec> = {},
): ConversationSpec => ({
  sessionId: 's',
  ...person.rings,
  prompt: 'You are brief.',
  firstMessage: '',
  language: 'en',
  history: [],
  isPreemptive: false,
  languageModel: { kind: 'chat', url: `${baseUrl}/chat/completions`, model: 'm', apiKey: 'k' },
  voice: { kind: 'openai', baseUrl, apiKey: 'k', voice: 'v', model: 'tts' },
  recogniser: { kind: 'openai', baseUrl, apiKey: 'k', model: 'stt' },
  ...more,
});

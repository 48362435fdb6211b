// What a server of our own really holds: collects the garbage of all its threads through the
// inspector, then asks V8 and malloc what is alive.
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * What is alive after a collection. The resident size has what freed blocks leave in half-empty
 * pages on top of it.
 */
export interface LiveMemory {
  readonly heapBytes: number;
  readonly mallocBytes: number;
  readonly residentBytes: number;
  readonly threads: number;
}

interface Reply {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly sessionId?: string; readonly message?: string };
  readonly result?: { readonly usedSize?: number; readonly result?: { readonly value?: unknown } };
  readonly error?: { readonly message: string };
}

const ADDON = path.resolve(import.meta.dirname, '../native/build/mouthpiece.node');
const MEASURE =
  `(() => { const { createRequire } = process.getBuiltinModule('node:module'); return { ` +
  'malloc: ' +
  `createRequire(${JSON.stringify(ADDON)})(${JSON.stringify(ADDON)}).allocatedBytes(), ` +
  'resident: process.memoryUsage.rss() }; })()';
/**
 * Finalisers of native objects run in a later turn of their loop, and what they free may free more.
 */
const ROUNDS = 3;
const BETWEEN_MS = 60;
const ANSWER_DEADLINE_MS = 20_000;

/**
 * One connection to the inspector of a process: speaks to its main thread and, through it, to its
 * workers.
 */
class Inspector {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<string, (reply: Reply) => void>();
  /** '' is the main thread. */
  readonly threads = new Set<string>(['']);
  #nextId = 1;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      this.#receive(JSON.parse(String(data)) as Reply);
    });
  }

  static async connect(url: string): Promise<Inspector> {
    const socket = new WebSocket(url);
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener('open', () => {
        resolve();
      });
      socket.addEventListener('error', () => {
        reject(new Error(`no inspector answers at ${url}`));
      });
    });
    const inspector = new Inspector(socket);
    await inspector.ask('', 'NodeWorker.enable', { waitForDebuggerOnStart: false });
    return inspector;
  }

  /** @throws Error when the thread refuses, or says nothing. */
  async ask(
    thread: string,
    method: string,
    params: object = {},
  ): Promise<NonNullable<Reply['result']>> {
    const id = this.#nextId++;
    const message = { id, method, params };
    const outer =
      thread === ''
        ? message
        : {
            id: this.#nextId++,
            method: 'NodeWorker.sendMessageToWorker',
            params: { sessionId: thread, message: JSON.stringify(message) },
          };
    const reply = await new Promise<Reply>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`${method} was not answered`));
      }, ANSWER_DEADLINE_MS);
      this.#waiting.set(`${thread}/${id}`, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      this.#socket.send(JSON.stringify(outer));
    });
    if (reply.error !== undefined) {
      throw new Error(`${method}: ${reply.error.message}`);
    }
    return reply.result ?? {};
  }

  #receive(reply: Reply, thread = ''): void {
    const { method, params } = reply;
    if (method === 'NodeWorker.attachedToWorker') {
      this.threads.add(params!.sessionId!);
    } else if (method === 'NodeWorker.detachedFromWorker') {
      this.threads.delete(params!.sessionId!);
    } else if (method === 'NodeWorker.receivedMessageFromWorker') {
      this.#receive(JSON.parse(params!.message!) as Reply, params!.sessionId);
    } else if (reply.id !== undefined) {
      this.#waiting.get(`${thread}/${reply.id}`)?.(reply);
      this.#waiting.delete(`${thread}/${reply.id}`);
    }
  }

  close(): void {
    this.#socket.close();
  }
}

/**
 * @param url of the inspector, as Node prints it at start
 * @throws Error when nothing answers there
 */
export async function liveMemory(url: string): Promise<LiveMemory> {
  const inspector = await Inspector.connect(url);
  try {
    const each = <T>(ask: (thread: string) => Promise<T>): Promise<T[]> =>
      Promise.all([...inspector.threads].map(ask));
    for (let round = 0; round < ROUNDS; round++) {
      await each((thread) => inspector.ask(thread, 'HeapProfiler.collectGarbage'));
      await delay(BETWEEN_MS);
    }
    const heaps = await each(
      async (thread) =>
        (await inspector.ask(thread, 'Runtime.getHeapUsage')).usedSize ?? Number.NaN,
    );
    const { result } = await inspector.ask('', 'Runtime.evaluate', {
      expression: MEASURE,
      returnByValue: true,
    });
    const { malloc, resident } = result!.value as { malloc: number; resident: number };
    return {
      heapBytes: heaps.reduce((sum, bytes) => sum + bytes, 0),
      mallocBytes: malloc,
      residentBytes: resident,
      threads: heaps.length,
    };
  } finally {
    inspector.close();
  }
}

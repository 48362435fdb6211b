// One worker thread as the front sees it: born, ready, heard from, gone; and the sessions that are on it.
import { MessageChannel, Worker } from 'node:worker_threads';
import { after, every, guarded } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, sleep } from '../../base/time.ts';
import { createHeartbeat, readHeart } from '../../link/heartbeat.ts';
import type { FromWorker, ToWorker } from '../../link/messages.ts';
import type { Wav2LipInit, Wav2LipOptions, WorkerInit } from '../../link/worker-init.ts';
import type { WorkerView } from './choose-worker.ts';
import { Watchdog } from './watchdog.ts';

/** A session as the handle of its worker sees it. */
export interface AttachedSession {
  readonly id: string;
  /** Key of `extraCost`. */
  readonly renderer: string;
  /** Takes each message of the worker that is about this session. */
  receive(message: Extract<FromWorker, { sessionId: string }>): void;
}

/** What a worker is born with, and the network that a second thread is to run for it, if any. */
export type WorkerHandleInit = Omit<WorkerInit, 'inferencePort' | 'heartbeat'> & {
  readonly wav2lip: Wav2LipOptions | undefined;
  /** Without a sign of life for so long it is ended; SILENCE_DEADLINE_MS unless given. */
  readonly silenceDeadlineMs?: number | undefined;
};

export type WorkerEnd = 'exit' | 'unresponsive' | 'start_failed';

/** The first beat of a worker: loading codecs, the model and the face takes well under a second on an idle core. */
const START_DEADLINE_MS = 30_000;
const SILENCE_DEADLINE_MS = 10_000;
const LOOK_EVERY_MS = 1000;
const STOP_DEADLINE_MS = 3000;
/** A thread that hangs in native code does not end when it is told to. */
const KILL_DEADLINE_MS = 5000;

export class WorkerHandle implements WorkerView {
  readonly index: number;
  isReady = false;
  load = 0;
  costPerSession = 0.05;
  latenessP99Ms = 0;
  /** Renderers that this worker has, and what a speaking session costs with each beyond `costPerSession`. */
  readonly extraCost = new Map<string, number>([['rig', 0]]);
  /** What its thread died of, in words; null while it has not failed. */
  failure: string | undefined = undefined;
  /** Settles when the thread is gone, by whatever way, and its inference thread, which ends with it: to exit before would abort the process. */
  readonly gone: Promise<WorkerEnd>;

  readonly #thread: Worker;
  readonly #sessions = new Map<string, AttachedSession>();
  #extraPromised = 0;
  readonly #log: Logger;
  readonly #heartbeat = createHeartbeat();
  #ending: WorkerEnd = 'exit';
  #isGone = false;
  readonly #watchdog: NodeJS.Timeout;
  readonly #onReady: (handle: WorkerHandle) => void;

  constructor(
    { wav2lip, silenceDeadlineMs = SILENCE_DEADLINE_MS, ...birth }: WorkerHandleInit,
    log: Logger,
    onReady: (handle: WorkerHandle) => void,
  ) {
    this.index = birth.index;
    this.#log = log.child({ worker: birth.index });
    this.#onReady = onReady;
    const execArgv = ['--disable-warning=ExperimentalWarning'];
    const link = wav2lip === undefined ? undefined : new MessageChannel();
    const workerData: WorkerInit = {
      ...birth,
      heartbeat: this.#heartbeat,
      inferencePort: link === undefined ? undefined : link.port1,
    };
    this.#thread = new Worker(new URL('../../worker/main.ts', import.meta.url), {
      workerData,
      transferList: link === undefined ? [] : [link.port1],
      execArgv,
      name: `worker-${birth.index}`,
    });
    const mouthsGone =
      wav2lip === undefined || link === undefined
        ? Promise.resolve()
        : this.#startMouths(
            { ...wav2lip, face: birth.calibrationFace, port: link.port2 },
            execArgv,
          );
    this.#thread.on(
      'message',
      guarded('a message of a worker', (message: FromWorker) => {
        this.#receive(message);
      }),
    );
    this.#thread.on('error', (error) => {
      if (!this.isReady) {
        this.#ending = 'start_failed';
      }
      this.failure = error instanceof Error ? error.message : String(error);
      this.#log.error({ err: error }, 'a worker failed');
    });
    this.gone = new Promise((resolve) => {
      this.#thread.once('exit', () => {
        this.#isGone = true;
        this.#leave();
        void mouthsGone.then(() => {
          resolve(this.#ending);
        });
      });
    });
    const lookEveryMs = Math.min(LOOK_EVERY_MS, silenceDeadlineMs / 4);
    const dog = new Watchdog(
      { startDeadlineMs: START_DEADLINE_MS, silenceDeadlineMs, lookEveryMs },
      monotonicMs(),
    );
    this.#watchdog = every(lookEveryMs, 'the watch over a worker', () => {
      this.#watch(dog);
    }).unref();
  }

  /** Sessions attached now. */
  get sessions(): number {
    return this.#sessions.size;
  }

  /** Sum of the extra costs of the sessions attached now. */
  get extraPromised(): number {
    return this.#extraPromised;
  }

  /** From now on the session counts for placement and receives the worker's messages about it. */
  attach(session: AttachedSession): void {
    this.#sessions.set(session.id, session);
    this.#extraPromised += this.#extraCostOf(session);
  }

  /** The session is over. Does nothing if it is not attached. */
  detach(session: AttachedSession): void {
    if (this.#sessions.delete(session.id)) {
      this.#extraPromised -= this.#extraCostOf(session);
    }
  }

  #extraCostOf({ renderer }: AttachedSession): number {
    return this.extraCost.get(renderer) ?? 0;
  }

  post(message: ToWorker): void {
    this.#thread.postMessage(message);
  }

  #startMouths(birth: Wav2LipInit, execArgv: string[]): Promise<void> {
    const thread = new Worker(
      new URL('../../pipeline/wav2lip/inference-thread.ts', import.meta.url),
      {
        workerData: birth,
        transferList: [birth.port],
        execArgv,
        name: `mouths-${this.index}`,
      },
    );
    thread.on('error', (error) => {
      this.#log.error({ err: error }, 'an inference thread failed');
    });
    return new Promise((resolve) => {
      thread.once('exit', () => {
        resolve();
      });
    });
  }

  #receive(message: FromWorker): void {
    switch (message.type) {
      case 'ready':
        this.isReady = true;
        if (message.wav2lipCost !== undefined) {
          this.extraCost.set('wav2lip', message.wav2lipCost);
        }
        this.#log.info(
          { tid: message.threadId, cpu: message.cpu, scheduling: message.scheduling },
          'worker ready',
        );
        this.#onReady(this);
        return;
      case 'load':
        this.load = message.load;
        this.costPerSession = message.costPerSession;
        this.latenessP99Ms = message.latenessP99Ms;
        return;
      case 'log':
        this.#log[message.level](
          {
            ...message.fields,
            ...(message.sessionId === undefined ? {} : { session: message.sessionId }),
          },
          message.message,
        );
        return;
      default:
        this.#sessions.get(message.sessionId)?.receive(message);
    }
  }

  #watch(dog: Watchdog): void {
    const end = dog.look(monotonicMs(), readHeart(this.#heartbeat), this.isReady);
    if (end === undefined) {
      return;
    }
    this.#ending = end;
    this.#log.error({ end }, 'the worker does not answer; ending it');
    // Its sessions are told now: a thread that hangs in native code ends late or never.
    this.#leave();
    this.kill();
    after(KILL_DEADLINE_MS, 'the wait for a worker to end', () => {
      if (!this.#isGone) {
        this.#log.fatal('the worker hangs in native code and cannot be ended; restart the server');
      }
    }).unref();
  }

  /** Its sessions are over: each is told once, as if the worker had said so itself. */
  #leave(): void {
    clearInterval(this.#watchdog);
    this.isReady = false;
    for (const [sessionId, session] of this.#sessions) {
      guarded('the end of a session', () => {
        session.receive({ type: 'ended', sessionId, reason: 'worker_lost' });
      })();
    }
    this.#sessions.clear();
    this.#extraPromised = 0;
  }

  /** Ends the thread at once. */
  kill(): void {
    void this.#thread.terminate();
  }

  async stop(): Promise<void> {
    this.post({ type: 'stop' });
    const deadline = after(STOP_DEADLINE_MS, 'the end of a worker', () => {
      this.kill();
    });
    // One that hangs in native code must not keep the server from stopping.
    await Promise.race([this.gone, sleep(STOP_DEADLINE_MS + KILL_DEADLINE_MS)]);
    clearTimeout(deadline);
  }
}

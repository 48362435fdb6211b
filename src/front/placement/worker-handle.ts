// One worker thread as the main thread sees it: start, state, sessions, messages, end.
import { MessageChannel, Worker } from 'node:worker_threads';
import { after, every, guarded } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { createNativeRuns, terminateBetweenRuns } from '../../base/native-runs.ts';
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
  /** What its picture costs: see pictureWeight. */
  readonly weight: number;
  /** Takes each message of the worker that is about this session. */
  receive(message: Extract<FromWorker, { sessionId: string }>): void;
}

/** Options of a worker, and the user's own network that an inference thread runs for it, if any. */
export type WorkerHandleInit = Omit<WorkerInit, 'inferencePort' | 'heartbeat' | 'nativeRuns'> & {
  readonly wav2lip: Wav2LipOptions | undefined;
  /** A worker without a heartbeat for this long is ended; SILENCE_DEADLINE_MS unless given. */
  readonly silenceDeadlineMs?: number | undefined;
};

/**
 * Why a worker ended: by itself, hung, or did not start. A label of
 * mouthpiece_worker_restarts_total.
 */
export type WorkerEnd = 'exit' | 'unresponsive' | 'start_failed';

/** Loading codecs, the model and the face takes well under a second on an idle core. */
const START_DEADLINE_MS = 30_000;
const SILENCE_DEADLINE_MS = 10_000;
/** How often the watchdog checks the heartbeat. */
const CHECK_INTERVAL_MS = 1000;
const STOP_DEADLINE_MS = 3000;
/** A thread that hangs in native code does not end when it is terminated. */
const KILL_DEADLINE_MS = 5000;

/** A worker thread, from its start to its end. */
export class WorkerHandle implements WorkerView {
  readonly index: number;
  /** The core that the thread is pinned to, if any. */
  readonly cpu: number | undefined;
  /** Of the kernel; undefined until the thread is ready. */
  threadId: number | undefined = undefined;
  isReady = false;
  load = 0;
  costPerSession = 0.05;
  latenessP99Ms = 0;
  /**
   * Load of a speaking session beyond `costPerSession`, by renderer. Renderers that are not listed
   * are not available.
   */
  readonly extraCost = new Map<string, number>([['rig', 0]]);
  /** The error that ended the thread; undefined while there is none. */
  failure: string | undefined = undefined;
  /**
   * Resolves when the thread has ended, and its inference thread too. The process must not exit
   * earlier: onnxruntime would abort it.
   */
  readonly gone: Promise<WorkerEnd>;

  readonly #thread: Worker;
  #inference: Worker | undefined = undefined;
  readonly #sessions = new Map<string, AttachedSession>();
  #extraPromised = 0;
  #weight = 0;
  readonly #log: Logger;
  readonly #heartbeat = createHeartbeat();
  readonly #nativeRuns = createNativeRuns();
  #ending: WorkerEnd = 'exit';
  #isGone = false;
  readonly #watchdogTimer: NodeJS.Timeout;
  readonly #onReady: (handle: WorkerHandle) => void;

  constructor(
    { wav2lip, silenceDeadlineMs = SILENCE_DEADLINE_MS, ...init }: WorkerHandleInit,
    log: Logger,
    onReady: (handle: WorkerHandle) => void,
  ) {
    this.index = init.index;
    this.cpu = init.cpu;
    this.#log = log.child({ worker: init.index });
    this.#onReady = onReady;
    const execArgv = ['--disable-warning=ExperimentalWarning'];
    const link = wav2lip === undefined ? undefined : new MessageChannel();
    const workerData: WorkerInit = {
      ...init,
      heartbeat: this.#heartbeat,
      nativeRuns: this.#nativeRuns,
      inferencePort: link === undefined ? undefined : link.port1,
    };
    this.#thread = new Worker(new URL('../../worker/main.ts', import.meta.url), {
      workerData,
      transferList: link === undefined ? [] : [link.port1],
      execArgv,
      name: `worker-${init.index}`,
    });
    const inferenceGone =
      wav2lip === undefined || link === undefined
        ? Promise.resolve()
        : this.#startInference(
            { ...wav2lip, face: init.calibrationFace, port: link.port2 },
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
        this.#endSessions();
        void inferenceGone.then(() => {
          resolve(this.#ending);
        });
      });
    });
    const checkIntervalMs = Math.min(CHECK_INTERVAL_MS, silenceDeadlineMs / 4);
    const watchdog = new Watchdog(
      { startDeadlineMs: START_DEADLINE_MS, silenceDeadlineMs, checkIntervalMs },
      monotonicMs(),
    );
    this.#watchdogTimer = every(checkIntervalMs, 'the watchdog of a worker', () => {
      this.#check(watchdog);
    }).unref();
  }

  /** Sessions attached now. */
  get sessions(): number {
    return this.#sessions.size;
  }

  get weight(): number {
    return this.#weight;
  }

  /** Sum of the extra costs of the sessions attached now. */
  get extraPromised(): number {
    return this.#extraPromised;
  }

  /** The threads that run: the worker, and the one that infers for it. */
  get threads(): Worker[] {
    return this.#isGone ? [] : [this.#thread, ...(this.#inference ? [this.#inference] : [])];
  }

  /** The session counts for placement from now on, and receives the worker's messages about it. */
  attach(session: AttachedSession): void {
    this.#sessions.set(session.id, session);
    this.#extraPromised += this.#extraCostOf(session);
    this.#weight += session.weight;
  }

  /** The session is over. Does nothing if it is not attached. */
  detach(session: AttachedSession): void {
    if (this.#sessions.delete(session.id)) {
      this.#extraPromised -= this.#extraCostOf(session);
      this.#weight -= session.weight;
    }
  }

  #extraCostOf({ renderer }: AttachedSession): number {
    return this.extraCost.get(renderer) ?? 0;
  }

  /** Sends a message to the worker. */
  post(message: ToWorker): void {
    this.#thread.postMessage(message);
  }

  #startInference(init: Wav2LipInit, execArgv: string[]): Promise<void> {
    const thread = new Worker(
      new URL('../../pipeline/wav2lip/inference-thread.ts', import.meta.url),
      {
        workerData: init,
        transferList: [init.port],
        execArgv,
        name: `inference-${this.index}`,
      },
    );
    this.#inference = thread;
    thread.on('error', (error) => {
      this.#log.error({ err: error }, 'an inference thread failed');
    });
    return new Promise((resolve) => {
      thread.once('exit', () => {
        this.#inference = undefined;
        resolve();
      });
    });
  }

  #receive(message: FromWorker): void {
    switch (message.type) {
      case 'ready':
        this.isReady = true;
        this.threadId = message.threadId;
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

  #check(watchdog: Watchdog): void {
    const end = watchdog.check(monotonicMs(), readHeart(this.#heartbeat), this.isReady);
    if (end === undefined) {
      return;
    }
    this.#ending = end;
    this.#log.error({ end }, 'the worker does not answer: ending it');
    // End its sessions now: a thread that hangs in native code ends late or never.
    this.#endSessions();
    this.kill();
    after(KILL_DEADLINE_MS, 'the wait for a worker to end', () => {
      if (!this.#isGone) {
        this.#log.fatal('the worker hangs in native code and cannot be ended; restart the server');
      }
    }).unref();
  }

  /** Ends each session once, as if the worker had sent the message. */
  #endSessions(): void {
    clearInterval(this.#watchdogTimer);
    this.isReady = false;
    for (const [sessionId, session] of this.#sessions) {
      guarded('the end of a session', () => {
        session.receive({ type: 'ended', sessionId, reason: 'worker_lost' });
      })();
    }
    this.#sessions.clear();
    this.#extraPromised = 0;
    this.#weight = 0;
  }

  /** Ends the thread at once, or after the present run of its network. */
  kill(): void {
    void terminateBetweenRuns(this.#thread, this.#nativeRuns);
  }

  /** Asks the thread to end, and terminates it when it does not. */
  async stop(): Promise<void> {
    this.post({ type: 'stop' });
    const deadline = after(STOP_DEADLINE_MS, 'the end of a worker', () => {
      this.kill();
    });
    // A thread that hangs in native code must not keep the server from stopping.
    await Promise.race([this.gone, sleep(STOP_DEADLINE_MS + KILL_DEADLINE_MS)]);
    clearTimeout(deadline);
  }
}

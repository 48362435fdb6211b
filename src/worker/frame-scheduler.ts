// One timer for all sessions of a worker. At each tick it sends the audio that is due, and hands
// the sessions whose frame is due to the frame pipeline.
import { after, soon } from '../base/guard.ts';
import { monotonicMs } from '../base/time.ts';
import type { FromWorker } from '../link/messages.ts';
import { type FrameDecision, SLOTS_PER_FRAME, TICK_MS } from './frame-clock.ts';
import type { FramePipeline } from './frame-pipeline.ts';
import { LoadReporter } from './load-reporter.ts';
import type { WorkerMetrics } from './worker-metrics.ts';
import type { WorkerSession } from './worker-session.ts';

/** Limits and gauges of the sessions are looked at every 100 ms. */
const TICKS_PER_POLL = 12;
/**
 * Utterances that may begin in a tick with a picture outside their session's slot. Any more wait for
 * the slot: a hundred that begin at once must not make one tick as long as a hundred frames.
 */
const MAX_INSERTED_PER_TICK = 2;

/** What a scheduler needs from its worker thread. */
export interface FrameSchedulerOptions {
  readonly pipeline: Pick<FramePipeline, 'prepareSpeech' | 'run'>;
  readonly metrics: WorkerMetrics;
  readonly post: (message: FromWorker) => void;
  /** CPU milliseconds of this thread. */
  readonly threadCpuMs: () => number;
  /** Share of a core that one speaking session costs, as measured at start. */
  readonly costPerSession: number;
  /** The clock; `monotonicMs` by default. */
  readonly nowMs?: () => number;
}

/** Runs while it has sessions; without any, no timer is set. */
export class FrameScheduler {
  readonly #pipeline: Pick<FramePipeline, 'prepareSpeech' | 'run'>;
  readonly #metrics: WorkerMetrics;
  readonly #post: (message: FromWorker) => void;
  readonly #threadCpuMs: () => number;
  readonly #nowMs: () => number;
  readonly #load: LoadReporter;
  readonly #sessions = new Map<string, WorkerSession>();
  readonly #sessionsInSlot = new Int32Array(SLOTS_PER_FRAME);
  /**
   * Sessions of the tick being served. Emptied after each tick: otherwise it would keep sessions,
   * with their megabytes, after their end.
   */
  readonly #due: WorkerSession[] = [];
  /** Monotonic time of tick 0. */
  readonly #originMs: number;
  #timer: NodeJS.Timeout | undefined = undefined;
  #immediate: NodeJS.Immediate | undefined = undefined;
  #isTicking = false;
  #lastTick = 0;
  #lastPollTick = 0;

  constructor(options: FrameSchedulerOptions) {
    this.#pipeline = options.pipeline;
    this.#metrics = options.metrics;
    this.#post = options.post;
    this.#threadCpuMs = options.threadCpuMs;
    this.#nowMs = options.nowMs ?? monotonicMs;
    this.#originMs = this.#nowMs();
    this.#load = new LoadReporter(options.costPerSession, this.#originMs, this.#threadCpuMs());
  }

  get size(): number {
    return this.#sessions.size;
  }
  get(sessionId: string): WorkerSession | undefined {
    return this.#sessions.get(sessionId);
  }
  [Symbol.iterator](): IterableIterator<WorkerSession> {
    return this.#sessions.values();
  }

  /** Puts the session into the slot with the fewest sessions. */
  add(session: WorkerSession): void {
    session.clock.slot = this.#sessionsInSlot.indexOf(Math.min(...this.#sessionsInSlot));
    this.#sessionsInSlot[session.clock.slot]!++;
    this.#sessions.set(session.id, session);
    this.#load.sessionJoined();
    if (this.#timer !== undefined || this.#immediate !== undefined || this.#isTicking) {
      return;
    }
    this.#lastTick = this.#tickAt(this.#nowMs());
    this.#schedule();
  }

  /** Does nothing if the session is not here. */
  remove(session: WorkerSession): void {
    if (this.#sessions.delete(session.id)) {
      this.#sessionsInSlot[session.clock.slot]!--;
    }
  }

  /** Stops for good; `add` does not start it again. */
  stop(): void {
    if (this.#timer !== undefined) {
      clearTimeout(this.#timer);
    }
    if (this.#immediate !== undefined) {
      clearImmediate(this.#immediate);
    }
    this.#timer = this.#immediate = undefined;
    this.#isTicking = true;
  }

  /** Posts the load message. Call once a second, with or without sessions. */
  reportLoad(): void {
    this.#post(this.#load.report(this.#nowMs(), this.#threadCpuMs(), this.#sessions.size));
  }

  #tickAt(nowMs: number): number {
    return Math.floor((nowMs - this.#originMs) / TICK_MS);
  }

  /**
   * Waits for the tick after the last one; if that is overdue, it follows at once. To wait for the
   * next boundary instead would let two slots run together from then on, each late because of the
   * other (measured: median lateness 11.8 ms instead of 4).
   */
  #schedule(): void {
    const waitMs = this.#originMs + (this.#lastTick + 1) * TICK_MS - this.#nowMs();
    if (waitMs > 0) {
      this.#timer = after(Math.ceil(waitMs), 'the frame scheduler', this.#onTimer);
    } else {
      // setImmediate lets sockets be served first. The shortest timer would idle for a millisecond.
      this.#immediate = soon('the frame scheduler', this.#onTimer);
    }
  }

  readonly #onTimer = (): void => {
    this.#timer = this.#immediate = undefined;
    this.#isTicking = true;
    this.#tick()
      .catch((error: unknown) => {
        this.#post({
          type: 'log',
          level: 'error',
          sessionId: undefined,
          message: 'a tick of the frame scheduler failed',
          fields: { error: String(error), stack: error instanceof Error ? error.stack : undefined },
        });
      })
      .finally(() => {
        this.#isTicking = false;
        if (this.#sessions.size > 0) {
          this.#schedule();
        } else {
          this.#goIdle();
        }
      });
  };

  #goIdle(): void {
    this.#setSessionGauges(0, 0, 0);
    this.#load.clear();
  }

  async #tick(): Promise<void> {
    const startMs = this.#nowMs();
    // A timer may fire slightly early.
    const tick = Math.max(this.#lastTick, this.#tickAt(startMs));
    this.#lastTick = tick;
    const count = this.#collectDue(tick, startMs);
    if (count > 0) {
      this.#pipeline.prepareSpeech(this.#due, count, startMs);
    }
    this.#sendDueAudio(startMs);
    if (count > 0) {
      await this.#pipeline.run(this.#due, count);
    }
    for (let i = 0; i < count; i++) {
      const { stats } = this.#due[i]!;
      if (stats.framesSent > 1) {
        this.#load.recordLateness(stats.latenessMs.last);
      }
    }
    this.#due.length = 0;
    this.#metrics.ticks.add();
    this.#metrics.tickDuration.observe((this.#nowMs() - startMs) / 1000);
    if (tick - this.#lastPollTick >= TICKS_PER_POLL) {
      this.#lastPollTick = tick;
      this.#poll();
    }
  }

  /**
   * Applies interruptions, and collects the sessions whose frame is due: each at most once, however
   * many of its frames were missed. Speech that can begin does not wait for the session's slot,
   * 17 ms in the mean: a picture is inserted.
   * @returns number of sessions in `#due`
   */
  #collectDue(tick: number, nowMs: number): number {
    let count = 0;
    let inserted = 0;
    for (const session of this.#sessions.values()) {
      if (!session.isLive) {
        continue;
      }
      if (!session.clock.isRunning) {
        session.clock.start(tick, this.#originMs);
      }
      session.beginTick(nowMs);
      const decision = this.#decide(session, tick, nowMs);
      const isInserted =
        decision === 'wait' &&
        inserted < MAX_INSERTED_PER_TICK &&
        canSpeechStart(session, nowMs) &&
        session.clock.insert(tick);
      if (isInserted || decision === 'show') {
        this.#due[count] = session;
        count++;
        inserted += isInserted ? 1 : 0;
      }
    }
    return count;
  }

  /** After the speech was prepared, so that what begins at this tick is in the packets of now. */
  #sendDueAudio(nowMs: number): void {
    for (const session of this.#sessions.values()) {
      if (!session.isLive || !session.clock.isRunning) {
        continue;
      }
      try {
        session.sendDueAudio(nowMs);
      } catch (error) {
        session.fail(error);
      }
    }
  }

  #decide(
    { clock, stats, isAudioOnly }: WorkerSession,
    tick: number,
    nowMs: number,
  ): FrameDecision {
    const decision = clock.advance(tick, nowMs);
    if (decision === 'drop') {
      // Placement must know: otherwise a worker that drops frames would look as if it had room.
      this.#load.recordLateness(clock.droppedLateMs(nowMs));
    } else if (decision === 'show' && clock.skipped > 0 && !isAudioOnly) {
      stats.framesSkipped += clock.skipped;
      this.#metrics.skippedLate.add(clock.skipped);
    }
    return decision;
  }

  /** Lets each session check its limits, removes those that ended, and counts the rest. */
  #poll(): void {
    const nowMs = this.#nowMs();
    let [connecting, idle, speaking, idleWeight, speakingWeight] = [0, 0, 0, 0, 0];
    for (const session of this.#sessions.values()) {
      try {
        session.poll(nowMs);
      } catch (error) {
        session.fail(error);
      }
      if (session.isOver) {
        this.remove(session);
      } else if (!session.isLive) {
        connecting++;
      } else if (session.state.isSpeaking) {
        speaking++;
        speakingWeight += session.isAudioOnly ? 0 : session.weight;
      } else {
        idle++;
        idleWeight += session.isAudioOnly ? 0 : session.weight;
      }
    }
    this.#setSessionGauges(connecting, idle, speaking);
    this.#load.setSessions(idleWeight, speakingWeight);
  }

  #setSessionGauges(connecting: number, idle: number, speaking: number): void {
    const { sessions } = this.#metrics;
    sessions.connecting.set(connecting);
    sessions.idle.set(idle);
    sessions.speaking.set(speaking);
  }
}

/**
 * An utterance waits that the next audio packet can begin with. False with a renderer that takes the
 * speech itself: it makes whole frames only.
 */
function canSpeechStart({ frames, stream, clock, audio }: WorkerSession, nowMs: number): boolean {
  return (
    frames.audioRenderer === undefined && stream.canStart(clock.epochMs + audio.nextPacketMs, nowMs)
  );
}

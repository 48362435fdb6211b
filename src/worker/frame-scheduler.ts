// The beat of a worker: one timer for all its sessions. Who is due, who is late, and what is left of the thread.
import { after, soon } from '../base/guard.ts';
import { monotonicMs } from '../base/time.ts';
import type { FromWorker } from '../link/messages.ts';
import { FRAME_MS } from '../media/timeline.ts';
import type { WorkerMetrics } from './worker-metrics.ts';
import { RecentValues } from './session-stats.ts';
import type { FramePipeline } from './pipeline.ts';
import type { WorkerSession } from './worker-session.ts';

/**
 * Sessions are spread over this many phases of a frame, so that a frame waits for a quarter of its neighbours at most and the sound, looked
 * at on every beat, leaves within a quarter frame of its time.
 */
const SLOTS_PER_FRAME = 4;
const TICK_MS = FRAME_MS / SLOTS_PER_FRAME;
const TICKS_PER_POLL = 12;
/** What an idle session costs, as a share of a speaking one (bench/micro/picture.ts: 0.34 and 1.02 ms a frame). Sessions that idle now may all speak: a room full of listeners is no room. */
const IDLE_SHARE = 0.35;
/** How the estimate of a speaking session's cost follows what is measured: from so many of them on, within these shares of the calibrated figure. */
const SETTLED_SESSIONS = 3;
const LEAST_COST = 0.8;
const MOST_COST = 2;
const COST_EASE = 0.2;

export class FrameScheduler {
  readonly #sessions = new Map<string, WorkerSession>();
  readonly #sessionsInSlot = new Int32Array(SLOTS_PER_FRAME);
  /** Those of the beat that is being served; empty between beats, or the last ones to share one would be kept with their megabytes after their end. */
  readonly #due: WorkerSession[] = [];
  readonly #pipeline: FramePipeline;
  readonly #instruments: WorkerMetrics;
  readonly #post: (message: FromWorker) => void;
  readonly #threadCpuMs: () => number;
  readonly #startMs = monotonicMs();
  #timer: NodeJS.Timeout | undefined = undefined;
  #immediate: NodeJS.Immediate | undefined = undefined;
  #isTicking = false;
  #lastTick = 0;
  #lastPollTick = 0;
  /** Sessions that a second's load is shared among, an idle one counted as the part of a speaking one that it costs. */
  #speakingEquivalents = 0;
  #reportedMs = this.#startMs;
  #reportedCpuMs = 0;
  readonly #lateness = new RecentValues();
  /** Share of a core that one speaking session costs; measured at start, then learnt. */
  #costPerSession: number;
  readonly #calibratedCost: number;
  #joined = 0;

  constructor(options: {
    pipeline: FramePipeline;
    instruments: WorkerMetrics;
    post: (message: FromWorker) => void;
    threadCpuMs: () => number;
    costPerSession: number;
  }) {
    this.#pipeline = options.pipeline;
    this.#instruments = options.instruments;
    this.#post = options.post;
    this.#threadCpuMs = options.threadCpuMs;
    this.#costPerSession = this.#calibratedCost = options.costPerSession;
    this.#reportedCpuMs = options.threadCpuMs();
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

  add(session: WorkerSession): void {
    session.slot = this.#sessionsInSlot.indexOf(Math.min(...this.#sessionsInSlot));
    this.#sessionsInSlot[session.slot]!++;
    this.#joined++;
    this.#sessions.set(session.id, session);
    if (this.#timer !== undefined || this.#immediate !== undefined || this.#isTicking) {
      return;
    }
    this.#lastTick = Math.floor((monotonicMs() - this.#startMs) / TICK_MS);
    this.#schedule();
  }

  remove(session: WorkerSession): void {
    if (this.#sessions.delete(session.id)) {
      this.#sessionsInSlot[session.slot]!--;
    }
  }

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

  /**
   * To the beat after the one just served, at once if that is overdue: waiting for the next boundary instead would let two phases run together
   * from then on, each late by the other (measured: median lateness 11.8 ms instead of 4).
   */
  #schedule(): void {
    const waitMs = this.#startMs + (this.#lastTick + 1) * TICK_MS - monotonicMs();
    if (waitMs > 0) {
      this.#timer = after(Math.ceil(waitMs), 'the frame loop', this.#onTimer);
    } else {
      this.#immediate = soon('the frame loop', this.#onTimer);
    } // the sockets get their turn in between; the shortest timer would idle for a millisecond
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
          message: 'a turn of the frame loop failed',
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

  /** Nobody is left: what was last said of load and lateness no longer holds, and placement must not go by it. */
  #goIdle(): void {
    for (const state of ['connecting', 'idle', 'speaking'] as const) {
      this.#instruments.sessions[state].set(0);
    }
    this.#lateness.clear();
    this.#speakingEquivalents = 0;
  }

  async #tick(): Promise<void> {
    const nowMs = monotonicMs();
    // A timer may fire a hair early.
    const beat = Math.max(this.#lastTick, Math.floor((nowMs - this.#startMs) / TICK_MS));
    this.#lastTick = beat;
    const count = this.#collectDue(beat, nowMs);
    if (count > 0) {
      await this.#pipeline.run(this.#due, count);
    }
    for (let i = 0; i < count; i++) {
      const { stats: ledger } = this.#due[i]!;
      if (ledger.framesSent > 1) {
        this.#lateness.record(ledger.latenessMs.last);
      }
    }
    this.#due.length = 0;
    this.#instruments.ticks.add();
    this.#instruments.tickDuration.observe((monotonicMs() - nowMs) / 1000);
    if (beat - this.#lastPollTick >= TICKS_PER_POLL) {
      this.#lastPollTick = beat;
      this.#poll();
    }
  }

  /** Sends the sound that is due, then notes whose picture is: each at most once, however many frames were missed. */
  #collectDue(beat: number, nowMs: number): number {
    let count = 0;
    for (const session of this.#sessions.values()) {
      if (!session.isLive) {
        continue;
      }
      if (session.firstTick < 0) {
        // The first beat of its phase, now or just gone: nobody waits for a phase to come round.
        const first =
          beat - ((((beat - session.slot) % SLOTS_PER_FRAME) + SLOTS_PER_FRAME) % SLOTS_PER_FRAME);
        session.begin(first, this.#startMs + first * TICK_MS);
      }
      try {
        session.sendDueAudio(nowMs);
      } catch (error) {
        session.fail(error);
      }
      const frame = Math.floor((beat - session.firstTick) / SLOTS_PER_FRAME);
      if (
        frame <= session.lastFrame ||
        session.isOver ||
        this.#isDroppedLate(session, frame, nowMs)
      ) {
        continue;
      }
      const skipped = frame - session.lastFrame - 1;
      if (skipped > 0 && session.lastFrame >= 0 && !session.isSoundOnly) {
        session.stats.framesSkipped += skipped;
        this.#instruments.skippedLate.add(skipped);
      }
      session.lastFrame = frame;
      this.#due[count] = session;
      count++;
    }
    return count;
  }

  /**
   * A frame later than half of its time is nearer to the next one's: that one is drawn instead. Without it a hiccup of 40 ms made all sessions due at once, each turn
   * as long as many beats, and frames late for 200 ms after. Never two in a row: whoever is always late is shown all the same.
   */
  #isDroppedLate(session: WorkerSession, frame: number, nowMs: number): boolean {
    if (frame === session.droppedFrame) {
      return true;
    }
    const lateMs = nowMs - (session.epochMs + frame * FRAME_MS);
    if (
      lateMs <= FRAME_MS / 2 ||
      session.lastFrame < 0 ||
      session.droppedFrame > session.lastFrame
    ) {
      return false;
    }
    session.droppedFrame = frame;
    this.#lateness.record(lateMs); // placement is told of it, or a worker that sheds would look as if it had room
    return true;
  }

  #poll(): void {
    const nowMs = monotonicMs();
    const states = { connecting: 0, idle: 0, speaking: 0 };
    this.#speakingEquivalents = 0;
    for (const session of this.#sessions.values()) {
      try {
        session.poll(nowMs);
      } catch (error) {
        session.fail(error);
      }
      if (session.isOver) {
        this.remove(session);
      } else if (!session.isLive) {
        states.connecting++;
      } else {
        states[session.state.isSpeaking ? 'speaking' : 'idle']++;
        // Sound alone costs next to nothing, and must not teach what a session costs.
        if (!session.isSoundOnly) {
          this.#speakingEquivalents += session.state.isSpeaking ? 1 : IDLE_SHARE;
        }
      }
    }
    for (const state of ['connecting', 'idle', 'speaking'] as const) {
      this.#instruments.sessions[state].set(states[state]);
    }
  }

  /** Once a second, sessions or not: placement goes by it. */
  reportLoad(): void {
    const nowMs = monotonicMs();
    const cpuMs = this.#threadCpuMs();
    const load = (cpuMs - this.#reportedCpuMs) / (nowMs - this.#reportedMs);
    this.#reportedCpuMs = cpuMs;
    this.#reportedMs = nowMs;
    // Handshakes and first key frames are no session's running cost, and few sessions say little: only a settled second teaches anything.
    if (this.#speakingEquivalents >= SETTLED_SESSIONS && this.#joined === 0) {
      const measured = Math.min(
        Math.max(load / this.#speakingEquivalents, this.#calibratedCost * LEAST_COST),
        this.#calibratedCost * MOST_COST,
      );
      this.#costPerSession += (measured - this.#costPerSession) * COST_EASE;
    }
    this.#joined = 0;
    this.#post({
      type: 'load',
      load,
      costPerSession: this.#costPerSession,
      latenessP99Ms: this.#lateness.percentile(0.99),
      sessions: this.#sessions.size,
    });
    // Of one second only: with few sessions a longer window would let one bad moment refuse people for half a minute.
    this.#lateness.clear();
  }
}

// What a worker tells placement once a second: its load, how late its frames are, and what one more
// speaking session would cost.
import type { FromWorker } from '../link/messages.ts';
import { RecentValues } from './session-stats.ts';

/**
 * Cost of an idle session as a share of a speaking one (bench/micro/picture.ts: 0.34 and 1.02 ms a
 * frame). Placement needs the cost of a speaking session: all that idle now may speak at once.
 */
const IDLE_SHARE = 0.35;
/** The estimate of the cost learns from seconds with at least this many sessions. */
const MIN_SESSIONS_TO_LEARN = 3;
/** Bounds of the learnt cost, as shares of the cost measured at start. */
const MIN_COST_SHARE = 0.8;
const MAX_COST_SHARE = 2;
/** How much of the difference to a second's measurement the estimate takes over. */
const COST_EASE = 0.2;

/**
 * Measures the load of one worker for placement. Learns the cost of a speaking session (share of a
 * core) from the CPU time of the thread, within MIN_COST_SHARE and MAX_COST_SHARE of the cost
 * measured at start.
 */
export class LoadReporter {
  readonly #measuredCost: number;
  #costPerSession: number;
  /** Sessions with a picture, an idle one counted as IDLE_SHARE. */
  #speakingEquivalents = 0;
  readonly #lateness = new RecentValues();
  #joined = 0;
  #reportedMs: number;
  #reportedCpuMs: number;

  /**
   * @param costPerSession share of a core that one speaking session costs, as measured at start
   * @param cpuMs CPU time of this thread so far
   */
  constructor(costPerSession: number, nowMs: number, cpuMs: number) {
    this.#measuredCost = costPerSession;
    this.#costPerSession = costPerSession;
    this.#reportedMs = nowMs;
    this.#reportedCpuMs = cpuMs;
  }

  recordLateness(lateMs: number): void {
    this.#lateness.record(lateMs);
  }

  sessionJoined(): void {
    this.#joined++;
  }

  /** Weights of the sessions with a picture, as counted last. Audio alone costs next to nothing. */
  setSessions(idle: number, speaking: number): void {
    this.#speakingEquivalents = speaking + idle * IDLE_SHARE;
  }

  /** No session is left: the last measurements no longer hold, and placement must not use them. */
  clear(): void {
    this.#lateness.clear();
    this.#speakingEquivalents = 0;
  }

  /** Call once a second, with or without sessions. */
  report(nowMs: number, cpuMs: number, sessions: number): FromWorker & { readonly type: 'load' } {
    const load = (cpuMs - this.#reportedCpuMs) / (nowMs - this.#reportedMs);
    this.#reportedCpuMs = cpuMs;
    this.#reportedMs = nowMs;
    // A second in which somebody joined includes handshakes and key frames, which are no running
    // cost.
    if (this.#speakingEquivalents >= MIN_SESSIONS_TO_LEARN && this.#joined === 0) {
      this.#learn(load / this.#speakingEquivalents);
    }
    this.#joined = 0;
    const latenessP99Ms = this.#lateness.percentile(0.99);
    // Each report is of one second: with few sessions, a longer window would let one bad moment
    // refuse new sessions for half a minute.
    this.#lateness.clear();
    return { type: 'load', load, costPerSession: this.#costPerSession, latenessP99Ms, sessions };
  }

  #learn(cost: number): void {
    const bounded = Math.min(
      Math.max(cost, this.#measuredCost * MIN_COST_SHARE),
      this.#measuredCost * MAX_COST_SHARE,
    );
    this.#costPerSession += (bounded - this.#costPerSession) * COST_EASE;
  }
}

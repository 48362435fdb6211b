// What a session counts and measures of itself: see session-report.ts.

/** Values kept for a percentile: 17 s of frames. */
const WINDOW = 512;

/** The last WINDOW values. Recording is one store; percentiles sort a copy. */
export class RecentValues {
  readonly #values = new Float32Array(WINDOW);
  #count = 0;

  record(value: number): void {
    this.#values[this.#count % WINDOW] = value;
    this.#count++;
  }

  clear(): void {
    this.#count = 0;
  }

  /** 0 when nothing was recorded. */
  get last(): number {
    return this.#count === 0 ? 0 : this.#values[(this.#count - 1) % WINDOW]!;
  }

  /** @param q 0 to 1. @returns 0 when nothing was recorded */
  percentile(q: number): number {
    const size = Math.min(this.#count, WINDOW);
    if (size === 0) {
      return 0;
    }
    const sorted = this.#values.slice(0, size).sort();
    return sorted[Math.min(size - 1, Math.floor(q * size))]!;
  }
}

/** Share of a new value in the smoothed time of a stage: 20 frames, 0.7 s. */
const STAGE_EASE = 0.05;

/** Written by the frame scheduler and the frame observer. */
export class SessionStats {
  framesSent = 0;
  framesSkipped = 0;
  keyFrames = 0;
  readonly latenessMs = new RecentValues();
  readonly audioToLipsMs = new RecentValues();
  /** Smoothed milliseconds per frame of each stage. */
  readonly stageMs = {
    drain: 0,
    features: 0,
    inference: 0,
    render: 0,
    encode: 0,
    packetize: 0,
    send: 0,
  };

  /** `ms` of one frame. */
  stage(name: keyof SessionStats['stageMs'], ms: number): void {
    this.stageMs[name] += (ms - this.stageMs[name]) * STAGE_EASE;
  }
}

// What the front hands to the threads that it starts: media workers and inference threads.
import type { MessagePort } from 'node:worker_threads';

/** Options of a media worker. */
export interface WorkerInit {
  readonly index: number;
  readonly cpu: number | undefined;
  /** To be scheduled before everything else on that CPU; only where others are left for the rest. */
  readonly isRealtime: boolean;
  readonly sharedMetrics: SharedArrayBuffer;
  readonly bindAddress: string;
  readonly port: number;
  readonly announcedAddresses: readonly string[];
  readonly videoBitrateKbps: number;
  readonly maxVideoBitrateKbps: number;
  readonly audioBitrateKbps: number;
  readonly maxSessions: number;
  readonly calibrationFace: SharedArrayBuffer;
  /** Counted up while the thread runs: link/heartbeat.ts. */
  readonly heartbeat: SharedArrayBuffer;
  /** To the inference thread of the user's own network, if there is one. */
  readonly inferencePort: MessagePort | undefined;
}

/** The user's own network, as configured. */
export interface Wav2LipOptions {
  readonly file: string;
  /** Execution providers, in order of preference. */
  readonly providers: readonly string[];
  /** Of one run. */
  readonly threads: number;
}

/** Options of an inference thread. */
export interface Wav2LipInit extends Wav2LipOptions {
  /** Any face, for the timed runs. */
  readonly face: SharedArrayBuffer;
  /** To its media worker; the thread ends when it closes. */
  readonly port: MessagePort;
  /** Most milliseconds that a mouth may take. Default: MAX_FRAME_SHARE of a frame. */
  readonly maxFrameMs?: number;
}

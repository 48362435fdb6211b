// What the front hands to the threads that it starts: media workers and inference threads.
import type { MessagePort } from 'node:worker_threads';
import type { Motion } from '../media/articulation.ts';

/** The media settings of the server, the same for every worker. */
export interface MediaConfig {
  /** Local IP address of the UDP sockets. */
  readonly bindAddress: string;
  /** IP addresses in the ICE candidates, the preferred one first. */
  readonly announcedAddresses: readonly string[];
  /** One UDP port per worker, in order of their indices. 0 lets the system choose. */
  readonly ports: { readonly first: number; readonly last: number };
  /** Video bitrate at the start of a session with pictures of PICTURE_SIZE. */
  readonly videoBitrateKbps: number;
  /** For pictures of any size. Undefined: that at the start. */
  readonly maxVideoBitrateKbps: number | undefined;
  /** How much faces move. */
  readonly motion: Motion;
  /** Opus bitrate. */
  readonly audioBitrateKbps: number;
  readonly maxSessionsPerWorker: number;
  /** Share of its core, 0 to 1, that the sessions of a worker may use. */
  readonly maxLoad: number;
}

/** Options of a media worker. */
export interface WorkerInit {
  readonly index: number;
  /** The core to pin the thread to. */
  readonly cpu: number | undefined;
  /** Schedule the thread before everything else on that core; only where other cores are left. */
  readonly isRealtime: boolean;
  readonly sharedMetrics: SharedArrayBuffer;
  readonly media: MediaConfig;
  /** UDP port of this worker; 0 lets the system choose. */
  readonly port: number;
  /** Any face: the cost of a session is measured with it at the start. */
  readonly calibrationFace: SharedArrayBuffer;
  /** Counted up while the thread runs: link/heartbeat.ts. */
  readonly heartbeat: SharedArrayBuffer;
  /** When the thread may be terminated: base/native-runs.ts. */
  readonly nativeRuns: SharedArrayBuffer;
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
  /**
   * Share of a core that a speaking session takes, as an earlier thread measured it. Then nothing is
   * timed: a worker that is replaced while the machine is busy keeps the network.
   */
  readonly knownCost?: number;
}

/** Options of an inference thread. */
export interface Wav2LipInit extends Wav2LipOptions {
  /** Any face, for the timed runs. */
  readonly face: SharedArrayBuffer;
  /** To its media worker; the thread ends when it closes. */
  readonly port: MessagePort;
  /** Most milliseconds that a patch may take. Default: MAX_FRAME_SHARE of a frame. */
  readonly maxFrameMs?: number;
}

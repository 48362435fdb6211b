// Typed messages between the front and a worker. Small and plain: they cross threads by structured clone.
import type { WireError } from '../base/errors.ts';
import type { EndReason } from '../base/session-ends.ts';
import type { Offer } from '../webrtc/sdp/offer.ts';

/** Everything a worker needs to run a session, decided by the front. */
export interface SessionSpec {
  readonly sessionId: string;
  /** The face asset file's bytes in memory shared by all threads. */
  readonly face: { readonly faceId: string; readonly bytes: SharedArrayBuffer };
  readonly emotion: number;
  readonly renderer: string;
  readonly handleSilence: boolean;
  readonly startFrame: number;
  readonly maxIdleMs: number;
  readonly maxLengthMs: number;
  /** Speech written by the front, read by the worker: see audio-lane.ts. */
  readonly speechRing: SharedArrayBuffer;
}

export type ToWorker =
  | { readonly type: 'open'; readonly spec: SessionSpec }
  | { readonly type: 'offer'; readonly sessionId: string; readonly offer: Offer }
  | { readonly type: 'close'; readonly sessionId: string; readonly reason: EndReason }
  | { readonly type: 'stats'; readonly sessionId: string; readonly requestId: number }
  | { readonly type: 'stop' };

/** How the kernel treats a worker: before all else on its core (SCHED_RR), as one of the foremost (nice -10), or like everything else. */
export type Scheduling = 'realtime' | 'prioritised' | 'ordinary';

export type FromWorker =
  | {
      readonly type: 'ready';
      readonly workerIndex: number;
      readonly threadId: number;
      readonly cpu: number | undefined;
      readonly scheduling: Scheduling;
      /** Share of a core that the user's own network takes per speaking session; null: there is none that can be used. */
      readonly wav2lipCost: number | undefined;
    }
  | { readonly type: 'answer'; readonly sessionId: string; readonly sdp: string }
  | {
      readonly type: 'failed';
      readonly sessionId: string;
      readonly error: WireError;
      readonly reason: EndReason;
    }
  | {
      readonly type: 'connected';
      readonly sessionId: string;
      readonly iceMs: number;
      readonly atMs: number;
    }
  | { readonly type: 'firstFrame'; readonly sessionId: string; readonly atMs: number }
  | { readonly type: 'speak'; readonly sessionId: string }
  | { readonly type: 'silent'; readonly sessionId: string }
  /** The session is over in the worker: its resources are free. Sent exactly once per opened session. */
  | { readonly type: 'ended'; readonly sessionId: string; readonly reason: EndReason }
  | {
      readonly type: 'stats';
      readonly sessionId: string;
      readonly requestId: number;
      readonly stats: SessionStatsReport | undefined;
    }
  /** Once a second: what placement decides by. Costs are shares of a core. */
  | {
      readonly type: 'load';
      readonly load: number;
      readonly costPerSession: number;
      readonly latenessP99Ms: number;
      readonly sessions: number;
    }
  | {
      readonly type: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly sessionId: string | undefined;
      readonly message: string;
      readonly fields: Record<string, unknown>;
    };

/** A session's own ledger, for GET /sessions/{id}/stats and the demo page. Times in milliseconds. */
export interface SessionStatsReport {
  readonly sessionId: string;
  readonly codec: string;
  readonly state: 'connecting' | 'idle' | 'speaking';
  readonly framesSent: number;
  readonly framesSkipped: number;
  readonly frameLatenessMs: { readonly p50: number; readonly p99: number };
  readonly audioToLipsMs: { readonly last: number; readonly p50: number; readonly p99: number };
  readonly stageMs: Readonly<
    Record<'drain' | 'features' | 'inference' | 'render' | 'encode' | 'packetize' | 'send', number>
  >;
  readonly bufferedAudioMs: number;
  readonly underruns: number;
  readonly bitrateKbps: number;
  readonly targetBitrateKbps: number;
  readonly roundTripMs: number;
  readonly packetsLost: number;
  readonly nacks: number;
  readonly keyFrames: number;
}

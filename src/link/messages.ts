// The messages between the front and a worker. Plain data: they cross threads by structured clone.
import type { WireError } from '../base/errors.ts';
import type { EndReason } from '../base/session-ends.ts';
import type { ConversationState } from '../media/conversation-state.ts';
import type { VideoCodec } from '../media/coded-frame.ts';
import type { FaceCommand } from '../media/face-command.ts';
import type { Viseme } from '../media/visemes.ts';
import type { RemoteCandidate } from '../webrtc/sdp/candidate.ts';
import type { Answer, Offer } from '../webrtc/sdp/offer.ts';

/** What comes with an offer to a worker. */
export interface OfferSpec {
  /** Comes back with the answer. */
  readonly offerId: number;
  /** The offer is of a new peer connection, which takes the place of the present one. */
  readonly isNewPeer: boolean;
  /** Names of the tracks in the answer. */
  readonly names?: TrackNames | undefined;
}

/** The names of our stream and tracks in SDP: `a=msid:<stream> <track>`. */
export interface TrackNames {
  readonly streamId: string;
  readonly audioTrackId: string;
  readonly videoTrackId: string;
}

/** What a worker is asked to offer to a media server. */
export interface LocalOfferSpec extends OfferSpec {
  readonly names: TrackNames;
  readonly videoCodecs: readonly VideoCodec[];
  readonly restartsIce: boolean;
}

/** A worker's answer to an offer. */
export interface AnswerMessage {
  readonly type: 'answer';
  readonly sessionId: string;
  readonly sdp: string;
  readonly offerId: number;
  /** Mids of the sections on which we send; undefined: not negotiated. */
  readonly audioMid: string | undefined;
  readonly videoMid: string | undefined;
}

/** The offer that was asked for. */
export interface LocalOfferMessage {
  readonly type: 'localOffer';
  readonly sessionId: string;
  readonly sdp: string;
  readonly offerId: number;
}

/** An offer that could not be answered, or an answer that could not be used; the session goes on. */
export interface RefusedOfferMessage {
  readonly type: 'offerRefused';
  readonly sessionId: string;
  readonly offerId: number;
  readonly error: WireError;
}

/** The motion of the face in every frame as blend shapes, its visemes as they change, or both. */
export type ReportedMotion = 'arkit' | 'visemes' | 'all';

/** What a worker needs to run a session, as the front decided it. */
export interface SessionSpec {
  readonly sessionId: string;
  /** The face asset file in memory that all threads share. */
  readonly face: { readonly faceId: string; readonly bytes: SharedArrayBuffer };
  /** Index into EMOTIONS. */
  readonly emotion: number;
  /** `rig` or `wav2lip`. */
  readonly renderer: string;
  /** Move the face while nobody speaks. Otherwise the picture freezes. */
  readonly handleSilence: boolean;
  /** Frame number at which the idle motion begins. */
  readonly startFrame: number;
  readonly maxIdleMs: number;
  readonly maxLengthMs: number;
  /** When the peer is lost, the session goes on and waits for another one. */
  readonly outlivesPeers: boolean;
  /** Pictures are sent one frame late: see FrameTrackOptions. Default: false. */
  readonly delaysFrames?: boolean;
  /** Speech, written by the front and read by the worker: see speech-ring.ts. */
  readonly speechRing: SharedArrayBuffer;
  /**
   * Where the peer's microphone goes, in a conversation: written by the worker, read by the thread
   * of conversations. Undefined: the microphone drives the face.
   */
  readonly microphoneRing?: SharedArrayBuffer | undefined;
  /** What the peer says is dropped: it only watches. Default: false. */
  readonly ignoresMicrophone?: boolean;
  /** The worker reports the motion of the face. */
  readonly reports?: ReportedMotion | undefined;
}

/** From the front to a worker. */
export type ToWorker =
  | { readonly type: 'open'; readonly spec: SessionSpec }
  | {
      readonly type: 'offer';
      readonly sessionId: string;
      readonly offer: Offer;
      readonly spec: OfferSpec;
    }
  /** Asks for an offer of ours, to a media server. */
  | { readonly type: 'makeOffer'; readonly sessionId: string; readonly spec: LocalOfferSpec }
  /** The answer to that offer. */
  | {
      readonly type: 'accept';
      readonly sessionId: string;
      readonly answer: Answer;
      readonly offerId: number;
    }
  /** A candidate of the media server. */
  | {
      readonly type: 'candidate';
      readonly sessionId: string;
      readonly candidate: RemoteCandidate;
    }
  /** Whether anybody looks at the video: otherwise none is drawn. */
  | { readonly type: 'video'; readonly sessionId: string; readonly isWanted: boolean }
  /** A message for the others in the room, over the reliable data channel. */
  | { readonly type: 'data'; readonly sessionId: string; readonly data: Uint8Array }
  /** Whose messages in the room count: those of others are passed on rarely. */
  | { readonly type: 'heed'; readonly sessionId: string; readonly identity: string }
  /** Closes the peer; the session goes on. */
  | { readonly type: 'dropPeer'; readonly sessionId: string }
  | { readonly type: 'close'; readonly sessionId: string; readonly reason: EndReason }
  | { readonly type: 'stats'; readonly sessionId: string; readonly requestId: number }
  /** What the conversation of the session does now. */
  | {
      readonly type: 'conversation';
      readonly sessionId: string;
      readonly state: ConversationState;
    }
  /** What the face is told to do. */
  | { readonly type: 'command'; readonly sessionId: string; readonly command: FaceCommand }
  /** Another face goes on; `faceShown` follows. */
  | { readonly type: 'face'; readonly sessionId: string; readonly face: SessionSpec['face'] }
  | { readonly type: 'stop' };

/**
 * How the kernel schedules a worker:
 * - realtime: before everything else on its core (SCHED_RR).
 * - prioritised: at nice -10.
 * - ordinary: like every other thread.
 */
export type Scheduling = 'realtime' | 'prioritised' | 'ordinary';

/** Times of the first frame that shows an utterance. */
export interface LipsTimes {
  /** The speech arrived at this server. */
  readonly arrivedMs: number;
  /** Drawing began. */
  readonly startMs: number;
  readonly drawnMs: number;
  readonly codedMs: number;
  /** The last packet of the frame was sent. */
  readonly sentMs: number;
}

/** From a worker to the front. Times are `monotonicMs`. */
export type FromWorker =
  | {
      readonly type: 'ready';
      readonly workerIndex: number;
      readonly threadId: number;
      readonly cpu: number | undefined;
      readonly scheduling: Scheduling;
      /**
       * Share of a core that the user's own network takes per speaking session; undefined: there is
       * none that can be used.
       */
      readonly wav2lipCost: number | undefined;
    }
  | AnswerMessage
  | LocalOfferMessage
  | RefusedOfferMessage
  /** A message of somebody in the room, over a data channel. */
  | { readonly type: 'data'; readonly sessionId: string; readonly data: Uint8Array }
  /** Nothing has been heard of a media server for some seconds; told once each time. */
  | { readonly type: 'peerSilent'; readonly sessionId: string }
  /** The peer has ended by itself, and the session waits for another one. */
  | { readonly type: 'peerLost'; readonly sessionId: string; readonly reason: EndReason }
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
  /** The first frame that shows an utterance was sent. */
  | ({ readonly type: 'lips'; readonly sessionId: string } & LipsTimes)
  /** Another face is drawn from now on. */
  | { readonly type: 'faceShown'; readonly sessionId: string; readonly faceId: string }
  | { readonly type: 'speak'; readonly sessionId: string }
  | { readonly type: 'silent'; readonly sessionId: string }
  /** What the face does in a frame, for a session that asked. */
  | {
      readonly type: 'motion';
      readonly sessionId: string;
      /** RTP timestamp of the frame. */
      readonly rtp: number;
      /** ARKIT_SIZE weights. */
      readonly weights: Float32Array;
    }
  /** From this frame on the mouth shows another viseme, for a session that asked. */
  | {
      readonly type: 'viseme';
      readonly sessionId: string;
      readonly rtp: number;
      readonly viseme: Viseme;
    }
  /** The session has ended in the worker, and its resources are freed. Once per opened session. */
  | { readonly type: 'ended'; readonly sessionId: string; readonly reason: EndReason }
  | {
      readonly type: 'stats';
      readonly sessionId: string;
      readonly requestId: number;
      readonly stats: SessionStatsReport | undefined;
    }
  /** Once a second, for placement. `load` and `costPerSession` are shares of a core. */
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

/** Statistics of one session, for GET /sessions/{id}/stats and the demo page. */
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

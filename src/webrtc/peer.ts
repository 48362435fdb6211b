// What the rest of the worker knows of a WebRTC peer: the interface between the frame loop and the transport.
import type { Offer } from './sdp/offer.ts';
import type { VideoCodec } from '../media/coded-frame.ts';
import type { MediaStats } from './rtp/media-stats.ts';

export interface PeerOptions {
  readonly sessionId: string;
  readonly maxBitrateKbps: number;
  readonly minBitrateKbps: number;
}

/** What a peer tells its session. None of these may throw. Times are `monotonicMs()`. */
export interface PeerListener {
  /** DTLS is up and SRTP keys are there: media may be sent. Once. `iceMs`: when the first authentic check had come. */
  onConnected(nowMs: number, iceMs: number): void;
  /**
   * The peer is gone and all of it freed, for whatever reason but our own `close()`. At most once.
   * `detail`: what exactly failed, for the log; '' when `reason` says it all.
   */
  onClosed(reason: PeerCloseReason, detail: string): void;
  /** A receiver asked for a key frame (PLI or FIR), already rate-limited. */
  onKeyFrameRequest(): void;
  /** What the path can carry changed (REMB, receiver reports). */
  onTargetBitrate(kbps: number): void;
  /** One Opus packet of the peer's own microphone. `packet` is valid during the call. */
  onAudio(packet: Uint8Array, rtpTimestamp: number, sequenceNumber: number): void;
}

/**
 * closed: the client said goodbye. connect_timeout: no check of the client's ever arrived.
 * ice_failed: checks arrived, and none of ours was answered. dtls_failed: no agreement, or no progress.
 * not_authentic: the client is not who the offer said. timeout: silence after having been connected.
 * failed: a defect of ours.
 */
export type PeerCloseReason =
  | 'closed'
  | 'connect_timeout'
  | 'ice_failed'
  | 'dtls_failed'
  | 'not_authentic'
  | 'timeout'
  | 'failed';

/** Counters of one peer since its start. Each read of `Peer.stats` gives the same object. */
export interface PeerStats extends MediaStats {
  /** RTP and RTCP packets that were authentic. */
  packetsReceived: number;
  datagramsRejected: number;
}

export interface Peer {
  /** Takes the offer, gathers, and gives the complete answer (no trickle). @throws ServiceError INVALID_OFFER with what is wrong. */
  answer(offer: Offer): Promise<string>;
  /** The negotiated video codec; null: the client takes sound alone. Valid after `answer`. */
  readonly videoCodec: VideoCodec | undefined;
  readonly isConnected: boolean;
  /** Packetises and sends one coded frame. @returns packets sent. Nothing happens before `onConnected` or after the end. */
  sendVideo(
    frame: Uint8Array,
    length: number,
    isKey: boolean,
    mediaMs: number,
    nowMs: number,
  ): number;
  sendAudio(
    packet: Uint8Array,
    length: number,
    mediaMs: number,
    nowMs: number,
    isTalkSpurtStart: boolean,
  ): number;
  /** Called a few times a second by the beat: sender reports, dead-peer watch, bitrate. */
  poll(nowMs: number): void;
  readonly stats: PeerStats;
  /** How much of the last `sendVideo` went into cutting the frame into payloads; the rest is ciphering and sending. */
  readonly packetizeMs: number;
  /** Sends RTCP BYE and close_notify where possible, frees everything. Idempotent. */
  close(): Promise<void>;
}

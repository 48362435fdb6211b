// The interface between a worker session and its WebRTC transport.
import type { ChannelListener, ChannelReliability, DataChannel } from './sctp/data-channel.ts';
import type { RemoteCandidate } from './sdp/candidate.ts';
import type { Answer, Offer } from './sdp/offer.ts';
import type { VideoCodec } from '../media/coded-frame.ts';
import type { MediaStats } from './rtp/media-stats.ts';

/** What a session sets for its peer. */
export interface PeerOptions {
  readonly sessionId: string;
  readonly maxBitrateKbps: number;
  readonly minBitrateKbps: number;
  /** Before the first feedback. Default: 600. */
  readonly startBitrateKbps?: number;
  /**
   * client (default): a browser; we are ICE-lite towards it. sfu: a media server. We are full ICE,
   * as it may be ICE-lite, and send nothing twice, as it repairs its own losses.
   */
  readonly remote?: 'client' | 'sfu';
  /** A peer of which nothing has been heard for this long is ended. Default: 8000. */
  readonly silenceTimeoutMs?: number;
}

/** How to answer an offer. */
export interface AnswerOptions {
  /** The ids of `a=msid`. Default: those of the answer before, at first random ones. */
  readonly streamId?: string;
  readonly audioTrackId?: string;
  readonly videoTrackId?: string;
  /**
   * Accept an offer in which nothing can be received: sections for media may follow in a later one.
   * Default: false.
   */
  readonly allowsNoMedia?: boolean;
}

/** What to offer. A section that was offered before and is not now becomes inactive. */
export interface OfferRequest {
  /** The ids of `a=msid`. Without an id of the track there is no such track. */
  readonly streamId: string;
  readonly audioTrackId?: string;
  readonly videoTrackId?: string;
  /** The preferred one first. Default: VP8. The codec that is in use stays. */
  readonly videoCodecs?: readonly VideoCodec[];
  /** Data channels. */
  readonly hasData?: boolean;
  /** New ICE credentials. Media goes on on the old path until the new one is found. */
  readonly restartsIce?: boolean;
}

/** The mids of the sections on which we send now; undefined: none. */
export interface SendingMids {
  readonly audio: string | undefined;
  readonly video: string | undefined;
}

/** What a peer reports to its session. None of these may throw. Times are `monotonicMs()`. */
export interface PeerListener extends ChannelListener {
  /**
   * The handshake is done and an address is validated: media can be sent. Called once.
   * @param iceMs when the first authentic check arrived
   */
  onConnected(nowMs: number, iceMs: number): void;
  /**
   * The peer has ended, and is freed. Called at most once, and not after `close()`.
   * @param detail what exactly failed, for the log; '' if `reason` says it all
   */
  onClosed(reason: PeerCloseReason, detail: string): void;
  /** The receiver needs a key frame (PLI, FIR, or after an overflow). Rate-limited. */
  onKeyFrameRequest(): void;
  /** The target bitrate of the video changed (from REMB, loss and round-trip times). */
  onTargetBitrate(kbps: number): void;
  /** One Opus packet of the client's microphone. `packet` is valid during the call. */
  onAudio(packet: Uint8Array, rtpTimestamp: number, sequenceNumber: number): void;
}

/**
 * Why a peer ended by itself.
 * closed: the client sent close_notify.
 * connect_timeout: no check of the client arrived.
 * ice_failed: checks arrived, but none of ours was answered.
 * dtls_failed: the handshake failed or did not finish.
 * not_authentic: the client does not have the certificate of its offer.
 * timeout: the client went silent, or no longer consents.
 * failed: an exception in this server.
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

/**
 * One WebRTC connection. Media times are milliseconds from the start of the session, others
 * `monotonicMs()`.
 */
export interface Peer {
  /**
   * Answers an offer, with all candidates (no trickle). A further offer may add sections, change
   * directions, and restart ICE by new credentials; streams whose section is unchanged go on.
   * @throws ServiceError INVALID_OFFER that says what is wrong; the connection stays as it was
   */
  answer(offer: Offer, options?: AnswerOptions): Promise<string>;
  /**
   * An offer of ours, with all candidates. Call it again for other sections or an ICE restart; a
   * new offer makes one without an answer void.
   */
  offer(request: OfferRequest): string;
  /**
   * Applies the answer to the latest offer.
   * @throws ServiceError INVALID_OFFER that says what is wrong; the connection stays as it was
   */
  accept(answer: Answer): void;
  /**
   * A trickled candidate of an SFU. It may come before the answer.
   * @returns false if it is not used: there are too many, its address cannot be reached, or the
   * remote side is a client, whose checks show its addresses
   */
  addCandidate(candidate: RemoteCandidate): boolean;
  /**
   * Opens a data channel. Messages may be sent at once: they wait for the connection.
   * @throws Error if no data section was negotiated or offered, or there are too many channels
   */
  createChannel(label: string, reliability?: ChannelReliability): DataChannel;
  /**
   * The negotiated video codec; undefined: the client receives audio only. Valid after `answer`.
   */
  readonly videoCodec: VideoCodec | undefined;
  readonly mids: SendingMids;
  /** When the last authentic datagram arrived, `monotonicMs()`. */
  readonly lastHeardMs: number;
  readonly isConnected: boolean;
  /** Sends one coded frame. @returns packets sent; 0 before `onConnected` and after the end */
  sendVideo(
    frame: Uint8Array,
    length: number,
    isKey: boolean,
    mediaMs: number,
    nowMs: number,
  ): number;
  /**
   * Sends one Opus packet.
   * @param audioLevel its level and whether it is speech, as a byte (RFC 6464). Default: no sound
   * @returns packets sent; 0 before `onConnected` and after the end
   */
  sendAudio(
    packet: Uint8Array,
    length: number,
    mediaMs: number,
    nowMs: number,
    isTalkSpurtStart: boolean,
    audioLevel?: number,
  ): number;
  /**
   * Call it a few times a second: sends reports and checks, retransmits handshakes, ends silent
   * peers.
   */
  poll(nowMs: number): void;
  readonly stats: PeerStats;
  /**
   * Time that the latest `sendVideo` spent in the packetizer. The rest was encryption and sending.
   */
  readonly packetizeMs: number;
  /** Sends RTCP BYE and close_notify if connected, and frees everything. Idempotent. */
  close(): Promise<void>;
}

// The peers of one session, one after the other: makes them, and negotiates their connections.
import { toWireError } from '../base/errors.ts';
import type { EndReason } from '../base/session-ends.ts';
import { monotonicMs } from '../base/time.ts';
import type { FromWorker, LocalOfferSpec, OfferSpec, SessionSpec } from '../link/messages.ts';
import type { MediaConfig } from '../link/worker-init.ts';
import type { VideoCodec } from '../media/coded-frame.ts';
import { scaledBitrate } from '../media/picture.ts';
import type { Endpoint } from '../webrtc/endpoint.ts';
import type { Peer, PeerListener } from '../webrtc/peer.ts';
import type { RemoteCandidate } from '../webrtc/sdp/candidate.ts';
import type { Answer, Offer } from '../webrtc/sdp/offer.ts';
import type { DataChannel } from '../webrtc/sctp/data-channel.ts';
import type { FrameTrack } from './frame-track.ts';
import { RoomMessages } from './room-messages.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

/** The session of the peers. */
export interface PeerSession extends PeerListener {
  readonly id: string;
  readonly spec: SessionSpec;
  readonly frames: FrameTrack;
  readonly isOver: boolean;
  peerForgotten(): void;
  fail(error: unknown): void;
  end(reason: EndReason): void;
}

/** What the peers of a worker share. */
export interface PeerContext {
  readonly endpoint: Endpoint;
  readonly codedFrame: Uint8Array;
  readonly metrics: Pick<WorkerMetrics, 'roomData'>;
  readonly post: (message: FromWorker) => void;
  readonly media: Pick<MediaConfig, 'videoBitrateKbps' | 'maxVideoBitrateKbps'>;
}

/** Below this the picture of a talking face falls apart. */
const MIN_BITRATE_KBPS = 150;
/**
 * For a peer that was never made or never began; one that began gives up after 15 s and says why.
 */
const OFFER_STUCK_MS = 20_000;
/** LiveKit clients take up to 15 s to notice that their connection is gone, and restart it then. */
const ROOM_SILENCE_MS = 20_000;

/** A media server reports every second or so: after this silence, the front restarts ICE. */
const SILENCE_MS = 5000;
/** How often dropped messages are told of. */
const LOG_INTERVAL_MS = 1000;

/** Negotiates the connection of a session, which has one peer at a time. */
export class PeerNegotiation {
  readonly #session: PeerSession;
  readonly #context: PeerContext;
  #peer: Peer | undefined = undefined;
  /** The port of a peer that is a media server. */
  #ownEndpoint: Endpoint | undefined = undefined;
  /** Counts peers. */
  #attempt = 0;
  #isClosed = false;
  /** LiveKit's channel for what must arrive. */
  #reliable: DataChannel | undefined = undefined;
  readonly #messages = new RoomMessages(monotonicMs());
  /** When a message into the room was last said to be dropped. */
  #dropLoggedMs = Number.NEGATIVE_INFINITY;
  #isAudioOnly = false;
  /** The peer is a media server, and nothing has been heard of it for SILENCE_MS. */
  #isServer = false;
  #isSilent = false;
  /** When the peer was made; 0: there is none. */
  #madeMs = 0;
  /** The codec of the encoder that is there or is being set up. */
  #codec: VideoCodec | undefined = undefined;

  constructor(session: PeerSession, context: PeerContext) {
    this.#session = session;
    this.#context = context;
  }

  get peer(): Peer | undefined {
    return this.#peer;
  }
  /** The other side takes no video. */
  get isAudioOnly(): boolean {
    return this.#isAudioOnly;
  }
  /** Whether the peer has existed for too long without a connection. */
  isStuck(nowMs: number): boolean {
    return this.#madeMs > 0 && nowMs - this.#madeMs > OFFER_STUCK_MS;
  }

  /** Call it a few times a second. */
  poll(nowMs: number): void {
    this.#peer?.poll(nowMs);
    const peer = this.#peer;
    if (peer?.isConnected !== true || !this.#isServer) {
      return;
    }
    const isSilent = nowMs - peer.lastHeardMs > SILENCE_MS;
    if (isSilent && !this.#isSilent) {
      this.#context.post({ type: 'peerSilent', sessionId: this.#session.id });
    }
    this.#isSilent = isSilent;
  }

  /** Answers an offer: of a new peer, or a further one of the present peer. */
  async offer(offer: Offer, { isNewPeer, names, offerId }: OfferSpec): Promise<void> {
    const session = this.#session;
    let peer = this.#peer;
    try {
      if (isNewPeer || peer === undefined) {
        peer = this.#create('client');
      }
      const sdp = await peer.answer(offer, { ...names, allowsNoMedia: names !== undefined });
      if (session.isOver || peer !== this.#peer) {
        return;
      }
      const { audio: audioMid, video: videoMid } = peer.mids;
      const sessionId = session.id;
      this.#context.post({ type: 'answer', sessionId, sdp, offerId, audioMid, videoMid });
    } catch (error) {
      this.#refuse(error, offerId, isNewPeer);
      return;
    }
    await this.#openVideo(peer.videoCodec);
  }

  /** Offers our tracks to a media server: a new peer, or a further offer of the present one. */
  async makeOffer(spec: LocalOfferSpec): Promise<void> {
    const { names, videoCodecs, restartsIce, isNewPeer, offerId } = spec;
    const isNew = isNewPeer || this.#peer === undefined;
    const peer = isNew ? await this.#createForServer() : this.#peer;
    if (peer === undefined) {
      return;
    }
    const sdp = peer.offer({ ...names, videoCodecs, restartsIce, hasData: true });
    if (this.#reliable === undefined) {
      this.#reliable = peer.createChannel('_reliable');
      peer.createChannel('_lossy', { isOrdered: false, maxRetransmits: 0 });
    }
    this.#context.post({ type: 'localOffer', sessionId: this.#session.id, sdp, offerId });
  }

  /** The media server's answer to the latest offer. */
  async accept(answer: Answer, offerId: number): Promise<void> {
    const peer = this.#peer;
    if (peer === undefined) {
      return;
    }
    try {
      peer.accept(answer);
    } catch (error) {
      this.#refuse(error, offerId, false);
      return;
    }
    await this.#openVideo(peer.videoCodec);
  }

  addCandidate(candidate: RemoteCandidate): void {
    this.#peer?.addCandidate(candidate);
  }

  /** Sends a message to the others in the room. */
  sendData(data: Uint8Array): void {
    const nowMs = monotonicMs();
    if (this.#reliable?.send(data) === false && nowMs - this.#dropLoggedMs > LOG_INTERVAL_MS) {
      this.#dropLoggedMs = nowMs;
      this.#log('a message into the room was dropped: the channel is full or closed');
    }
  }

  /** Whose messages count in the room. */
  heed(identity: string): void {
    this.#messages.heed(identity);
  }

  /** A message of somebody in the room. The front reads it. */
  received(data: Buffer, nowMs: number): void {
    if (!this.#isServer) {
      return;
    }
    const verdict = this.#messages.judge(data, nowMs);
    this.#context.metrics.roomData[verdict].add(data.length);
    if (verdict !== 'dropped') {
      // A copy: a posted Buffer would bring all of its pool along.
      const copy = new Uint8Array(data);
      this.#context.post({ type: 'data', sessionId: this.#session.id, data: copy });
    }
  }

  #log(message: string): void {
    const { id: sessionId } = this.#session;
    this.#context.post({ type: 'log', level: 'warn', sessionId, message, fields: {} });
  }

  /** The session is over. */
  close(): void {
    this.#isClosed = true;
    this.#peer?.close().catch(() => {});
    this.#closeOwnEndpoint();
  }

  /** Closes the peer. */
  drop(): void {
    this.#peer?.close().catch(() => {});
    this.forget();
  }

  /** The peer has ended. */
  forget(): void {
    this.#peer = this.#reliable = undefined;
    this.#madeMs = 0;
    this.#attempt++;
    this.#closeOwnEndpoint();
    this.#session.peerForgotten();
  }

  /** After the peer has said goodbye through it. */
  #closeOwnEndpoint(): void {
    this.#ownEndpoint?.close().catch(() => {});
    this.#ownEndpoint = undefined;
  }

  /**
   * A media server may serve all its clients on one port, and tells them apart by their addresses:
   * the peer gets a port of its own.
   * @returns undefined when it is not wanted any more
   */
  async #createForServer(): Promise<Peer | undefined> {
    this.drop();
    const attempt = this.#attempt;
    const endpoint = await this.#context.endpoint.openSibling();
    if (this.#isClosed || attempt !== this.#attempt) {
      await endpoint.close();
      return undefined;
    }
    const peer = this.#create('sfu', endpoint);
    this.#ownEndpoint = endpoint;
    return peer;
  }

  #create(remote: 'client' | 'sfu', endpoint = this.#context.endpoint): Peer {
    this.drop();
    const { id, spec } = this.#session;
    const { startKbps, mostKbps } = this.#bitrates();
    this.#madeMs = monotonicMs();
    this.#isServer = remote === 'sfu';
    this.#isSilent = false;
    this.#peer = endpoint.createPeer(
      {
        sessionId: id,
        remote,
        minBitrateKbps: MIN_BITRATE_KBPS,
        maxBitrateKbps: mostKbps,
        startBitrateKbps: startKbps,
        ...(spec.outlivesPeers ? { silenceTimeoutMs: ROOM_SILENCE_MS } : {}),
      },
      this.#session,
    );
    return this.#peer;
  }

  /** Bitrates of the video, by the size of its pictures. */
  #bitrates(): { readonly startKbps: number; readonly mostKbps: number } {
    const { videoBitrateKbps, maxVideoBitrateKbps } = this.#context.media;
    const scaledKbps = scaledBitrate(videoBitrateKbps, this.#session.frames.renderer.size);
    const mostKbps = maxVideoBitrateKbps ?? scaledKbps;
    return { startKbps: Math.min(scaledKbps, mostKbps), mostKbps };
  }

  /** Sets up the encoder that the peer needs. */
  async #openVideo(videoCodec: VideoCodec | undefined): Promise<void> {
    const { codedFrame } = this.#context;
    this.#isAudioOnly = videoCodec === undefined;
    if (videoCodec === undefined || videoCodec === this.#codec) {
      return;
    }
    this.#codec = videoCodec;
    try {
      await this.#session.frames.open(videoCodec, this.#bitrates().startKbps, codedFrame);
    } catch (error) {
      this.#session.fail(error);
    }
  }

  /** A first offer that cannot be answered ends a session that is nothing without its peer. */
  #refuse(cause: unknown, offerId: number, isNewPeer: boolean): void {
    const session = this.#session;
    if (session.isOver) {
      return;
    }
    const { post } = this.#context;
    const sessionId = session.id;
    const error = toWireError(cause);
    if (session.spec.outlivesPeers || !isNewPeer) {
      post({ type: 'offerRefused', sessionId, offerId, error });
      return;
    }
    post({ type: 'failed', sessionId, error, reason: 'invalid_offer' });
    session.end('invalid_offer');
  }
}

// One WebRTC peer: connects ICE, DTLS, SCTP and media, and ends the connection.
import type { Answer, Offer } from './sdp/offer.ts';
import type { VideoCodec } from '../media/coded-frame.ts';
import { IceAgent } from './ice/ice-agent.ts';
import type { IceTransport, StunVerdict } from './ice/ice.ts';
import { IcePaths } from './ice/ice-paths.ts';
import { MediaSender } from './rtp/media-sender.ts';
import { newMediaStats } from './rtp/media-stats.ts';
import { IncomingAudio } from './rtp/incoming-audio.ts';
import { Negotiation, type TransportIdentity } from './negotiation.ts';
import type {
  AnswerOptions,
  OfferRequest,
  Peer,
  PeerCloseReason,
  PeerListener,
  PeerOptions,
  PeerStats,
  SendingMids,
} from './peer.ts';
import { iceHostOf, type PeerHost, type RoutedPeer } from './peer-host.ts';
import type { RejectReason } from '../base/reject-reasons.ts';
import type { AnswerPlan } from './sdp/answer.ts';
import type { RemoteCandidate } from './sdp/candidate.ts';
import { DataChannels, type ChannelReliability, type DataChannel } from './sctp/data-channel.ts';
import { SecureTransport } from './secure-transport.ts';
import type { SrtpReceiver } from './srtp/srtp.ts';
import type { StunView } from './ice/stun.ts';

/** From the answer until media can be sent. */
const CONNECT_TIMEOUT_MS = 15_000;
/** Nothing authentic arrived for this long: the client is gone. */
const SILENCE_TIMEOUT_MS = 8_000;
/**
 * After this silence, check every second: clients answer even if they send neither reports nor
 * checks.
 */
const PROBE_AFTER_MS = 3_000;
/** Lives from `createPeer` until `close()` or `onClosed`. */
export class RtcPeer implements Peer, RoutedPeer {
  readonly #host: PeerHost;
  readonly #options: PeerOptions;
  readonly #listener: PeerListener;
  readonly stats: PeerStats = { ...newMediaStats(), packetsReceived: 0, datagramsRejected: 0 };
  #state: 'new' | 'offered' | 'connecting' | 'connected' | 'closed' = 'new';
  readonly #negotiation: Negotiation;
  #secure: SecureTransport | undefined = undefined;
  #media: MediaSender | undefined = undefined;
  #data: DataChannels | undefined = undefined;
  #receiver: SrtpReceiver | undefined = undefined;
  readonly #incomingAudio: IncomingAudio;
  /** Full ICE; undefined: ICE-lite. */
  readonly #agent: IceAgent | undefined;
  readonly #paths: IceTransport;
  #connectingMs = 0;
  /** When the first authentic check, or answer to one, arrived; 0: not yet. */
  #iceMs = 0;
  /** When the last authentic datagram arrived. */
  #lastHeardMs = 0;

  constructor(host: PeerHost, options: PeerOptions, listener: PeerListener) {
    this.#host = host;
    this.#options = options;
    this.#listener = listener;
    this.#incomingAudio = new IncomingAudio((packet, rtpTimestamp, sequenceNumber) => {
      listener.onAudio(packet, rtpTimestamp, sequenceNumber);
    });
    const iceHost = iceHostOf(host, this);
    const onSelected = (): void => {
      this.#secure?.onSelected();
    };
    const isSfu = options.remote === 'sfu';
    this.#agent = isSfu ? new IceAgent(iceHost, onSelected) : undefined;
    this.#paths = this.#agent ?? new IcePaths(iceHost, onSelected);
    this.#negotiation = new Negotiation(!isSfu);
  }

  get ufrag(): string {
    return this.#paths.local.ufrag;
  }

  get #plan(): AnswerPlan | undefined {
    return this.#negotiation.plan;
  }
  get videoCodec(): VideoCodec | undefined {
    return this.#plan?.videoCodec;
  }
  get mids(): SendingMids {
    const { audio, video } = this.#plan ?? {};
    return {
      audio: audio?.sends === true ? audio.section.mid : undefined,
      video: video?.sends === true ? video.section.mid : undefined,
    };
  }
  get lastHeardMs(): number {
    return this.#lastHeardMs;
  }
  get isConnected(): boolean {
    return this.#state === 'connected';
  }
  get packetizeMs(): number {
    return this.#media?.packetizeMs ?? 0;
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- other transports negotiate slowly
  async answer(offer: Offer, options: AnswerOptions = {}): Promise<string> {
    if (this.#state === 'closed') {
      throw new Error('The peer is closed. Create a new one.');
    }
    const plan = this.#negotiation.planFor(offer, options);
    if (this.#negotiation.isRestart(plan)) {
      this.#restartIce();
    } else if (this.#state === 'new' && !offer.isIceLite) {
      this.#agent?.becomeControlled();
    }
    const needsKeyFrame = this.#apply(plan);
    const sdp = this.#negotiation.answer(plan, options, this.#identity());
    if (needsKeyFrame) {
      this.#media?.requestKeyFrame(this.#host.now());
    }
    return sdp;
  }

  offer(request: OfferRequest): string {
    if (this.#state === 'closed') {
      throw new Error('The peer is closed. Create a new one.');
    }
    if (this.#state === 'new') {
      this.#state = 'offered';
    } else if (request.restartsIce === true) {
      this.#restartIce();
    }
    if (request.hasData === true) {
      this.#openData();
    }
    return this.#negotiation.offer(request, this.#identity());
  }

  accept(answer: Answer): void {
    if (this.#state === 'closed') {
      return;
    }
    if (this.#apply(this.#negotiation.accept(answer))) {
      this.#media?.requestKeyFrame(this.#host.now());
    }
  }

  addCandidate({ address: remote, port, priority }: RemoteCandidate): boolean {
    const address = this.#host.socketAddress(remote);
    return (
      address !== undefined &&
      this.#state !== 'closed' &&
      this.#paths.addCandidate({ address, port, priority }, this.#host.now())
    );
  }

  #restartIce(): void {
    const before = this.ufrag;
    this.#paths.restart();
    this.#host.renameUfrag(before, this);
  }

  /** Takes over what is agreed on. @returns whether the other side needs a key frame */
  #apply(plan: AnswerPlan): boolean {
    const media = this.#openMedia();
    const needsKeyFrame = media.update(plan) && this.#state === 'connected';
    this.#secure ??= this.#createSecure(plan);
    if (plan.data !== undefined) {
      this.#openData().maxMessageBytes = plan.data.maxMessageBytes;
      if (this.#state === 'connected') {
        this.#data?.start();
      }
    }
    this.#paths.setRemote(plan.transport);
    for (const candidate of plan.offer.candidates) {
      this.addCandidate(candidate);
    }
    if (this.#state === 'new' || this.#state === 'offered') {
      this.#state = 'connecting';
      this.#connectingMs = this.#lastHeardMs = this.#host.now();
    }
    return needsKeyFrame;
  }

  createChannel(label: string, reliability: ChannelReliability = {}): DataChannel {
    if (this.#data === undefined) {
      throw new Error('No data section was negotiated or offered.');
    }
    return this.#data.create(label, reliability);
  }

  #openData(): DataChannels {
    return (this.#data ??= new DataChannels(
      (packet) => {
        this.#secure?.send(packet);
      },
      () => this.#host.now(),
      this.#listener,
    ));
  }

  #identity(): TransportIdentity {
    const media = this.#openMedia();
    const { ssrc: videoSsrc, rtxSsrc: videoRtxSsrc } = media.ssrcsOf('video');
    return {
      ...this.#paths.local,
      fingerprint: this.#host.certificate.fingerprint,
      candidates: this.#host.candidates,
      videoSsrc,
      videoRtxSsrc,
      audioSsrc: media.ssrcsOf('audio').ssrc,
    };
  }

  #openMedia(): MediaSender {
    return (this.#media ??= this.#createMedia());
  }

  #createMedia(): MediaSender {
    return new MediaSender(
      { video: undefined, videoCodec: undefined, audio: undefined },
      {
        ...this.#options,
        wallOffsetMs: this.#host.wallOffsetMs,
        cname: this.#negotiation.cname,
        isRedundant: this.#options.remote !== 'sfu',
      },
      this.#listener,
      this.stats,
      () => this.#host.nextBuffer(),
      (datagram, length) => {
        this.#paths.sendMedia(datagram, length);
      },
    );
  }

  #createSecure({ transport }: AnswerPlan): SecureTransport {
    const now = (): number => this.#host.now();
    return new SecureTransport(this.#host.certificate, transport.fingerprints, this.#paths, now, {
      onReady: (sender, receiver) => {
        const nowMs = now();
        this.#receiver = receiver;
        this.#state = 'connected';
        this.#media?.start(sender, nowMs);
        this.#data?.start();
        this.#listener.onConnected(nowMs, this.#iceMs);
      },
      onClosed: (reason, detail) => {
        this.#end(reason, detail);
      },
      onData: (data) => {
        if (this.#data?.receive(data) !== true) {
          this.#reject('sctp_malformed');
        }
      },
    });
  }

  sendVideo(
    frame: Uint8Array,
    length: number,
    isKey: boolean,
    mediaMs: number,
    nowMs: number,
  ): number {
    return this.#state === 'connected' && this.#media !== undefined
      ? this.#media.sendVideo(frame, length, isKey, mediaMs, nowMs)
      : 0;
  }

  sendAudio(
    packet: Uint8Array,
    length: number,
    mediaMs: number,
    nowMs: number,
    isTalkSpurtStart: boolean,
    audioLevel?: number,
  ): number {
    return this.#state === 'connected' && this.#media !== undefined
      ? this.#media.sendAudio(packet, length, mediaMs, nowMs, isTalkSpurtStart, audioLevel)
      : 0;
  }

  poll(nowMs: number): void {
    if (this.#state === 'connecting') {
      this.#paths.poll(nowMs);
      this.#secure?.poll(nowMs);
      if (nowMs - this.#connectingMs > CONNECT_TIMEOUT_MS) {
        this.#end(this.#connectFailure());
      }
    } else if (this.#state === 'connected') {
      this.#paths.poll(nowMs);
      this.#media?.poll(nowMs);
      this.#data?.poll(nowMs);
      const silenceMs = nowMs - this.#lastHeardMs;
      const limitMs = this.#options.silenceTimeoutMs ?? SILENCE_TIMEOUT_MS;
      if (silenceMs > limitMs || !this.#paths.hasConsent(nowMs)) {
        this.#end('timeout');
      } else if (silenceMs > PROBE_AFTER_MS) {
        this.#paths.checkSelected(nowMs);
      }
    }
  }

  /** Which step the connection did not reach in time. */
  #connectFailure(): PeerCloseReason {
    if (!this.#paths.hasPaths) {
      return 'connect_timeout';
    }
    return this.#paths.isSelected ? 'dtls_failed' : 'ice_failed';
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- other transports close slowly
  async close(): Promise<void> {
    if (this.#state === 'closed') {
      return;
    }
    this.#media?.stop();
    this.#secure?.close();
    this.#free();
  }

  fail(error: unknown): void {
    this.#host.onPeerError(error, this.#options.sessionId);
    this.#end('failed');
  }

  /** Frees everything, then tells the listener why. */
  #end(reason: PeerCloseReason, detail = ''): void {
    if (this.#state === 'closed') {
      return;
    }
    if (reason !== 'closed') {
      this.#media?.stop();
      this.#secure?.close();
    }
    this.#free();
    this.#listener.onClosed(reason, detail);
  }

  #free(): void {
    this.#state = 'closed';
    this.#data?.close();
    this.#paths.close();
    this.#secure = undefined;
    this.#media = undefined;
    this.#data = undefined;
    this.#receiver = undefined;
    this.#host.forget(this);
  }

  #reject(reason: RejectReason): void {
    this.stats.datagramsRejected++;
    this.#host.reject(reason);
  }

  // Datagrams that the endpoint routes to this peer

  onStunRequest(data: Buffer, view: StunView, address: string, port: number, nowMs: number): void {
    if (this.#state === 'new' || this.#state === 'closed') {
      this.#reject('other');
      return;
    }
    this.#countStun(this.#paths.onRequest(data, view, address, port, nowMs), nowMs);
  }

  onStunResponse(data: Buffer, view: StunView, address: string, port: number, nowMs: number): void {
    this.#countStun(this.#paths.onResponse(data, view, address, port, nowMs), nowMs);
  }

  #countStun(verdict: StunVerdict, nowMs: number): void {
    if (verdict === 'accepted') {
      this.#lastHeardMs = nowMs;
      this.#iceMs ||= nowMs;
    } else if (verdict !== 'repeated') {
      this.#reject(verdict);
    }
  }

  onDtls(data: Buffer, key: string, nowMs: number): void {
    this.#paths.onHandshake(key, data.length);
    const verdict = this.#secure?.receive(data, nowMs) ?? 'other';
    if (verdict === 'accepted') {
      this.#lastHeardMs = nowMs;
    } else if (verdict !== 'repeated') {
      this.#reject(verdict);
    }
  }

  onRtcp(data: Buffer, nowMs: number): void {
    const plain = this.#receiver?.unprotectRtcp(data);
    if (plain === undefined || this.#media === undefined) {
      this.#reject('srtp_auth');
      return;
    }
    this.#lastHeardMs = nowMs;
    this.stats.packetsReceived++;
    if (!this.#media.receive(plain, nowMs)) {
      this.#reject('other');
    }
  }

  onRtp(data: Buffer, nowMs: number): void {
    const verdict = this.#incomingAudio.receive(
      data,
      this.#plan?.microphone,
      this.#receiver,
      nowMs,
    );
    if (verdict === 'accepted' || verdict === 'rate_limited') {
      this.#lastHeardMs = nowMs;
      this.stats.packetsReceived++;
    }
    if (verdict !== 'accepted') {
      this.#reject(verdict);
    }
  }
}

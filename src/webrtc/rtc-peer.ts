// One WebRTC peer: connects ICE-lite, DTLS, SCTP and media, and ends the connection.
import type { Offer } from './sdp/offer.ts';
import type { VideoCodec } from '../media/coded-frame.ts';
import { DataChannelResponder } from './sctp/data-channel.ts';
import { DtlsServer } from './dtls/dtls-server.ts';
import type { StunVerdict } from './ice/ice.ts';
import { IcePaths } from './ice/ice-paths.ts';
import { MediaSender } from './rtp/media-sender.ts';
import { newMediaStats } from './rtp/media-stats.ts';
import { Negotiation } from './negotiation.ts';
import type {
  AnswerOptions,
  Peer,
  PeerCloseReason,
  PeerListener,
  PeerOptions,
  PeerStats,
  SendingMids,
} from './peer.ts';
import type { PeerHost, RejectReason, RoutedPeer } from './peer-host.ts';
import type { AnswerPlan } from './sdp/answer.ts';
import type { SrtpReceiver, SrtpSender } from './srtp/srtp.ts';
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
/**
 * Four times the rate of a microphone with 20 ms packets: allows bursts, but no flood that must be
 * decoded.
 */
const MAX_AUDIO_PACKETS_PER_SECOND = 200;

/** Lives from `createPeer` until `close()` or `onClosed`. */
export class RtcPeer implements Peer, RoutedPeer {
  readonly #host: PeerHost;
  readonly #options: PeerOptions;
  readonly #listener: PeerListener;
  readonly stats: PeerStats = { ...newMediaStats(), packetsReceived: 0, datagramsRejected: 0 };
  #state: 'new' | 'answered' | 'connected' | 'closed' = 'new';
  readonly #negotiation = new Negotiation();
  #dtls: DtlsServer | undefined = undefined;
  #media: MediaSender | undefined = undefined;
  #data: DataChannelResponder | undefined = undefined;
  #receiver: SrtpReceiver | undefined = undefined;
  readonly #paths: IcePaths;
  /** Set while the handshake is done and no address is validated. */
  #keys: readonly [SrtpSender, SrtpReceiver] | undefined = undefined;
  /** The anti-amplification limit held back a handshake flight. */
  #isFlightHeldBack = false;
  #answerMs = 0;
  /** When the first authentic check arrived; 0: not yet. */
  #iceMs = 0;
  /** When the last authentic datagram arrived. */
  #lastHeardMs = 0;
  /** Microphone packets in the current second of the clock. */
  #audioSecond = 0;
  #audioPackets = 0;

  constructor(host: PeerHost, options: PeerOptions, listener: PeerListener) {
    this.#host = host;
    this.#options = options;
    this.#listener = listener;
    this.#paths = new IcePaths(
      {
        send: (datagram, length, address, port) => {
          host.send(datagram, length, address, port);
        },
        claimAddress: (key, isValidated) => {
          host.claimAddress(key, this, isValidated);
        },
        releaseAddress: (key) => {
          host.releaseAddress(key, this);
        },
        expectResponse: (id) => {
          host.expectResponse(id, this);
        },
        forgetResponse: (id) => {
          host.forgetResponse(id);
        },
        onAmplificationLimit: () => {
          host.onAmplificationLimit();
        },
      },
      () => {
        this.#onSelected();
      },
    );
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
    const nowMs = this.#host.now();
    if (this.#negotiation.isRestart(plan)) {
      const before = this.ufrag;
      this.#paths.restart();
      this.#host.renameUfrag(before, this);
    }
    const needsKeyFrame = this.#media?.update(plan) ?? false;
    const media = (this.#media ??= this.#createMedia(plan));
    const dtls = (this.#dtls ??= this.#createDtls(plan));
    if (plan.data !== undefined) {
      this.#data ??= new DataChannelResponder((packet) => {
        dtls.send(packet);
      });
    }
    this.#paths.setRemote(plan.transport);
    if (this.#state === 'new') {
      this.#state = 'answered';
      this.#answerMs = this.#lastHeardMs = nowMs;
    }
    const sdp = this.#negotiation.answer(plan, options, {
      ...this.#paths.local,
      fingerprint: this.#host.certificate.fingerprint,
      candidates: this.#host.candidates,
      videoSsrc: media.video?.ssrc ?? 0,
      videoRtxSsrc: media.video?.rtxSsrc ?? 0,
      audioSsrc: media.audio?.ssrc ?? 0,
    });
    if (needsKeyFrame) {
      media.requestKeyFrame(nowMs);
    }
    return sdp;
  }

  #createMedia(plan: AnswerPlan): MediaSender {
    return new MediaSender(
      plan,
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

  #createDtls({ transport }: AnswerPlan): DtlsServer {
    return new DtlsServer(this.#host.certificate, transport.fingerprints, {
      send: (datagram) => {
        if (!this.#paths.sendHandshake(datagram, this.#host.now())) {
          this.#isFlightHeldBack = true;
        }
      },
      onConnected: (sender, receiver) => {
        this.#onHandshakeDone(sender, receiver);
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
  ): number {
    return this.#state === 'connected' && this.#media !== undefined
      ? this.#media.sendAudio(packet, length, mediaMs, nowMs, isTalkSpurtStart)
      : 0;
  }

  poll(nowMs: number): void {
    if (this.#state === 'answered') {
      this.#paths.poll(nowMs);
      this.#dtls?.poll(nowMs);
      if (nowMs - this.#answerMs > CONNECT_TIMEOUT_MS) {
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
    this.#dtls?.close();
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
      this.#dtls?.close();
    }
    this.#free();
    this.#listener.onClosed(reason, detail);
  }

  #free(): void {
    this.#state = 'closed';
    this.#paths.close();
    this.#keys = undefined;
    this.#dtls = undefined;
    this.#media = undefined;
    this.#data = undefined;
    this.#receiver = undefined;
    this.#host.forget(this);
  }

  /** Media also needs a validated address. Usually there is one by now. */
  #onHandshakeDone(sender: SrtpSender, receiver: SrtpReceiver): void {
    this.#keys = [sender, receiver];
    if (this.#paths.isSelected) {
      this.#connect();
    }
  }

  #connect(): void {
    if (this.#keys === undefined) {
      return;
    }
    const [sender, receiver] = this.#keys;
    const nowMs = this.#host.now();
    this.#keys = undefined;
    this.#receiver = receiver;
    this.#state = 'connected';
    this.#media?.start(sender, nowMs);
    this.#listener.onConnected(nowMs, this.#iceMs);
  }

  /** An address is validated: sends what had to wait for it. */
  #onSelected(): void {
    if (this.#isFlightHeldBack) {
      this.#dtls?.resendFlight(this.#host.now());
    }
    this.#isFlightHeldBack = false;
    this.#connect();
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
    const isAccepted = this.#countStun(
      this.#paths.onRequest(data, view, address, port, nowMs),
      nowMs,
    );
    if (isAccepted && this.#iceMs === 0) {
      this.#iceMs = nowMs;
    }
  }

  onStunResponse(data: Buffer, view: StunView, address: string, port: number, nowMs: number): void {
    this.#countStun(this.#paths.onResponse(data, view, address, port, nowMs), nowMs);
  }

  /** @returns whether the message is a sign of life */
  #countStun(verdict: StunVerdict, nowMs: number): boolean {
    if (verdict === 'accepted') {
      this.#lastHeardMs = nowMs;
    } else if (verdict !== 'repeated') {
      this.#reject(verdict);
    }
    return verdict === 'accepted';
  }

  onDtls(data: Buffer, key: string, nowMs: number): void {
    this.#paths.onHandshake(key, data.length);
    const verdict = this.#dtls?.receive(data, nowMs) ?? 'other';
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
    const microphone = this.#plan?.microphone;
    if (microphone === undefined || ((data[1] ?? 0) & 127) !== microphone.codec.payloadType) {
      this.#reject('other');
      return;
    }
    const payload = this.#receiver?.unprotectRtp(data);
    if (payload === undefined) {
      this.#reject('srtp_auth');
      return;
    }
    this.#lastHeardMs = nowMs;
    this.stats.packetsReceived++;
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#audioSecond) {
      this.#audioSecond = second;
      this.#audioPackets = 0;
    }
    if (++this.#audioPackets > MAX_AUDIO_PACKETS_PER_SECOND) {
      this.#reject('rate_limited');
      return;
    }
    if (payload.length > 0) {
      this.#listener.onAudio(payload, data.readUInt32BE(4), data.readUInt16BE(2));
    }
  }
}

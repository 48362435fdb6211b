// One WebRTC peer: ICE-lite, DTLS, SRTP and the life of the connection; media goes through MediaSender.
import { randomBytes, randomInt } from 'node:crypto';
import type { Offer } from './sdp/offer.ts';
import type { VideoCodec } from '../media/coded-frame.ts';
import type { Certificate } from './dtls/certificate.ts';
import { DataChannelResponder } from './sctp/data-channel.ts';
import { DtlsServer } from './dtls/dtls-server.ts';
import { IcePaths, type StunVerdict } from './ice/ice-paths.ts';
import { MediaSender } from './rtp/media-sender.ts';
import type { Peer, PeerCloseReason, PeerListener, PeerOptions, PeerStats } from './peer.ts';
import { planAnswer, writeAnswer, type AnswerPlan, type Candidate } from './sdp/answer.ts';
import type { SrtpReceiver, SrtpSender } from './srtp/srtp.ts';
import type { StunView } from './ice/stun.ts';

/** Why a datagram was dropped: the labels of mouthpiece_datagrams_rejected_total. */
export const REJECT_REASONS = [
  'unknown_source',
  'stun_integrity',
  'stun_replayed',
  'stun_unknown_user',
  'stun_malformed',
  'dtls_record',
  'dtls_plaintext',
  'dtls_renegotiation',
  'sctp_malformed',
  'srtp_auth',
  'rate_limited',
  'too_large',
  'other',
] as const;
export type RejectReason = (typeof REJECT_REASONS)[number];

/** What a peer needs of the endpoint it lives on. */
export interface PeerHost {
  readonly certificate: Certificate;
  readonly candidates: readonly Candidate[];
  readonly wallOffsetMs: number;
  nextBuffer(): Buffer;
  send(datagram: Buffer, length: number, address: string, port: number): void;
  /** Routes datagrams from an address to `peer`; from another peer's address only when `isProven`. */
  claimAddress(key: string, peer: RtcPeer, isProven: boolean): void;
  releaseAddress(key: string, peer: RtcPeer): void;
  /** Routes the response with this transaction id to `peer`. */
  expectResponse(id: string, peer: RtcPeer): void;
  forgetResponse(id: string): void;
  /** A datagram was not sent, since its address has not proven itself. */
  onHeldBack(): void;
  forget(peer: RtcPeer): void;
  reject(reason: RejectReason): void;
  now(): number;
  onPeerError(error: unknown, sessionId: string): void;
}

const CONNECT_TIMEOUT_MS = 15_000;
const SILENCE_TIMEOUT_MS = 8_000;
/** Silence after which we ask each second: receivers that send neither reports nor checks answer. */
const PROBE_AFTER_MS = 3_000;
/** Four times what a microphone sends in 20 ms packets: room for what a network held back, none for a flood that would be decoded. */
const MAX_AUDIO_PACKETS_PER_SECOND = 200;

export class RtcPeer implements Peer {
  readonly #host: PeerHost;
  readonly #options: PeerOptions;
  readonly #listener: PeerListener;
  readonly stats: PeerStats = {
    packetsSent: 0,
    bytesSent: 0,
    packetsRetransmitted: 0,
    nacksReceived: 0,
    plisReceived: 0,
    firsReceived: 0,
    packetsLost: 0,
    fractionLost: 0,
    jitterMs: 0,
    roundTripMs: 0,
    packetsReceived: 0,
    datagramsRejected: 0,
    targetBitrateKbps: 0,
  };
  #state: 'new' | 'answered' | 'connected' | 'closed' = 'new';
  #plan: AnswerPlan | undefined = undefined;
  #dtls: DtlsServer | undefined = undefined;
  #media: MediaSender | undefined = undefined;
  #data: DataChannelResponder | undefined = undefined;
  #receiver: SrtpReceiver | undefined = undefined;
  readonly #paths: IcePaths;
  /** The handshake is done, and waits for an address that has answered. */
  #keys: readonly [SrtpSender, SrtpReceiver] | undefined = undefined;
  #isFlightHeld = false;
  #answeredMs = 0;
  #iceMs = 0;
  #heardMs = 0;
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
        claimAddress: (key, isProven) => {
          host.claimAddress(key, this, isProven);
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
        onHeldBack: () => {
          host.onHeldBack();
        },
      },
      () => {
        this.#onSelected();
      },
    );
  }

  get ufrag(): string {
    return this.#paths.ufrag;
  }

  get videoCodec(): VideoCodec | undefined {
    return this.#plan?.videoCodec ?? undefined;
  }
  get isConnected(): boolean {
    return this.#state === 'connected';
  }
  get packetizeMs(): number {
    return this.#media?.packetizeMs ?? 0;
  }

  async answer(offer: Offer): Promise<string> {
    if (this.#state !== 'new') {
      throw new Error('A peer answers one offer.');
    }
    const plan = planAnswer(offer);
    const nowMs = this.#host.now();
    const cname = randomBytes(12).toString('base64url');
    this.#plan = plan;
    const media = (this.#media = new MediaSender(
      plan,
      { ...this.#options, wallOffsetMs: this.#host.wallOffsetMs, cname },
      this.#listener,
      this.stats,
      () => this.#host.nextBuffer(),
      (datagram, length) => {
        this.#paths.sendMedia(datagram, length);
      },
    ));
    const dtls = (this.#dtls = new DtlsServer(this.#host.certificate, plan.transport.fingerprints, {
      send: (datagram) => {
        if (!this.#paths.sendHandshake(datagram, this.#host.now())) {
          this.#isFlightHeld = true;
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
    }));
    if (plan.data !== undefined) {
      this.#data = new DataChannelResponder((packet) => {
        dtls.send(packet);
      });
    }
    this.#paths.setRemote(plan.transport.ufrag, plan.transport.password);
    this.#state = 'answered';
    this.#answeredMs = this.#heardMs = nowMs;
    return writeAnswer(plan, {
      sessionNumber: String(randomInt(2 ** 47)),
      ufrag: this.ufrag,
      password: this.#paths.password,
      fingerprint: this.#host.certificate.fingerprint,
      candidates: this.#host.candidates,
      cname,
      streamId: `mouthpiece-${randomBytes(6).toString('hex')}`,
      videoSsrc: media.video?.ssrc ?? 0,
      videoRtxSsrc: media.video?.rtxSsrc ?? 0,
      audioSsrc: media.audio?.ssrc ?? 0,
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
      if (nowMs - this.#answeredMs > CONNECT_TIMEOUT_MS) {
        this.#end(this.#unfinished());
      }
    } else if (this.#state === 'connected') {
      this.#paths.poll(nowMs);
      this.#media?.poll(nowMs);
      this.#data?.poll(nowMs);
      const silenceMs = nowMs - this.#heardMs;
      if (silenceMs > SILENCE_TIMEOUT_MS || !this.#paths.hasConsent(nowMs)) {
        this.#end('timeout');
      } else if (silenceMs > PROBE_AFTER_MS) {
        this.#paths.checkSelected(nowMs);
      }
    }
  }

  /** Which part of a connection did not come up in time. */
  #unfinished(): PeerCloseReason {
    if (!this.#paths.hasPaths) {
      return 'connect_timeout';
    }
    return this.#paths.isSelected ? 'dtls_failed' : 'ice_failed';
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- the interface leaves room for stacks that close slowly
  async close(): Promise<void> {
    if (this.#state === 'closed') {
      return;
    }
    this.#media?.stop();
    this.#dtls?.close();
    this.#free();
  }

  /** Something of ours broke on a datagram of this peer: a defect, which must not reach the others. */
  fail(error: unknown): void {
    this.#host.onPeerError(error, this.#options.sessionId);
    this.#end('failed');
  }

  /** The connection ended by itself: frees everything, then says so. */
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

  /** The handshake is done. Media waits until an address has answered, which it usually has by then. */
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

  /** An address has answered: what had to wait for that goes out. */
  #onSelected(): void {
    if (this.#isFlightHeld) {
      this.#dtls?.resendFlight(this.#host.now());
    }
    this.#isFlightHeld = false;
    this.#connect();
  }

  #reject(reason: RejectReason): void {
    this.stats.datagramsRejected++;
    this.#host.reject(reason);
  }

  // Datagrams that the endpoint found to be for this peer

  onStunRequest(data: Buffer, view: StunView, address: string, port: number, nowMs: number): void {
    if (this.#state === 'new' || this.#state === 'closed') {
      this.#reject('other');
      return;
    }
    const isTaken = this.#onStun(this.#paths.onRequest(data, view, address, port, nowMs), nowMs);
    if (isTaken && this.#iceMs === 0) {
      this.#iceMs = nowMs;
    }
  }

  onStunResponse(data: Buffer, view: StunView, address: string, port: number, nowMs: number): void {
    this.#onStun(this.#paths.onResponse(data, view, address, port, nowMs), nowMs);
  }

  #onStun(verdict: StunVerdict, nowMs: number): boolean {
    if (verdict === 'accepted') {
      this.#heardMs = nowMs;
    } else if (verdict !== 'repeated') {
      this.#reject(verdict);
    }
    return verdict === 'accepted';
  }

  onDtls(data: Buffer, key: string, nowMs: number): void {
    this.#paths.onHandshake(key, data.length);
    const verdict = this.#dtls?.receive(data, nowMs) ?? 'other';
    if (verdict === 'accepted') {
      this.#heardMs = nowMs;
    } else if (verdict !== 'repeated') {
      this.#reject(verdict);
    }
  }

  onRtcp(data: Buffer, nowMs: number): void {
    const plain = this.#receiver?.unprotectRtcp(data) ?? undefined;
    if (plain === undefined || this.#media === undefined) {
      this.#reject('srtp_auth');
      return;
    }
    this.#heardMs = nowMs;
    this.stats.packetsReceived++;
    if (!this.#media.receive(plain, nowMs)) {
      this.#reject('other');
    }
  }

  onRtp(data: Buffer, nowMs: number): void {
    const microphone = this.#plan?.microphone ?? undefined;
    if (microphone === undefined || ((data[1] ?? 0) & 127) !== microphone.codec.payloadType) {
      this.#reject('other');
      return;
    }
    const payload = this.#receiver?.unprotectRtp(data) ?? undefined;
    if (payload === undefined) {
      this.#reject('srtp_auth');
      return;
    }
    this.#heardMs = nowMs;
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

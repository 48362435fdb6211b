// One WebRTC peer: ICE-lite, DTLS, SRTP and the life of the connection; media goes through MediaSender.
import { randomBytes, randomInt } from 'node:crypto';
import type { Offer } from '../../link/sdp-offer.ts';
import type { VideoCodec } from '../../media/coded-frame.ts';
import type { Certificate } from './certificate.ts';
import { DataChannelResponder } from './data-channel.ts';
import { DtlsServer } from './dtls-server.ts';
import { MediaSender } from './media-sender.ts';
import type { Peer, PeerCloseReason, PeerListener, PeerOptions, PeerStats } from './peer.ts';
import { planAnswer, writeAnswer, type AnswerPlan, type Candidate } from './sdp-answer.ts';
import type { SrtpReceiver, SrtpSender } from './srtp.ts';
import { bindingRequest, bindingSuccess, isAuthentic, transactionId, type StunView } from './stun.ts';

/** Why a datagram was dropped: the labels of mouthpiece_datagrams_rejected_total. */
export const REJECT_REASONS = [
  'unknown_source', 'stun_integrity', 'stun_unknown_user', 'stun_malformed', 'dtls_record', 'dtls_plaintext', 'dtls_renegotiation', 'sctp_malformed', 'srtp_auth',
  'rate_limited', 'too_large', 'other',
] as const;
export type RejectReason = (typeof REJECT_REASONS)[number];

/** What a peer needs of the endpoint it lives on. */
export interface PeerHost {
  readonly certificate: Certificate;
  readonly candidates: readonly Candidate[];
  readonly wallOffsetMs: number;
  nextBuffer(): Buffer;
  send(datagram: Buffer, length: number, address: string, port: number): void;
  /** Routes datagrams from an address to `peer`. @returns false when a live peer has it already. */
  claimAddress(key: string, peer: RtcPeer, nowMs: number): boolean;
  releaseAddress(key: string, peer: RtcPeer): void;
  forget(peer: RtcPeer): void;
  reject(reason: RejectReason): void;
  now(): number;
  onPeerError(error: unknown, sessionId: string): void;
}

interface Address { readonly key: string; readonly address: string; readonly port: number }

const MAX_ADDRESSES = 8;
const CONNECT_TIMEOUT_MS = 15_000;
const SILENCE_TIMEOUT_MS = 8_000;
/** Silence after which we ask: receivers that send neither reports nor checks of their own do answer one. */
const PROBE_AFTER_MS = 3_000;
const PROBE_INTERVAL_MS = 1_000;
/** Four times what a microphone sends in 20 ms packets: room for what a network held back, none for a flood that would be decoded. */
const MAX_AUDIO_PACKETS_PER_SECOND = 200;

export class RtcPeer implements Peer {
  // Plain base64 without padding: RFC 8839 allows letters, digits, + and /.
  readonly ufrag = randomBytes(6).toString('base64');
  readonly #password = randomBytes(18).toString('base64');
  readonly #tieBreaker = randomBytes(8);
  readonly #host: PeerHost;
  readonly #options: PeerOptions;
  readonly #listener: PeerListener;
  readonly stats: PeerStats = {
    packetsSent: 0, bytesSent: 0, packetsRetransmitted: 0, nacksReceived: 0, plisReceived: 0, firsReceived: 0, packetsLost: 0, fractionLost: 0,
    jitterMs: 0, roundTripMs: 0, packetsReceived: 0, datagramsRejected: 0, targetBitrateKbps: 0,
  };
  #state: 'new' | 'answered' | 'connected' | 'closed' = 'new';
  #plan: AnswerPlan | null = null;
  #dtls: DtlsServer | null = null;
  #media: MediaSender | null = null;
  #data: DataChannelResponder | null = null;
  #receiver: SrtpReceiver | null = null;
  readonly #addresses: Address[] = [];
  #selected: Address | null = null;
  #isNominated = false;
  #answeredMs = 0;
  #iceMs = 0;
  #heardMs = 0;
  #probeMs = 0;
  #probeId: Buffer | null = null;
  #audioSecond = 0;
  #audioPackets = 0;

  constructor(host: PeerHost, options: PeerOptions, listener: PeerListener) {
    this.#host = host;
    this.#options = options;
    this.#listener = listener;
  }

  get videoCodec(): VideoCodec | null { return this.#plan?.videoCodec ?? null; }
  get isConnected(): boolean { return this.#state === 'connected'; }
  get packetizeMs(): number { return this.#media?.packetizeMs ?? 0; }
  /** When the last authentic datagram came. */
  get heardMs(): number { return this.#heardMs; }

  async answer(offer: Offer): Promise<string> {
    if (this.#state !== 'new') throw new Error('A peer answers one offer.');
    const plan = planAnswer(offer);
    const nowMs = this.#host.now();
    const cname = randomBytes(12).toString('base64url');
    this.#plan = plan;
    const media = this.#media = new MediaSender(
      plan, { ...this.#options, wallOffsetMs: this.#host.wallOffsetMs, cname }, this.#listener, this.stats,
      () => this.#host.nextBuffer(), (datagram, length) => { this.#sendSelected(datagram, length); },
    );
    const dtls = this.#dtls = new DtlsServer(this.#host.certificate, plan.transport.fingerprints, {
      send: (datagram) => { this.#sendSelected(datagram, datagram.length); },
      onConnected: (sender, receiver) => { this.#onConnected(sender, receiver); },
      onClosed: (reason) => { this.#end(reason); },
      onData: (data) => { if (this.#data?.receive(data) !== true) this.#reject('sctp_malformed'); },
    });
    if (plan.data !== null) this.#data = new DataChannelResponder((packet) => { dtls.send(packet); });
    this.#state = 'answered';
    this.#answeredMs = this.#heardMs = nowMs;
    return writeAnswer(plan, {
      sessionNumber: String(randomInt(2 ** 47)), ufrag: this.ufrag, password: this.#password, fingerprint: this.#host.certificate.fingerprint,
      candidates: this.#host.candidates, cname, streamId: `mouthpiece-${randomBytes(6).toString('hex')}`,
      videoSsrc: media.video?.ssrc ?? 0, videoRtxSsrc: media.video?.rtxSsrc ?? 0, audioSsrc: media.audio?.ssrc ?? 0,
    });
  }

  sendVideo(frame: Uint8Array, length: number, isKey: boolean, mediaMs: number, nowMs: number): number {
    return this.#state === 'connected' && this.#media !== null ? this.#media.sendVideo(frame, length, isKey, mediaMs, nowMs) : 0;
  }

  sendAudio(packet: Uint8Array, length: number, mediaMs: number, nowMs: number, isTalkSpurtStart: boolean): number {
    return this.#state === 'connected' && this.#media !== null ? this.#media.sendAudio(packet, length, mediaMs, nowMs, isTalkSpurtStart) : 0;
  }

  poll(nowMs: number): void {
    if (this.#state === 'answered') {
      this.#dtls?.poll(nowMs);
      if (nowMs - this.#answeredMs > CONNECT_TIMEOUT_MS) this.#end(this.#selected === null ? 'ice_failed' : 'dtls_failed');
    } else if (this.#state === 'connected') {
      this.#media?.poll(nowMs);
      this.#data?.poll(nowMs);
      const silenceMs = nowMs - this.#heardMs;
      if (silenceMs > SILENCE_TIMEOUT_MS) this.#end('timeout');
      else if (silenceMs > PROBE_AFTER_MS && nowMs >= this.#probeMs) this.#probe(nowMs);
    }
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- the interface leaves room for stacks that close slowly
  async close(): Promise<void> {
    if (this.#state === 'closed') return;
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
  #end(reason: PeerCloseReason): void {
    if (this.#state === 'closed') return;
    if (reason !== 'closed') { this.#media?.stop(); this.#dtls?.close(); }
    this.#free();
    this.#listener.onClosed(reason);
  }

  #free(): void {
    this.#state = 'closed';
    for (const { key } of this.#addresses) this.#host.releaseAddress(key, this);
    this.#addresses.length = 0;
    this.#selected = null;
    this.#dtls = null;
    this.#media = null;
    this.#data = null;
    this.#receiver = null;
    this.#host.forget(this);
  }

  #onConnected(sender: SrtpSender, receiver: SrtpReceiver): void {
    const nowMs = this.#host.now();
    this.#receiver = receiver;
    this.#state = 'connected';
    this.#media?.start(sender, nowMs);
    this.#listener.onConnected(nowMs, this.#iceMs);
  }

  #sendSelected(datagram: Buffer, length: number): void {
    if (this.#selected !== null) this.#host.send(datagram, length, this.#selected.address, this.#selected.port);
  }

  #reject(reason: RejectReason): void {
    this.stats.datagramsRejected++;
    this.#host.reject(reason);
  }

  // Datagrams that the endpoint found to be for this peer

  /** A Binding request with our ufrag. Nothing is believed or answered before its integrity is proven. */
  onStunRequest(data: Buffer, view: StunView, address: string, port: number, nowMs: number): void {
    if (this.#state === 'new' || this.#state === 'closed') { this.#reject('other'); return; }
    if (!isAuthentic(data, view, this.#password)) { this.#reject('stun_integrity'); return; }
    const key = `${address}:${port}`;
    const from = this.#addresses.find((known) => known.key === key) ?? this.#learn({ key, address, port }, nowMs);
    if (from === null) { this.#reject('other'); return; }
    this.#heardMs = nowMs;
    if (this.#iceMs === 0) this.#iceMs = nowMs;
    const response = bindingSuccess(data, address, port, this.#password);
    this.#host.send(response, response.length, address, port);
    // The client is in control: the pair it nominated last counts, before that the one it checked last.
    if (view.hasUseCandidate || !this.#isNominated) this.#selected = from;
    if (view.hasUseCandidate) this.#isNominated = true;
  }

  #learn(address: Address, nowMs: number): Address | null {
    if (!this.#host.claimAddress(address.key, this, nowMs)) return null;
    if (this.#addresses.length >= MAX_ADDRESSES) {
      const oldest = this.#addresses.findIndex((known) => known !== this.#selected);
      for (const { key } of this.#addresses.splice(oldest, 1)) this.#host.releaseAddress(key, this);
    }
    this.#addresses.push(address);
    return address;
  }

  /** RFC 7675 from our side. Signed with the client's password, as the client expects of requests to it. */
  #probe(nowMs: number): void {
    const plan = this.#plan;
    if (plan === null || this.#selected === null) return;
    this.#probeMs = nowMs + PROBE_INTERVAL_MS;
    this.#probeId = randomBytes(12);
    const request = bindingRequest(this.#probeId, `${plan.transport.ufrag}:${this.ufrag}`, plan.transport.password, this.#tieBreaker);
    this.#sendSelected(request, request.length);
  }

  onStunResponse(data: Buffer, view: StunView, nowMs: number): void {
    const isOurs = this.#probeId !== null && transactionId(data).equals(this.#probeId);
    if (!isOurs) { this.#reject('stun_unknown_user'); return; }
    if (!isAuthentic(data, view, this.#plan?.transport.password ?? '')) { this.#reject('stun_integrity'); return; }
    this.#probeId = null;
    this.#heardMs = nowMs;
  }

  onDtls(data: Buffer, nowMs: number): void {
    const verdict = this.#dtls?.receive(data, nowMs) ?? 'other';
    if (verdict === 'taken') this.#heardMs = nowMs;
    else this.#reject(verdict);
  }

  onRtcp(data: Buffer, nowMs: number): void {
    const plain = this.#receiver?.unprotectRtcp(data) ?? null;
    if (plain === null || this.#media === null) { this.#reject('srtp_auth'); return; }
    this.#heardMs = nowMs;
    this.stats.packetsReceived++;
    if (!this.#media.receive(plain, nowMs)) this.#reject('other');
  }

  onRtp(data: Buffer, nowMs: number): void {
    const microphone = this.#plan?.microphone ?? null;
    if (microphone === null || ((data[1] ?? 0) & 127) !== microphone.codec.payloadType) { this.#reject('other'); return; }
    const payload = this.#receiver?.unprotectRtp(data) ?? null;
    if (payload === null) { this.#reject('srtp_auth'); return; }
    this.#heardMs = nowMs;
    this.stats.packetsReceived++;
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#audioSecond) { this.#audioSecond = second; this.#audioPackets = 0; }
    if (++this.#audioPackets > MAX_AUDIO_PACKETS_PER_SECOND) { this.#reject('rate_limited'); return; }
    if (payload.length > 0) this.#listener.onAudio(payload, data.readUInt32BE(4), data.readUInt16BE(2));
  }
}

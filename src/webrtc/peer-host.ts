// The interface between the endpoint, which owns the socket, and its peers.
import type { RejectReason } from '../base/reject-reasons.ts';
import type { Certificate } from './dtls/certificate.ts';
import type { IceHost } from './ice/ice.ts';
import type { StunView } from './ice/stun.ts';
import type { Candidate } from './sdp/sdp-lines.ts';

/** What a peer needs of its endpoint. */
export interface PeerHost {
  readonly certificate: Certificate;
  readonly candidates: readonly Candidate[];
  /** Wall-clock time minus monotonic time. */
  readonly wallOffsetMs: number;
  /** A buffer for the next datagram. */
  nextBuffer(): Buffer;
  send(datagram: Buffer, length: number, address: string, port: number): void;
  /**
   * Routes datagrams from an address to `peer`. Takes over another peer's address only if
   * `isValidated`.
   */
  claimAddress(key: string, peer: RoutedPeer, isValidated: boolean): void;
  releaseAddress(key: string, peer: RoutedPeer): void;
  /** Routes the response with this transaction id to `peer`. */
  expectResponse(id: string, peer: RoutedPeer): void;
  forgetResponse(id: string): void;
  /** A datagram was not sent: the anti-amplification limit of its address is used up. */
  onAmplificationLimit(): void;
  /**
   * An address of the other side as the socket reports it.
   * @returns undefined if the socket cannot reach addresses of its family
   */
  socketAddress(address: string): string | undefined;
  /** The peer has another ufrag now: an ICE restart. */
  renameUfrag(before: string, peer: RoutedPeer): void;
  /** The peer has ended. */
  forget(peer: RoutedPeer): void;
  reject(reason: RejectReason): void;
  now(): number;
  onPeerError(error: unknown, sessionId: string): void;
}

/** What the endpoint needs of a peer: the datagrams that it routes. Times are `monotonicMs()`. */
export interface RoutedPeer {
  /** The ICE username fragment, by which STUN requests are routed. */
  readonly ufrag: string;
  onStunRequest(data: Buffer, view: StunView, address: string, port: number, nowMs: number): void;
  onStunResponse(data: Buffer, view: StunView, address: string, port: number, nowMs: number): void;
  /** @param key `address:port` of the sender */
  onDtls(data: Buffer, key: string, nowMs: number): void;
  onRtcp(data: Buffer, nowMs: number): void;
  onRtp(data: Buffer, nowMs: number): void;
  /** Ends this peer alone: processing a datagram of it threw an exception. */
  fail(error: unknown): void;
  close(): Promise<void>;
}

/** What the ICE of a peer needs of the endpoint. */
export const iceHostOf = (host: PeerHost, peer: RoutedPeer): IceHost => ({
  send: (datagram, length, address, port) => {
    host.send(datagram, length, address, port);
  },
  claimAddress: (key, isValidated) => {
    host.claimAddress(key, peer, isValidated);
  },
  releaseAddress: (key) => {
    host.releaseAddress(key, peer);
  },
  expectResponse: (id) => {
    host.expectResponse(id, peer);
  },
  forgetResponse: (id) => {
    host.forgetResponse(id);
  },
  onAmplificationLimit: () => {
    host.onAmplificationLimit();
  },
});

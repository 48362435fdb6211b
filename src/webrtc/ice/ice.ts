// What ICE-lite and full ICE have in common: credentials, the interface to the endpoint, verdicts.
import { randomBytes } from 'node:crypto';
import type { StunView } from './stun.ts';

/** Name and password of one side (RFC 8445 section 5.3). */
export interface IceCredentials {
  readonly ufrag: string;
  readonly password: string;
}

/** Base64 without padding: RFC 8839 section 5.4 allows letters, digits, + and /. */
export const newCredentials = (): IceCredentials => ({
  ufrag: randomBytes(6).toString('base64'),
  password: randomBytes(18).toString('base64'),
});

/** What ICE needs of the endpoint. Address keys are `address:port`. */
export interface IceHost {
  send(datagram: Buffer, length: number, address: string, port: number): void;
  /**
   * Routes datagrams from an address to this peer. Takes over another peer's address only if
   * `isValidated`.
   */
  claimAddress(key: string, isValidated: boolean): void;
  releaseAddress(key: string): void;
  /** Routes the response with this transaction id to this peer, whatever address it comes from. */
  expectResponse(id: string): void;
  forgetResponse(id: string): void;
  /** A datagram was not sent: the anti-amplification limit of its address is used up. */
  onAmplificationLimit(): void;
}

/**
 * What became of a STUN message for this peer. accepted: it is a sign of life.
 * repeated: a request that was answered, without any other effect.
 * The others are labels of mouthpiece_datagrams_rejected_total.
 */
export type StunVerdict =
  | 'accepted'
  | 'repeated'
  | 'stun_integrity'
  | 'stun_replayed'
  | 'stun_unknown_user'
  | 'unknown_source'
  | 'rate_limited'
  | 'other';

/** A candidate of the other side, in the form in which the socket reports addresses. */
export interface IceCandidate {
  readonly address: string;
  readonly port: number;
  readonly priority: number;
}

/** The ICE of one peer: ICE-lite (IcePaths) or full (IceAgent). Times are `monotonicMs()`. */
export interface IceTransport {
  /** Our credentials. */
  readonly local: IceCredentials;
  /** Whether media has an address to go to. */
  readonly isSelected: boolean;
  /** Whether an authentic check of the other side has arrived, or one of ours was answered. */
  readonly hasPaths: boolean;
  /** Sets the credentials of the other side. */
  setRemote(credentials: IceCredentials): void;
  /** @returns false if the candidate is not used */
  addCandidate(candidate: IceCandidate, nowMs: number): boolean;
  /** ICE restart (RFC 8445 section 9): new credentials. Media stays where it is until then. */
  restart(): void;
  onRequest(
    data: Buffer,
    view: StunView,
    address: string,
    port: number,
    nowMs: number,
  ): StunVerdict;
  onResponse(
    data: Buffer,
    view: StunView,
    address: string,
    port: number,
    nowMs: number,
  ): StunVerdict;
  /** A DTLS datagram arrived from `key`. */
  onHandshake(key: string, bytes: number): void;
  /** @returns false if it was not sent */
  sendHandshake(datagram: Buffer, nowMs: number): boolean;
  /** Sends to the selected address; drops the datagram if there is none. */
  sendMedia(datagram: Buffer, length: number): void;
  /** Sends the checks that are due. */
  poll(nowMs: number): void;
  /** Checks the selected address, unless it was checked within the last second. */
  checkSelected(nowMs: number): void;
  /** Whether the other side consents to receive (RFC 7675). True before an address is selected. */
  hasConsent(nowMs: number): boolean;
  /** Releases all addresses. */
  close(): void;
}

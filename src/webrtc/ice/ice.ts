// What ICE-lite and full ICE have in common: credentials, the interface to the endpoint, verdicts.
import { randomBytes } from 'node:crypto';

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

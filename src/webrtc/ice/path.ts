// The state of the path to one address of a client.
import { randomInt } from 'node:crypto';

/** RFC 7675 section 5.1: consent expires 30 s after the last answer. */
export const CONSENT_MS = 30_000;

/** RFC 7675 section 5.1: consent checks are sent every 5 s, times a random factor of 0.8 to 1.2. */
const CONSENT_INTERVAL_MS = { least: 4_000, most: 6_000 } as const;
/** When the next consent check is due. */
export const nextConsentMs = (nowMs: number): number =>
  nowMs + randomInt(CONSENT_INTERVAL_MS.least, CONSENT_INTERVAL_MS.most + 1);

/** A check of ours that may still be answered. */
export interface PendingCheck {
  readonly id: string;
  /** Rank of the nomination that the path had when the check was sent. */
  readonly nomination: number;
}

/** The path to one address of the client. */
export class Path {
  readonly key: string;
  readonly address: string;
  readonly port: number;
  /**
   * Bytes of checks and handshake received from it, and bytes sent to it while it was not
   * validated.
   */
  receivedBytes = 0;
  sentBytes = 0;
  /** When it last answered a check of ours. */
  answeredMs = Number.NEGATIVE_INFINITY;
  /** When the first check since then was sent. */
  unansweredSinceMs = Number.POSITIVE_INFINITY;
  /** Rank of its nomination: the latest nomination has the highest. 0: never nominated. */
  nomination = 0;
  /** Checks that may still be answered, the oldest first. */
  readonly pendingChecks: PendingCheck[] = [];
  /** Checks sent since the client last gave reason to send one. */
  tries = 0;
  /** When the last new check of the client arrived. */
  heardMs = Number.NEGATIVE_INFINITY;
  /** When our last check was sent, and when the next one is due. */
  checkedMs = Number.NEGATIVE_INFINITY;
  nextCheckMs = Number.POSITIVE_INFINITY;

  constructor(key: string, address: string, port: number) {
    this.key = key;
    this.address = address;
    this.port = port;
  }

  /** An answer is valid as long as consent is (RFC 7675 section 5.1). */
  isValidated(nowMs: number): boolean {
    return nowMs - this.answeredMs <= CONSENT_MS;
  }
}

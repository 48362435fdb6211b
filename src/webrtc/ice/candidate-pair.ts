// The state of one candidate pair of full ICE.
import { CONSENT_MS } from './path.ts';
import type { IceRole } from './stun.ts';

/** A check of ours that may still be answered. */
export interface AgentCheck {
  readonly id: string;
  readonly nominates: boolean;
  readonly role: IceRole;
}

/**
 * A candidate of the other side. All our candidates share one socket, and the kernel chooses the
 * source address: so there is one pair for each of its candidates.
 */
export class CandidatePair {
  readonly key: string;
  readonly address: string;
  readonly port: number;
  /** PRIORITY of the remote candidate (RFC 8445 section 5.1.2). */
  priority: number;
  /** Learnt from a check, not from a description. */
  isPeerReflexive: boolean;
  /** Checks that may still be answered, the oldest first. */
  readonly checks: AgentCheck[] = [];
  /** Checks sent since the last answer, or since a check of the other side. */
  tries = 0;
  checkedMs = Number.NEGATIVE_INFINITY;
  nextCheckMs = 0;
  /** When a check of ours was last answered. */
  answeredMs = Number.NEGATIVE_INFINITY;
  /** When a check of the other side last arrived. */
  heardMs = Number.NEGATIVE_INFINITY;
  /** The other side has nominated it, as the controlling side. */
  isNominatedByRemote = false;

  constructor(
    key: string,
    address: string,
    port: number,
    priority: number,
    isPeerReflexive: boolean,
  ) {
    this.key = key;
    this.address = address;
    this.port = port;
    this.priority = priority;
    this.isPeerReflexive = isPeerReflexive;
  }

  /** A check of ours was answered within the time for which consent lasts. */
  isValid(nowMs: number): boolean {
    return nowMs - this.answeredMs <= CONSENT_MS;
  }
}

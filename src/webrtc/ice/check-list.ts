// The candidate pairs of full ICE: found by address, ordered by priority, bounded.
import { CandidatePair, type AgentCheck } from './candidate-pair.ts';
import type { IceCandidate, IceHost } from './ice.ts';

/** Addresses of the other side that are known. Each gets a few datagrams at most. */
const MAX_PAIRS = 32;
/** Checks of one pair that may still be answered. */
const MAX_OPEN_CHECKS = 4;

/** The pairs of one peer. */
export class CheckList {
  readonly #host: IceHost;
  #pairs: CandidatePair[] = [];

  constructor(host: IceHost) {
    this.#host = host;
  }

  /** All pairs, the one of the highest priority first. */
  get pairs(): readonly CandidatePair[] {
    return this.#pairs;
  }

  at(key: string): CandidatePair | undefined {
    return this.#pairs.find((pair) => pair.key === key);
  }

  /** The pair with a check that waits for the response with this id. */
  awaiting(id: string): { readonly pair: CandidatePair; readonly check: AgentCheck } | undefined {
    for (const pair of this.#pairs) {
      const check = pair.checks.find((each) => each.id === id);
      if (check !== undefined) {
        return { pair, check };
      }
    }
    return undefined;
  }

  /**
   * Adds a candidate of a description, or gives a known address its priority.
   * @returns false if there are too many
   */
  add({ address, port, priority }: IceCandidate): boolean {
    const key = `${address}:${port}`;
    const known = this.at(key);
    if (known === undefined && this.#pairs.length >= MAX_PAIRS) {
      return false;
    }
    if (known === undefined) {
      this.#pairs.push(new CandidatePair(key, address, port, priority, false));
    } else {
      known.priority = priority;
      known.isPeerReflexive = false;
    }
    this.#sort();
    return true;
  }

  /**
   * Adds an address that was learnt from a check. If there are too many, it replaces another such
   * one.
   * @param isUseless whether a pair may be replaced
   */
  addPeerReflexive(
    { address, port, priority }: IceCandidate,
    isUseless: (pair: CandidatePair) => boolean,
  ): CandidatePair | undefined {
    if (this.#pairs.length >= MAX_PAIRS) {
      const useless = this.#pairs.find((pair) => pair.isPeerReflexive && isUseless(pair));
      if (useless === undefined) {
        return undefined;
      }
      this.keepOnly((pair) => pair !== useless);
    }
    const pair = new CandidatePair(`${address}:${port}`, address, port, priority, true);
    this.#pairs.push(pair);
    this.#sort();
    this.#host.claimAddress(pair.key, false);
    return pair;
  }

  /** Removes the other pairs, with their addresses. */
  keepOnly(isKept: (pair: CandidatePair) => boolean): void {
    for (const pair of this.#pairs) {
      if (!isKept(pair)) {
        this.forgetChecks(pair);
        this.#host.releaseAddress(pair.key);
      }
    }
    this.#pairs = this.#pairs.filter((pair) => isKept(pair));
  }

  /** Records a check that was sent. The oldest one that is still open makes room. */
  expect(pair: CandidatePair, check: AgentCheck): void {
    pair.checks.push(check);
    this.#host.expectResponse(check.id);
    const [oldest] = pair.checks;
    if (oldest !== undefined && pair.checks.length > MAX_OPEN_CHECKS) {
      this.forgetCheck(pair, oldest);
    }
  }

  /** A check was answered, or is of no interest any more. */
  forgetCheck(pair: CandidatePair, check: AgentCheck): void {
    pair.checks.splice(pair.checks.indexOf(check), 1);
    this.#host.forgetResponse(check.id);
  }

  forgetChecks(pair: CandidatePair): void {
    for (const { id } of pair.checks.splice(0)) {
      this.#host.forgetResponse(id);
    }
  }

  #sort(): void {
    this.#pairs.sort((one, other) => other.priority - one.priority);
  }
}

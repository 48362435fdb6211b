// The candidates of a LiveKit server that may be checked. Each is an address that a stranger names,
// and makes us send.
import { type RemoteCandidate, parseCandidate } from '../../webrtc/sdp/candidate.ts';
import { isPublicAddress } from './livekit-url.ts';

/** A server has a handful. */
const MAX_TRICKLED = 32;

/** The candidates of one peer. */
export class RemoteCandidates {
  readonly #isTrusted: boolean;
  #trickled = 0;

  /** @param isTrusted they may lie on networks that are not public */
  constructor(isTrusted: boolean) {
    this.#isTrusted = isTrusted;
  }

  /** Another peer begins. */
  reset(): void {
    this.#trickled = 0;
  }

  /** @returns undefined: it is not to be checked */
  trickled(candidateInit: string): RemoteCandidate | undefined {
    if (this.#trickled >= MAX_TRICKLED) {
      return undefined;
    }
    this.#trickled++;
    let line: unknown;
    try {
      line = (JSON.parse(candidateInit) as { candidate?: unknown }).candidate;
    } catch {
      return undefined;
    }
    const candidate = typeof line === 'string' ? parseCandidate(line) : undefined;
    return candidate !== undefined && this.mayCheck(candidate) ? candidate : undefined;
  }

  mayCheck({ address }: RemoteCandidate): boolean {
    return this.#isTrusted || isPublicAddress(address);
  }
}

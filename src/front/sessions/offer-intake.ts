// The offers that a client sends over the socket of its session: the first, and further ones of the
// same connection.
import { type WireError, toWireError } from '../../base/errors.ts';
import { TokenBucket } from '../../base/token-bucket.ts';
import type { OfferSpec } from '../../link/messages.ts';
import { type Offer, offerTooLong, parseOffer } from '../../webrtc/sdp/offer.ts';

/** The offer that a session begins with. */
export const FIRST_OFFER: OfferSpec = { offerId: 0, isNewPeer: true };
/** Further offers: each costs the main thread a parse and the worker an answer, 2 ms. */
const OFFERS_PER_SECOND = 1;
const OFFER_BURST = 10;

/** Counts the offers of one session. */
export class OfferIntake {
  readonly #bucket: TokenBucket;
  #lastId = FIRST_OFFER.offerId;

  constructor(nowMs: number) {
    this.#bucket = new TokenBucket(OFFERS_PER_SECOND, OFFER_BURST, nowMs);
  }

  /** How to take a further offer; undefined: there are too many. */
  next(nowMs: number): OfferSpec | undefined {
    return this.#bucket.take(1, nowMs) ? { offerId: ++this.#lastId, isNewPeer: false } : undefined;
  }
}

/**
 * Parses an offer.
 * @param sdp undefined: it was too long to be read
 * @returns the offer, or why it cannot be used
 */
export function readOffer(
  sdp: string | undefined,
): { readonly offer: Offer } | { readonly refusal: WireError } {
  try {
    if (sdp === undefined) {
      throw offerTooLong();
    }
    return { offer: parseOffer(sdp) };
  } catch (error) {
    return { refusal: toWireError(error) };
  }
}

// How much an SCTP association may have under way, and when it gives up waiting (RFC 9260 sections
// 6.3 and 7.2).

/** Longest SCTP packet: with DTLS, UDP and IP below the 1280 bytes that every path carries. */
export const MAX_PACKET_BYTES = 1_160;
/** The initial window of RFC 6928. RFC 9260 section 7.2.1 is older, and says four packets. */
const FIRST_WINDOW_BYTES = 10 * MAX_PACKET_BYTES;
/** The window after a loss, at least. With fewer packets under way losses are noticed too late. */
const LEAST_WINDOW_BYTES = 8 * MAX_PACKET_BYTES;
/** More than this is never useful: 256 KiB is the receive window of most stacks. */
const MAX_WINDOW_BYTES = 256 * 1024;
/**
 * Retransmission time-out. RFC 9260 section 16 suggests 1 s at first and at least, and 60 s at most:
 * what is sent here is of no use a minute later. Receivers delay a SACK by up to 200 ms.
 */
const TIMEOUT_MS = { first: 500, least: 300, most: 3_000 } as const;
/** A probe for lost packets comes after two round trips (RFC 8985 section 7.2), not sooner than: */
const LEAST_PROBE_MS = 30;

/** The congestion window of one association. */
export class Congestion {
  #windowBytes = FIRST_WINDOW_BYTES;
  #thresholdBytes = MAX_WINDOW_BYTES;
  #partialBytes = 0;
  #roundTripMs = Number.NaN;
  #variationMs = 0;
  #timeoutMs: number = TIMEOUT_MS.first;

  /** Bytes that may be under way. */
  get windowBytes(): number {
    return this.#windowBytes;
  }
  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  /** Silence after which the oldest chunk is sent again; Infinity: the round trip is not known. */
  get probeMs(): number {
    const probeMs = 2 * this.#roundTripMs + this.#variationMs;
    return Number.isNaN(probeMs) ? Number.POSITIVE_INFINITY : Math.max(LEAST_PROBE_MS, probeMs);
  }

  /** A chunk that was sent once was acknowledged (RFC 9260 section 6.3.1). */
  onRoundTrip(measuredMs: number): void {
    if (Number.isNaN(this.#roundTripMs)) {
      this.#roundTripMs = measuredMs;
      this.#variationMs = measuredMs / 2;
    } else {
      const deviationMs = Math.abs(this.#roundTripMs - measuredMs);
      this.#variationMs += (deviationMs - this.#variationMs) / 4;
      this.#roundTripMs += (measuredMs - this.#roundTripMs) / 8;
    }
    const timeoutMs = this.#roundTripMs + 4 * this.#variationMs;
    this.#timeoutMs = Math.min(TIMEOUT_MS.most, Math.max(TIMEOUT_MS.least, timeoutMs));
  }

  /** The cumulative TSN has advanced. `wasFull`: the window was used up. */
  onAcknowledged(bytes: number, wasFull: boolean): void {
    if (!wasFull) {
      return;
    }
    if (this.#windowBytes <= this.#thresholdBytes) {
      this.#windowBytes += Math.min(bytes, MAX_PACKET_BYTES);
    } else {
      this.#partialBytes += bytes;
      if (this.#partialBytes >= this.#windowBytes) {
        this.#partialBytes -= this.#windowBytes;
        this.#windowBytes += MAX_PACKET_BYTES;
      }
    }
    this.#windowBytes = Math.min(this.#windowBytes, MAX_WINDOW_BYTES);
  }

  /** Loss was seen in SACKs, once for each window (RFC 9260 section 7.2.3). */
  onLoss(): void {
    this.#thresholdBytes = Math.max(this.#windowBytes / 2, LEAST_WINDOW_BYTES);
    this.#windowBytes = this.#thresholdBytes;
    this.#partialBytes = 0;
  }

  /** Nothing was acknowledged for `timeoutMs`. */
  onTimeout(): void {
    this.#thresholdBytes = Math.max(this.#windowBytes / 2, LEAST_WINDOW_BYTES);
    this.#windowBytes = MAX_PACKET_BYTES;
    this.#partialBytes = 0;
    this.#timeoutMs = Math.min(TIMEOUT_MS.most, this.#timeoutMs * 2);
  }
}

// A message on its way, and its chunks.

/** A message to send. */
export interface OutboundMessage {
  readonly stream: number;
  /** Payload protocol identifier. */
  readonly protocol: number;
  readonly data: Buffer;
  readonly isUnordered: boolean;
  /** Give up after so many retransmissions of a chunk. */
  readonly maxRetransmits: number | undefined;
  /** Give up after this time. */
  readonly expiresMs: number | undefined;
  /** Called once: all of it was acknowledged, or it was given up. */
  onDone(): void;
}

/** A chunk that has a TSN. */
export interface SentChunk {
  readonly tsn: number;
  readonly chunk: Buffer;
  readonly message: Progress;
  readonly sequence: number;
  state: 'inFlight' | 'lost' | 'acknowledged' | 'abandoned';
  sentMs: number;
  /** Place of its latest transmission among all. */
  order: number;
  times: number;
  missing: number;
}

/** A message on its way. */
export interface Progress {
  readonly message: OutboundMessage;
  sequence: number;
  sentBytes: number;
  /** Chunks that are neither acknowledged nor abandoned, of those sent. */
  pending: number;
}

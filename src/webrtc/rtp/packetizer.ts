// The interface of the packetizers: split a coded frame into RTP payloads.

/** Splits one frame at a time. */
export interface Packetizer {
  /** Starts a frame. Do not change `frame` before `next` has returned its last payload. */
  start(frame: Uint8Array, length: number, maxPayloadBytes: number): void;
  /**
   * Writes the next payload to `out` at `offset`.
   * @returns its length in bytes; 0 after the last payload.
   */
  next(out: Uint8Array, offset: number): number;
  /**
   * Whether the latest payload was the last one of the frame. Its packet gets the RTP marker bit.
   */
  readonly isDone: boolean;
}

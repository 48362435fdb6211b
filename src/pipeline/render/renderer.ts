// What the frame's way asks of whoever draws a session's face: the rig of face-stage.ts, or a user's own network.

export interface Renderer {
  /** I420, drawn into by `draw`: always the same buffer. */
  readonly picture: Uint8Array;
  /** One byte per macroblock: 1 where the last `draw` changed the picture. */
  readonly dirty: Uint8Array;
  /** Draws frame number `frame`. `articulation` has ARTICULATION_SIZE channels. */
  draw(frame: number, articulation: Float32Array, isSpeaking: boolean): void;
  /** A frame in which nothing moves. */
  hold(): void;
}

/** A stage that hears the speech itself instead of being given an articulation. */
export interface AudioDrivenRenderer extends Renderer {
  /** Speech that must have been heard beyond the moment a frame shows. */
  readonly lookaheadMs: number;
  /** Frames of speech that showed the mouth of one before, since theirs was not ready. */
  readonly repeatedFrames: number;
  /** A new utterance begins: forget what was heard. */
  reset(): void;
  /** The speech of one model step: 16 kHz. */
  pushAudio(pcm: Int16Array, count: number): void;
  /** What frame number `frame` and those after it need has been heard: their mouths can be made, elsewhere. Does not wait for them. */
  requestFrame(frame: number): void;
  /** The session is over. */
  close(): void;
}

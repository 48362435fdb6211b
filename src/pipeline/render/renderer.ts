// The interface of what draws a session's face: the rig (rig-renderer.ts), or a user's own network
// (wav2lip-renderer.ts).
import type { ConversationState } from '../../media/conversation-state.ts';
import type { FaceCommand } from '../../media/face-command.ts';
import type { PictureSize } from '../../media/face-look.ts';

/** The commands that change how the face looks. */
export type LookCommand = Exclude<FaceCommand, { readonly type: 'mute' }>;

/** Draws one session's face. */
export interface Renderer {
  /** POSE_SIZE channels of the last `draw`, where the renderer has them. */
  readonly pose?: Float32Array;
  /** Width and height of the picture. */
  readonly size: PictureSize;
  /** I420, overwritten by `draw`: always the same buffer. */
  readonly picture: Uint8Array;
  /** One byte per macroblock: 1 where the last `draw` changed the picture (see `macroblocks`). */
  readonly dirty: Uint8Array;
  /** Whether `draw` may leave blocks to an encoder that shifts them (BLOCK_SHIFTED). */
  mayShift?: boolean;
  /**
   * If known, two numbers for each changed macroblock: where what it shows was in the picture
   * before, right and below of where it is now, in quarters of a pixel.
   */
  readonly motion?: Int16Array;
  /**
   * Draws frame number `frame`; numbers count at FPS, may skip, and are fractions between two
   * frames. `articulation` has ARTICULATION_SIZE channels.
   */
  draw(frame: number, articulation: Float32Array, isSpeaking: boolean): void;
  /** A frame without change: clears `dirty`. */
  hold(): void;
  /** What the face does in its conversation, from the next `draw` on. */
  setConversation(state: ConversationState): void;
  /** What the face is told to do, from the next `draw` on. */
  obey(command: LookCommand): void;
}

/** A renderer that takes the speech itself instead of an articulation. */
export interface AudioDrivenRenderer extends Renderer {
  /** How much speech after a frame's own time must be pushed before the frame can be made. */
  readonly lookaheadMs: number;
  /** Frames of speech that showed the patch of an earlier frame, because theirs was not ready. */
  readonly repeatedFrames: number;
  /** A new utterance begins: forget the speech before it. */
  reset(): void;
  /** The speech of one model step: `count` samples at 16 kHz. */
  pushAudio(pcm: Int16Array, count: number): void;
  /**
   * The speech for frame number `frame` has been pushed: requests the frames that can be made now.
   * Does not wait.
   */
  requestFrame(frame: number): void;
  /** The session is over. */
  close(): void;
}

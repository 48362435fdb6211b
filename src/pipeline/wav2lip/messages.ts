// What a media worker and its inference thread say to each other. Pictures lie in shared memory; a slot of it belongs to the thread from `hear` until `made`.
import type { Box } from './face.ts';

/** A mouth to be made. */
export interface FrameRequest {
  readonly frame: number;
  /** Where its patch goes. */
  readonly slot: number;
  /** How much of the speech heard so far lies behind the one that the mouth needs last. */
  readonly backMs: number;
  /** Monotonic time at which the frame is shown. */
  readonly dueMs: number;
}

/** Handled in order, one at a time. */
export type ToInferenceThread =
  | {
      readonly type: 'open';
      readonly id: number;
      readonly face: SharedArrayBuffer;
      readonly slots: number;
    }
  /** The next speech of this session, the first of an utterance or not, and what is wanted of it. */
  | {
      readonly type: 'hear';
      readonly id: number;
      readonly isNew: boolean;
      readonly pcm: Int16Array;
      readonly wanted: readonly FrameRequest[];
    }
  | { readonly type: 'close'; readonly id: number };

export type FromInferenceThread =
  | { readonly type: 'ready'; readonly msPerFrame: number; readonly threads: number }
  /** The last word of a thread whose network can not be used. */
  | { readonly type: 'refused'; readonly why: string; readonly isDefect: boolean }
  | {
      readonly type: 'opened';
      readonly id: number;
      readonly box: Box;
      readonly alpha: Uint16Array;
      readonly patches: SharedArrayBuffer;
    }
  /** @property tookMs null: it could not have been ready when its frame is shown, and was left out */
  | {
      readonly type: 'made';
      readonly id: number;
      readonly slot: number;
      readonly tookMs: number | undefined;
    }
  | { readonly type: 'failed'; readonly id: number; readonly why: string };

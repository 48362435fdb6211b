// The messages between a media worker and its inference thread. Patches lie in shared memory; a
// slot of it belongs to the inference thread from the request until `patch`.
import type { FaceBox } from './patch.ts';

/** A request for the patch of one frame. */
export interface FrameRequest {
  readonly frame: number;
  /** Slot of the shared memory that the patch goes into. */
  readonly slot: number;
  /** How far the end of the frame's window lies before the end of the speech sent so far. */
  readonly backMs: number;
  /** Monotonic time at which the frame is shown. */
  readonly dueMs: number;
}

/** To the inference thread, which handles one message at a time, in order. `id` names a session. */
export type ToInferenceThread =
  | {
      readonly type: 'open';
      readonly id: number;
      /** A face asset file. */
      readonly face: SharedArrayBuffer;
      /** Number of patches that the shared memory holds. */
      readonly slots: number;
    }
  /** The next speech of a session, 16 kHz, and the frames that can be made with it. */
  | {
      readonly type: 'speech';
      readonly id: number;
      readonly isUtteranceStart: boolean;
      readonly pcm: Int16Array;
      readonly requests: readonly FrameRequest[];
    }
  | { readonly type: 'close'; readonly id: number };

/** From the inference thread. The first message is `ready` or `refused`. */
export type FromInferenceThread =
  | { readonly type: 'ready'; readonly msPerFrame: number; readonly threads: number }
  /**
   * The network cannot be used, and the thread ends. `isDefect`: the fault is not the network's.
   */
  | { readonly type: 'refused'; readonly why: string; readonly isDefect: boolean }
  | {
      readonly type: 'opened';
      readonly id: number;
      readonly box: FaceBox;
      /** Opacity of a patch's pixels: see `patchAlpha`. */
      readonly alpha: Uint16Array;
      /** `slots` patches of `patchBytes(box)` each. */
      readonly patches: SharedArrayBuffer;
    }
  /**
   * A request is done. `tookMs` is undefined when the patch could not have been ready in time, and
   * was not made.
   */
  | {
      readonly type: 'patch';
      readonly id: number;
      readonly slot: number;
      readonly tookMs: number | undefined;
    }
  | { readonly type: 'failed'; readonly id: number; readonly why: string };

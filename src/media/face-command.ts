// What a face can be told to do while its session runs: plain data, from the front to the worker.
import type { Emotion } from './articulation.ts';

/** Movements that are made once. */
export const GESTURES = ['nod', 'shake', 'smile'] as const;
/** Name of a gesture. */
export type Gesture = (typeof GESTURES)[number];

/** One order to a face. */
export type FaceCommand =
  /** `strength` 0 to 1. The face changes over a few frames. */
  | { readonly type: 'emotion'; readonly emotion: Emotion; readonly strength: number }
  /** -1 to 1 of the eye's range; right and down positive, as the viewer sees them. */
  | {
      readonly type: 'gaze';
      readonly x: number;
      readonly y: number;
      /** How long the eyes stay there; 0: they go on by themselves at once. */
      readonly seconds: number;
    }
  | { readonly type: 'gesture'; readonly gesture: Gesture }
  /** Speech is neither heard nor seen while the face is muted. Its time passes. */
  | { readonly type: 'mute'; readonly muted: boolean };

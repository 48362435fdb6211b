// Speaking or silent: one SPEAK and one SILENT per utterance.
import type { SpeechStream } from '../pipeline/speech/speech-stream.ts';

/** Audio that pauses for less than this goes on as the same utterance (wire protocol, issue of the client's SPEAK / SILENT handling). */
const GAP_MS = 300;
/** Inaudible audio that keeps coming (a live microphone, a long pause inside a text) ends an utterance too, but later. */
const INAUDIBLE_MS = 1200;

export class SpeechState {
  isSpeaking = false;
  /** Monotonic time at which somebody was last speaking; the idle limit counts from here. */
  lastSpokeMs: number;

  constructor(nowMs: number) {
    this.lastSpokeMs = nowMs;
  }

  /** To be called after each frame. @returns what changed, if anything. */
  update(stream: SpeechStream, nowMs: number): 'speak' | 'silent' | undefined {
    if (stream.isActive && stream.inaudibleMs < INAUDIBLE_MS && stream.gapMs < GAP_MS) {
      if (this.isSpeaking) {
        this.lastSpokeMs = nowMs;
        return undefined;
      }
      if (stream.inaudibleMs > 0) {
        return undefined;
      }
      this.isSpeaking = true;
      this.lastSpokeMs = nowMs;
      return 'speak';
    }
    return this.stop();
  }

  /** The client interrupted, or the session ends. */
  stop(): 'silent' | undefined {
    if (!this.isSpeaking) {
      return undefined;
    }
    this.isSpeaking = false;
    return 'silent';
  }
}

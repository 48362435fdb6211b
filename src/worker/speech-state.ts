// Whether a session is speaking: one SPEAK and one SILENT for each utterance.
import type { ConversationState } from '../media/conversation-state.ts';
import type { SpeechStream } from '../pipeline/speech/speech-stream.ts';

/** Speech that pauses for less than this continues the same utterance. */
const GAP_MS = 300;
/**
 * Inaudible audio that keeps arriving (a live microphone, a long pause inside a text) ends an
 * utterance too, but later.
 */
const INAUDIBLE_MS = 1200;

/**
 * The speaking state of one session. An utterance ends after GAP_MS without audio, or after
 * INAUDIBLE_MS of inaudible audio.
 */
export class SpeechState {
  isSpeaking = false;
  /** Monotonic time at which the session was last speaking: the idle limit counts from here. */
  lastSpokeMs: number;

  /** What the conversation of the session does now, if it holds one. */
  conversation: ConversationState = 'listening';

  constructor(nowMs: number) {
    this.lastSpokeMs = nowMs;
  }

  /** Call after each frame. @returns what changed, if anything */
  update(
    stream: Pick<SpeechStream, 'isActive' | 'inaudibleMs' | 'gapMs'>,
    nowMs: number,
  ): 'speak' | 'silent' | undefined {
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

  /** How long neither side has spoken. */
  idleMs(nowMs: number): number {
    if (this.conversation === 'hearing' || this.conversation === 'thinking') {
      this.lastSpokeMs = nowMs;
    }
    return nowMs - this.lastSpokeMs;
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

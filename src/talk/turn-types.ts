// What the turns of a conversation, its providers and its clock share.
import type { ReplyGates } from './reply-gates.ts';
import type { SpokenClause } from './spoken-text.ts';

/**
 * Silence after which speech has ended, for the voice activity detector and the end of a turn: nine
 * windows of the detector.
 */
export const END_SILENCE_MS = 288;

/** A message of the history, for a language model. */
export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

/** A piece of a voice: PCM16 at SPEECH_RATE, and where it belongs. */
export interface VoiceAudio {
  readonly pcm: Int16Array;
  readonly clause: SpokenClause;
}

/** A change of what a streaming recogniser has understood. */
export interface RecognitionEvent {
  readonly kind: 'begin' | 'interim' | 'final' | 'end';
  readonly text: string;
}

/** The providers of a conversation, as the turns need them. They throw nothing: faults are reported. */
export interface TurnProviders {
  /** Of the replies that `reply` and `speak` make. */
  readonly gates: ReplyGates;
  readonly reply: (messages: readonly ChatMessage[], signal: AbortSignal) => AsyncIterable<string>;
  readonly speak: (text: AsyncIterable<string>, signal: AbortSignal) => AsyncIterable<VoiceAudio>;
  /** Whether the voice failed since the last call: not all of a reply was spoken. */
  readonly takeVoiceFault: () => boolean;
  /** Recognises one utterance. */
  readonly transcribe?: (pcm: Int16Array, signal: AbortSignal) => Promise<string>;
  /** Recognises continuously, instead of `transcribe`. */
  readonly listen?: (
    pcm: AsyncIterable<Int16Array>,
    signal: AbortSignal,
  ) => AsyncIterable<RecognitionEvent>;
  /** For `listen`: the person has probably ended an utterance. */
  readonly finalise?: () => void;
}

/** What the turns tell. */
export interface TurnListener {
  onUserState(state: 'speaking' | 'listening'): void;
  onAgentState(state: 'listening' | 'thinking' | 'speaking'): void;
  onTranscript(text: string, isFinal: boolean): void;
  /** A turn is complete; of an interrupted reply the text that was heard. */
  onItem(role: 'user' | 'assistant', text: string, isInterrupted: boolean): void;
  onPlaybackStarted(): void;
  /** The voice fell silent before its end. */
  onSilenced(): void;
  /** It goes on: the person did not mean to interrupt. */
  onResumed(): void;
  /** What was heard of the reply so far. */
  onSpoken(text: string): void;
  /** The turns cannot go on. */
  onClosed(error: unknown): void;
}

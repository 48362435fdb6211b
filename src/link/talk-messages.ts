// The messages between the front and the thread of conversations, and what a conversation is made of.
// Plain data: they cross threads by structured clone.

import type { MessagePort } from 'node:worker_threads';
import type { ConversationState } from '../media/conversation-state.ts';

/** A language model, or a script for when there is none. */
export type LanguageModelSpec =
  | { readonly kind: 'script' }
  | {
      /** An endpoint of OpenAI's chat completions. */
      readonly kind: 'chat';
      /** The whole URL, up to `/chat/completions`. */
      readonly url: string;
      readonly model: string;
      /** '' when the endpoint needs none. */
      readonly apiKey: string;
    };

/** A voice. */
export type VoiceSpec =
  | { readonly kind: 'local'; readonly voice: string }
  | ({ readonly kind: 'openai' } & RemoteVoice)
  | ({ readonly kind: 'elevenlabs' | 'cartesia' } & RemoteVoice);

/** A voice of a service. */
interface RemoteVoice {
  /** The origin and path before the provider's own path. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly voice: string;
  readonly model: string;
}

/** A speech recogniser. */
export type RecogniserSpec =
  | { readonly kind: 'local' }
  | ({ readonly kind: 'openai' } & RemoteRecogniser)
  | ({ readonly kind: 'deepgram' } & RemoteRecogniser);

/** A recogniser of a service. */
interface RemoteRecogniser {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly model: string;
}

/** Who said something. */
export type Speaker = 'user' | 'assistant';

/** One turn of a transcript. Times are milliseconds since the conversation began. */
export interface TranscriptItem {
  readonly role: Speaker;
  /** Of the assistant: what was heard of it. */
  readonly text: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly interrupted: boolean;
}

/** What the thread needs to hold a conversation, as the front decided it. */
export interface ConversationSpec {
  readonly sessionId: string;
  /** Speech of the person, written by the media worker: see speech-ring.ts. */
  readonly microphoneRing: SharedArrayBuffer;
  /** Speech of the face, read by the media worker. */
  readonly speechRing: SharedArrayBuffer;
  readonly prompt: string;
  /** Said at the beginning; '' for none. */
  readonly firstMessage: string;
  /** BCP 47. */
  readonly language: string;
  /** What was said before a reload of the page. */
  readonly history: readonly TranscriptItem[];
  /** Ask the language model before the end of the turn is certain. */
  readonly isPreemptive: boolean;
  readonly languageModel: LanguageModelSpec;
  readonly voice: VoiceSpec;
  readonly recogniser: RecogniserSpec;
}

/** The three providers of a conversation. */
export type ProviderRole = 'language_model' | 'voice' | 'recogniser';

/** A kind of provider. */
export type ProviderKind = LanguageModelSpec['kind'] | VoiceSpec['kind'] | RecogniserSpec['kind'];

/** Why a provider failed: labels of a metric. */
export const PROVIDER_FAULTS = [
  'unauthorised',
  'rate_limited',
  'refused',
  'server_error',
  'timeout',
  'unreachable',
  'cut_off',
  'malformed',
] as const;
/** One of PROVIDER_FAULTS. */
export type ProviderFault = (typeof PROVIDER_FAULTS)[number];

/** The steps of a turn, each in milliseconds after the one before. */
export interface TurnTimes {
  /** End of the person's speech to its text; the wait for the end of the turn is part of it. */
  readonly transcriptMs: number;
  readonly firstTokenMs: number;
  readonly firstClauseMs: number;
  readonly firstAudioMs: number;
  /** First audio of the voice to its first packet on the wire. */
  readonly lipsMs: number;
  /** End of the person's speech to the first packet. */
  readonly totalMs: number;
}

/** From the front to the thread. */
export type ToTalk =
  | { readonly type: 'open'; readonly spec: ConversationSpec }
  /** The person asks for silence: a button, not speech. */
  | { readonly type: 'interrupt'; readonly sessionId: string }
  | { readonly type: 'close'; readonly sessionId: string }
  | { readonly type: 'stop' };

/** From the thread to the front. */
export type FromTalk =
  | { readonly type: 'ready' }
  /** The libraries cannot be loaded. */
  | { readonly type: 'unusable'; readonly why: string }
  | { readonly type: 'state'; readonly sessionId: string; readonly state: ConversationState }
  /** What is being said, for captions. `isFinal`: nothing is added to it. */
  | {
      readonly type: 'caption';
      readonly sessionId: string;
      readonly role: Speaker;
      readonly text: string;
      readonly isFinal: boolean;
    }
  | { readonly type: 'item'; readonly sessionId: string; readonly item: TranscriptItem }
  | { readonly type: 'turn'; readonly sessionId: string; readonly times: TurnTimes }
  /** Speech of the person began → the voice fell silent. */
  | { readonly type: 'bargeIn'; readonly sessionId: string; readonly silenceMs: number }
  | {
      readonly type: 'usage';
      readonly sessionId: string;
      readonly tokens: number;
      readonly voiceSeconds: number;
    }
  | {
      readonly type: 'provider';
      readonly sessionId: string;
      readonly role: ProviderRole;
      readonly kind: ProviderKind;
      readonly seconds: number;
    }
  | {
      readonly type: 'fault';
      readonly sessionId: string;
      readonly role: ProviderRole;
      readonly kind: ProviderKind;
      readonly fault: ProviderFault;
      /** For the log and for the person; no keys, no speech. */
      readonly message: string;
      /** The conversation cannot go on. */
      readonly isFatal: boolean;
    }
  /** A provider lets the person wait. @param message in words */
  | { readonly type: 'slow'; readonly sessionId: string; readonly message: string }
  /** Once per opened conversation. */
  | { readonly type: 'ended'; readonly sessionId: string }
  | {
      readonly type: 'log';
      readonly level: 'info' | 'warn' | 'error';
      readonly sessionId: string | undefined;
      readonly message: string;
      readonly fields: Record<string, unknown>;
    };

/** Options of the thread. */
export interface TalkInit {
  readonly heartbeat: SharedArrayBuffer;
  /** To the thread of the voice activity detector. */
  readonly detectorPort: MessagePort;
}

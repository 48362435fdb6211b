// The conversation library (@livekit/agents): how it is found, and the few of its types that are used.
// It is an optional package (scripts/talk), so nothing here may need its own declarations.
import { pathToFileURL } from 'node:url';

/** PCM16, mono. */
export interface AudioFrame {
  readonly data: Int16Array;
  readonly sampleRate: number;
  readonly samplesPerChannel: number;
  readonly userdata: Record<string, unknown>;
}

/** A message of a chat context. Items of other types have no role. */
export interface ChatItem {
  readonly id: string;
  readonly type: string;
  readonly role?: 'system' | 'developer' | 'user' | 'assistant';
  readonly textContent?: string;
  readonly interrupted?: boolean;
}

/** The messages of a conversation so far. */
export interface ChatContext {
  readonly items: readonly ChatItem[];
  addMessage(message: { role: string; content: string }): unknown;
}

/** One reply of the agent, until it was played or interrupted. */
export interface SpeechHandle {
  readonly interrupted: boolean;
}

/** The parts of AgentSession that are used. */
export interface AgentSession {
  readonly input: { audio: unknown };
  readonly output: { audio: unknown };
  on(event: string, listener: (event: never) => void): void;
  start(options: { agent: unknown; record: boolean }): Promise<unknown>;
  say(text: string, options: { addToChatCtx: boolean }): SpeechHandle;
  interrupt(options?: { force?: boolean }): unknown;
  close(): Promise<void>;
}

/** What the playback of a segment tells the library. */
export interface PlaybackFinished {
  /** Seconds. */
  readonly playbackPosition: number;
  readonly interrupted: boolean;
  readonly synchronizedTranscript?: string;
}

/** Base of an audio output. */
export interface AudioOutputBase {
  captureFrame(frame: AudioFrame): Promise<void>;
  flush(): void;
  onPlaybackStarted(createdAt: number): void;
  onPlaybackFinished(event: PlaybackFinished): void;
}

/** A streaming recogniser's event. */
export interface SpeechEvent {
  readonly type: number;
  readonly alternatives?: readonly [
    {
      readonly text: string;
      readonly language: string;
      readonly startTime: number;
      readonly endTime: number;
      readonly confidence: number;
    },
  ];
  readonly speechEndTime?: number;
}

/** Base of the stream of a voice activity detector. */
export interface VadStreamBase {
  readonly inputReader: ReadableStreamDefaultReader<AudioFrame | symbol>;
  readonly closed: boolean;
  sendVADEvent(event: object): boolean;
}

/** The exports of scripts/talk/index.mjs. */
export interface TalkLibrary {
  readonly AudioFrame: new (
    data: Int16Array,
    sampleRate: number,
    channels: number,
    samplesPerChannel: number,
    userdata?: Record<string, unknown>,
  ) => AudioFrame;
  readonly voice: {
    readonly AudioInput: new () => {
      readonly multiStream: { addInputStream(stream: ReadableStream<AudioFrame>): unknown };
    };
    readonly AudioOutput: new (
      sampleRate: number,
      next: undefined,
      capabilities: { pause: boolean },
    ) => AudioOutputBase;
    readonly Agent: new (options: { instructions: string; chatCtx?: ChatContext }) => object;
    readonly AgentSession: new (options: object) => AgentSession;
  };
  readonly llm: {
    readonly LLM: new () => object;
    readonly ChatContext: new () => ChatContext;
  };
  readonly tts: {
    readonly TTS: new (
      sampleRate: number,
      channels: number,
      capabilities: { streaming: boolean },
    ) => object;
  };
  readonly stt: {
    readonly STT: new (capabilities: { streaming: boolean; interimResults: boolean }) => object;
    readonly SpeechEventType: {
      readonly START_OF_SPEECH: number;
      readonly INTERIM_TRANSCRIPT: number;
      readonly FINAL_TRANSCRIPT: number;
      readonly END_OF_SPEECH: number;
    };
  };
  readonly VAD: new (capabilities: { updateInterval: number }) => object;
  readonly VADStream: new (vad: object) => VadStreamBase;
  readonly VADEventType: {
    readonly START_OF_SPEECH: number;
    readonly INFERENCE_DONE: number;
    readonly END_OF_SPEECH: number;
  };
  initializeLogger(options: { pretty: boolean; level: string }): void;
}

let loading: Promise<TalkLibrary> | undefined;

/**
 * Loads the library, once per thread: half a second and 100 MB.
 * @param file absolute path of scripts/talk/index.mjs
 * @throws Error when it is not installed or cannot be loaded
 */
export function loadLibrary(file: string): Promise<TalkLibrary> {
  loading ??= (async () => {
    const library = (await import(pathToFileURL(file).href)) as TalkLibrary;
    // Its log lines hold what people say.
    library.initializeLogger({ pretty: false, level: 'silent' });
    return library;
  })();
  return loading;
}

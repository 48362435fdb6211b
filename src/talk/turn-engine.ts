// The turns of a conversation behind one interface of ours: voice activity, end of turn, interruption
// and its resumption, the history. @livekit/agents does it, without a room, a job or a cloud. The
// settings are those that measured best; the reasons are in docs/decisions/0016.
import { SPEECH_RATE } from '../media/timeline.ts';
import { monotonicMs, sleep, wallMs } from '../base/time.ts';
import type { SpeechRingWriter } from '../link/speech-ring.ts';
import type {
  AgentSession,
  AudioFrame,
  ChatContext,
  ChatItem,
  SpeechEvent,
  TalkLibrary,
} from './library.ts';
import type { DetectorClient } from './detector-client.ts';
import { HeardReplies } from './heard-replies.ts';
import { Playback } from './playback.ts';
import type { SpokenClause } from './spoken-text.ts';
import {
  type ChatMessage,
  END_SILENCE_MS,
  type RecognitionEvent,
  type TurnListener,
  type TurnProviders,
} from './turn-types.ts';
import { UtteranceRecogniser } from './utterance-recogniser.ts';
import { createVad } from './vad.ts';

/** What the turns are made of. */
export interface TurnEngineOptions {
  readonly instructions: string;
  readonly language: string;
  readonly history: readonly ChatMessage[];
  readonly isPreemptive: boolean;
  readonly detector: DetectorClient;
  readonly ring: SpeechRingWriter;
  readonly providers: TurnProviders;
  readonly listener: TurnListener;
}

/** Silence after which a recogniser of whole utterances begins its work. */
const PAUSE_MS = 130;
/** Longest wait for more, when the turn seems not to be over. */
const MAX_END_WAIT_MS = 2000;
/** Speech that interrupts the face. */
const INTERRUPT_MS = 260;
/** After an interruption without words the face goes on. */
const RESUME_MS = 1200;
/**
 * The library's own time limits, beyond those of the providers: those tell what failed. A reply
 * waits for 20 s of its model and 8 s of its voice at most.
 */
const TRANSCRIPT_WAIT_MS = 20_000;
const SPEECH_WAIT_MS = 30_000;
/** Pause between looks whether the ring has room. */
const ROOM_POLL_MS = 20;
/** Key of a frame's clause in its user data. */
const CLAUSE = 'mouthpiece.clause';

/** A running conversation. */
export interface TurnEngine {
  /** Speech of the person: PCM16 at SPEECH_RATE. */
  hear(pcm: Int16Array): void;
  say(text: string): void;
  interrupt(): void;
  /** Call it every 10 ms or so. */
  poll(nowMs: number): void;
  close(): Promise<void>;
}

/** Starts the turns. */
export async function startTurns(
  library: TalkLibrary,
  options: TurnEngineOptions,
): Promise<TurnEngine> {
  const microphone = createMicrophone(library);
  const replies = new HeardReplies();
  const { output, playback } = createOutput(library, options, replies);
  const { transcribe, listen, finalise } = options.providers;
  const utterances = new UtteranceRecogniser(transcribe ?? (() => Promise.resolve('')));
  const vad = createVad(
    library,
    options.detector,
    { endMs: END_SILENCE_MS, pauseMs: PAUSE_MS },
    finalise === undefined ? utterances : { onStart: () => {}, onPause: finalise, onEnd: () => {} },
  );
  const session = createSession(library, vad, options.isPreemptive);
  const hear =
    listen ??
    ((pcm: AsyncIterable<Int16Array>, signal: AbortSignal) => {
      void drain(pcm);
      return utterances.texts(signal);
    });
  session.input.audio = microphone.input;
  session.output.audio = output;
  observe(session, options, replies);
  await session.start({
    agent: createAgent(library, options, hear, (context) =>
      replies.messages(context, playback.heardText),
    ),
    record: false,
  });
  return {
    hear: (pcm) => {
      microphone.push(pcm);
    },
    say: (text) => {
      session.say(text, { addToChatCtx: true });
    },
    interrupt: () => {
      session.interrupt({ force: true });
    },
    poll: (nowMs) => {
      playback.poll(nowMs);
    },
    close: async () => {
      output.clearBuffer();
      microphone.end();
      await session.close();
    },
  };
}

function createMicrophone(library: TalkLibrary) {
  let controller: ReadableStreamDefaultController<AudioFrame> | undefined;
  const stream = new ReadableStream<AudioFrame>({
    start(given) {
      controller = given;
    },
    cancel() {
      controller = undefined;
    },
  });
  class Microphone extends library.voice.AudioInput {
    constructor() {
      super();
      this.multiStream.addInputStream(stream);
    }
  }
  return {
    input: new Microphone(),
    push: (pcm: Int16Array) => {
      controller?.enqueue(new library.AudioFrame(pcm, SPEECH_RATE, 1, pcm.length));
    },
    end: () => {
      controller?.close();
      controller = undefined;
    },
  };
}

function createOutput(
  library: TalkLibrary,
  { ring, listener, providers }: TurnEngineOptions,
  replies: HeardReplies,
) {
  class Output extends library.voice.AudioOutput {
    readonly playback = new Playback(ring, {
      onStarted: () => {
        this.onPlaybackStarted(wallMs());
        listener.onPlaybackStarted();
      },
      onSpoken: (text) => {
        listener.onSpoken(text);
      },
      onFinished: (seconds, isInterrupted, text) => {
        replies.add(text);
        this.onPlaybackFinished({
          playbackPosition: seconds,
          interrupted: isInterrupted,
          ...(isInterrupted ? { synchronizedTranscript: text } : {}),
        });
      },
    });

    constructor() {
      super(SPEECH_RATE, undefined, { pause: true });
    }

    override async captureFrame(frame: AudioFrame): Promise<void> {
      await super.captureFrame(frame);
      while (this.playback.free < frame.data.length) {
        await sleep(ROOM_POLL_MS);
      }
      this.playback.write(
        frame.data,
        frame.userdata[CLAUSE] as SpokenClause | undefined,
        monotonicMs(),
      );
    }

    override flush(): void {
      super.flush();
      this.playback.endSegment();
    }

    clearBuffer(): void {
      this.#tellSilence();
      providers.gates.close();
      this.playback.clear(monotonicMs());
    }

    pause(): void {
      this.#tellSilence();
      providers.gates.hold();
      this.playback.pause(monotonicMs());
    }

    resume(): void {
      providers.gates.open();
      this.playback.resume(monotonicMs());
      if (this.playback.isAudible) {
        listener.onResumed();
      }
    }

    #tellSilence(): void {
      if (this.playback.isAudible) {
        listener.onSilenced();
      }
    }
  }
  const output = new Output();
  return { output, playback: output.playback };
}

function createSession(library: TalkLibrary, vad: object, isPreemptive: boolean): AgentSession {
  // The turns ask for models, but only the nodes of the agent below are ever called.
  class Mind extends library.llm.LLM {
    label(): string {
      return 'mouthpiece';
    }
    prewarm(): void {}
    async aclose(): Promise<void> {}
  }
  class Voice extends library.tts.TTS {
    label = 'mouthpiece';
    constructor() {
      super(SPEECH_RATE, 1, { streaming: true });
    }
    prewarm(): void {}
  }
  class Ear extends library.stt.STT {
    label = 'mouthpiece';
    constructor() {
      super({ streaming: true, interimResults: false });
    }
  }
  return new library.voice.AgentSession({
    llm: new Mind(),
    tts: new Voice(),
    stt: new Ear(),
    vad,
    turnHandling: {
      // The default detector needs a job executor, and may call a cloud.
      turnDetection: 'vad',
      endpointing: { minDelay: END_SILENCE_MS, maxDelay: MAX_END_WAIT_MS },
      interruption: {
        enabled: true,
        mode: 'vad',
        minDuration: INTERRUPT_MS,
        falseInterruptionTimeout: RESUME_MS,
        resumeFalseInterruption: true,
      },
      preemptiveGeneration: { enabled: isPreemptive },
    },
    // With it an interrupted model is not aborted: the words come with the frames instead.
    useTtsAlignedTranscript: false,
    // The default ignores interruptions in the first three seconds.
    aecWarmupDuration: null,
    transcriptionTimeout: TRANSCRIPT_WAIT_MS,
    ttsReadIdleTimeout: SPEECH_WAIT_MS,
    forwardAudioIdleTimeout: SPEECH_WAIT_MS,
    userAwayTimeout: null,
  });
}

function createAgent(
  library: TalkLibrary,
  options: TurnEngineOptions,
  listen: NonNullable<TurnProviders['listen']>,
  messages: (context: ChatContext) => ChatMessage[],
): object {
  const { providers } = options;
  class MouthpieceAgent extends library.voice.Agent {
    async sttNode(audio: ReadableStream<AudioFrame>): Promise<ReadableStream<SpeechEvent>> {
      return streamOf(async function* hear(signal) {
        for await (const event of listen(samplesOf(audio), signal)) {
          yield speechEvent(library, event, options.language);
        }
      });
    }

    async llmNode(context: ChatContext): Promise<ReadableStream<string>> {
      return streamOf((signal) => providers.reply(messages(context), signal));
    }

    async ttsNode(text: ReadableStream<string>): Promise<ReadableStream<AudioFrame>> {
      return streamOf(async function* speak(signal) {
        for await (const { pcm, clause } of providers.speak(text, signal)) {
          yield new library.AudioFrame(pcm, SPEECH_RATE, 1, pcm.length, { [CLAUSE]: clause });
        }
      });
    }
  }
  const chatCtx = new library.llm.ChatContext();
  for (const message of options.history) {
    chatCtx.addMessage(message);
  }
  return new MouthpieceAgent({ instructions: options.instructions, chatCtx });
}

function observe(
  session: AgentSession,
  { listener, providers }: TurnEngineOptions,
  replies: HeardReplies,
): void {
  session.on('user_state_changed', ({ newState }: { newState: string }) => {
    if (newState === 'speaking' || newState === 'listening') {
      listener.onUserState(newState);
    }
  });
  session.on('agent_state_changed', ({ newState }: { newState: string }) => {
    if (newState === 'speaking' || newState === 'listening' || newState === 'thinking') {
      listener.onAgentState(newState);
    }
  });
  session.on(
    'user_input_transcribed',
    ({ transcript, isFinal }: { transcript: string; isFinal: boolean }) => {
      listener.onTranscript(transcript, isFinal);
    },
  );
  session.on('conversation_item_added', ({ item }: { item: ChatItem }) => {
    if (item.role === 'user') {
      listener.onItem('user', item.textContent ?? '', false);
    } else if (item.role === 'assistant') {
      const isCut = providers.takeVoiceFault() || item.interrupted === true;
      listener.onItem('assistant', replies.enter(item, isCut), isCut);
    }
  });
  session.on('close', ({ error }: { error?: unknown }) => {
    listener.onClosed(error);
  });
}

/** A generator as a stream; cancelling the stream aborts the generator's signal. */
function streamOf<T>(make: (signal: AbortSignal) => AsyncIterable<T>): ReadableStream<T> {
  const abort = new AbortController();
  let iterator: AsyncIterator<T> | undefined;
  return new ReadableStream<T>({
    async pull(controller) {
      iterator ??= make(abort.signal)[Symbol.asyncIterator]();
      const { done, value } = await iterator.next();
      if (done === true) {
        controller.close();
      } else {
        controller.enqueue(value);
      }
    },
    cancel() {
      abort.abort();
    },
  });
}

async function* samplesOf(audio: ReadableStream<AudioFrame>): AsyncGenerator<Int16Array> {
  for await (const frame of audio) {
    yield frame.data;
  }
}

async function drain(pcm: AsyncIterable<unknown>): Promise<void> {
  const iterator = pcm[Symbol.asyncIterator]();
  while ((await iterator.next()).done !== true) {
    // The detector hears the same samples.
  }
}

function speechEvent(
  library: TalkLibrary,
  { kind, text }: RecognitionEvent,
  language: string,
): SpeechEvent {
  const types = library.stt.SpeechEventType;
  if (kind === 'begin' || kind === 'end') {
    return { type: kind === 'begin' ? types.START_OF_SPEECH : types.END_OF_SPEECH };
  }
  return {
    type: kind === 'final' ? types.FINAL_TRANSCRIPT : types.INTERIM_TRANSCRIPT,
    alternatives: [{ text, language, startTime: 0, endTime: 0, confidence: 1 }],
  };
}

// One conversation: the rings to its media worker, its turns, its providers, and what it tells the
// front.
import { monotonicMs } from '../base/time.ts';
import { SpeechRingReader, SpeechRingWriter } from '../link/speech-ring.ts';
import type { ConversationSpec, FromTalk, TranscriptItem } from '../link/talk-messages.ts';
import type { ConversationState } from '../media/conversation-state.ts';
import type { DetectorClient } from './detector-client.ts';
import type { TalkLibrary } from './library.ts';
import { createProviders } from './providers.ts';
import { TurnClock } from './turn-clock.ts';
import { type TurnEngine, startTurns } from './turn-engine.ts';

/** Samples that the recogniser gets at a time: 20 ms. */
const EAR_SAMPLES = 320;
/** Turns in a row without a reply that was heard, after which the conversation ends. */
const MAX_FAILED_TURNS = 3;

type Message = FromTalk extends infer M ? (M extends { sessionId: string } ? M : never) : never;
type Told = Message extends infer M ? (M extends Message ? Omit<M, 'sessionId'> : never) : never;

/** A conversation on this thread. */
export class Conversation {
  readonly #spec: ConversationSpec;
  readonly #post: (message: FromTalk) => void;
  readonly #microphone: SpeechRingReader;
  readonly #clock: TurnClock;
  readonly #startMs = monotonicMs();
  #engine: TurnEngine | undefined = undefined;
  #providers: ReturnType<typeof createProviders> | undefined = undefined;
  #state: ConversationState | undefined = undefined;
  #isUserSpeaking = false;
  #agentState: 'listening' | 'thinking' | 'speaking' = 'listening';
  /** When the turn of each side began, milliseconds of the conversation. */
  readonly #turnStartMs = { user: 0, assistant: 0 };
  /** When the face fell silent before the end of its turn. */
  #silencedMs: number | undefined = undefined;
  #failedTurns = 0;
  #isOver = false;

  constructor(spec: ConversationSpec, post: (message: FromTalk) => void) {
    this.#spec = spec;
    this.#post = post;
    this.#microphone = new SpeechRingReader(spec.microphoneRing);
    this.#clock = new TurnClock((times) => {
      this.#tell({ type: 'turn', times });
    });
  }

  get id(): string {
    return this.#spec.sessionId;
  }

  /** Starts the turns, and says the first message. */
  async open(library: TalkLibrary, detector: DetectorClient): Promise<void> {
    const spec = this.#spec;
    const providers = createProviders(spec, {
      onStep: (step) => {
        this.#clock.step(step, monotonicMs());
      },
      onAnswer: (role, kind, seconds) => {
        this.#tell({ type: 'provider', role, kind, seconds });
      },
      onUsage: (tokens, voiceSeconds) => {
        this.#tell({ type: 'usage', tokens, voiceSeconds });
      },
      onFault: (role, kind, { fault, message }, isLost) => {
        // A provider that calls again by itself has failed no turn yet.
        this.#failedTurns += isLost === undefined ? 1 : 0;
        const isFatal =
          fault === 'unauthorised' || isLost === true || this.#failedTurns >= MAX_FAILED_TURNS;
        this.#tell({ type: 'fault', role, kind, fault, message, isFatal });
      },
      onSlow: (message) => {
        this.#tell({ type: 'slow', message });
      },
    });
    this.#providers = providers;
    const engine = await startTurns(library, {
      instructions: spec.prompt,
      language: spec.language,
      history: spec.history.map(({ role, text }) => ({ role, content: text })),
      isPreemptive: spec.isPreemptive,
      detector,
      ring: new SpeechRingWriter(spec.speechRing),
      providers,
      listener: {
        onUserState: (state) => {
          this.#userState(state === 'speaking');
        },
        onAgentState: (state) => {
          this.#agentState = state;
          this.#update();
        },
        onTranscript: (text, isFinal) => {
          if (isFinal) {
            this.#clock.transcribed(monotonicMs());
          }
          this.#tell({ type: 'caption', role: 'user', text, isFinal });
        },
        onItem: (role, text, isInterrupted) => {
          this.#item(role, text, isInterrupted);
        },
        onPlaybackStarted: () => {
          this.#failedTurns = 0;
          this.#turnStartMs.assistant = this.#nowMs();
          this.#silencedMs = undefined;
          this.#clock.heard(monotonicMs());
        },
        onSilenced: () => {
          this.#silencedMs = this.#nowMs();
          const silenceMs = this.#clock.silenced(monotonicMs());
          if (silenceMs !== undefined) {
            this.#tell({ type: 'bargeIn', silenceMs });
          }
        },
        onResumed: () => {
          this.#silencedMs = undefined;
        },
        onSpoken: (text) => {
          this.#tell({ type: 'caption', role: 'assistant', text, isFinal: false });
        },
        onClosed: (error) => {
          this.#closed(error);
        },
      },
    });
    if (this.#isOver) {
      await engine.close();
      return;
    }
    this.#engine = engine;
    this.#update();
    if (spec.firstMessage !== '' && spec.history.length === 0) {
      engine.say(spec.firstMessage);
    }
  }

  /** Hears what the person said since the last call, and looks how far the listener is. */
  poll(nowMs: number): void {
    const engine = this.#engine;
    if (engine === undefined) {
      // What is said before the turns have begun is not heard.
      return;
    }
    while (this.#microphone.length >= EAR_SAMPLES) {
      const pcm = new Int16Array(EAR_SAMPLES);
      this.#microphone.read(pcm, 0, EAR_SAMPLES);
      engine.hear(pcm);
    }
    engine.poll(nowMs);
  }

  /** The person pressed the button. */
  interrupt(): void {
    this.#engine?.interrupt();
  }

  /** Ends it. Idempotent. */
  async close(): Promise<void> {
    if (this.#isOver) {
      return;
    }
    this.#isOver = true;
    this.#providers?.close();
    try {
      await this.#engine?.close();
    } finally {
      this.#engine = undefined;
      this.#post({ type: 'ended', sessionId: this.id });
    }
  }

  #nowMs(): number {
    return Math.round(monotonicMs() - this.#startMs);
  }

  #tell(message: Told): void {
    this.#post({ ...message, sessionId: this.id });
  }

  #userState(isSpeaking: boolean): void {
    if (isSpeaking === this.#isUserSpeaking) {
      return;
    }
    this.#isUserSpeaking = isSpeaking;
    if (isSpeaking) {
      this.#turnStartMs.user = this.#nowMs();
      this.#providers?.prepareToListen();
      this.#clock.userBegan(monotonicMs(), this.#agentState === 'speaking');
    } else {
      this.#clock.userEnded(monotonicMs());
    }
    this.#update();
  }

  #update(): void {
    const state: ConversationState =
      this.#isUserSpeaking && this.#agentState !== 'speaking' ? 'hearing' : this.#agentState;
    if (state !== this.#state) {
      this.#state = state;
      this.#tell({ type: 'state', state });
    }
  }

  #item(role: 'user' | 'assistant', text: string, interrupted: boolean): void {
    if (text.trim() === '') {
      return;
    }
    const item: TranscriptItem = {
      role,
      text: text.trim(),
      startMs: this.#turnStartMs[role],
      endMs: (interrupted ? this.#silencedMs : undefined) ?? this.#nowMs(),
      interrupted,
    };
    this.#tell({ type: 'item', item });
    if (role === 'assistant') {
      this.#tell({ type: 'caption', role, text: item.text, isFinal: true });
    }
  }

  #closed(error: unknown): void {
    if (this.#isOver) {
      return;
    }
    this.#tell({
      type: 'fault',
      role: 'recogniser',
      kind: this.#spec.recogniser.kind,
      fault: 'unreachable',
      message:
        error === undefined || error === null
          ? 'The conversation ended by itself'
          : 'The recogniser failed',
      isFatal: true,
    });
  }
}

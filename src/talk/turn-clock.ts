// The times of a turn, from the end of the person's speech to the first packet of the reply.
import type { TurnTimes } from '../link/talk-messages.ts';
import type { ProviderStep } from './attempts.ts';
import { END_SILENCE_MS } from './turn-types.ts';

/** Steps in their order. */
interface Steps {
  speechEnd: number;
  transcript: number;
  firstToken: number;
  firstClause: number;
  firstAudio: number;
}

/** Takes the times of one conversation. Times are monotonic milliseconds. */
export class TurnClock {
  readonly #onTurn: (times: TurnTimes) => void;
  #steps: Partial<Steps> = {};
  /** When speech began over the voice; undefined while none does. */
  #overlapMs: number | undefined = undefined;

  constructor(onTurn: (times: TurnTimes) => void) {
    this.#onTurn = onTurn;
  }

  /** The person began to speak. @param isOverVoice the face was speaking */
  userBegan(nowMs: number, isOverVoice: boolean): void {
    this.#steps = {};
    this.#overlapMs = isOverVoice ? nowMs : undefined;
  }

  /** The detector saw the end of speech, END_SILENCE_MS after it. */
  userEnded(nowMs: number): void {
    this.#steps.speechEnd = nowMs - END_SILENCE_MS;
  }

  /** The text of the turn is known. */
  transcribed(nowMs: number): void {
    this.#steps.transcript = nowMs;
  }

  /** A provider reached a step. */
  step(step: ProviderStep, nowMs: number): void {
    if (step !== 'asked' && this.#steps.speechEnd !== undefined) {
      this.#steps[step] = nowMs;
    }
  }

  /** The first packet of the reply left. */
  heard(nowMs: number): void {
    const { speechEnd, transcript, firstToken, firstClause, firstAudio } = this.#steps;
    this.#steps = {};
    if (
      speechEnd === undefined ||
      transcript === undefined ||
      firstToken === undefined ||
      firstClause === undefined ||
      firstAudio === undefined
    ) {
      return; // the first message, or one that nobody asked for
    }
    this.#onTurn({
      transcriptMs: transcript - speechEnd,
      firstTokenMs: Math.max(0, firstToken - transcript),
      firstClauseMs: firstClause - firstToken,
      firstAudioMs: firstAudio - firstClause,
      lipsMs: nowMs - firstAudio,
      totalMs: nowMs - speechEnd,
    });
  }

  /** The voice fell silent. @returns milliseconds since speech began over it, if it did */
  silenced(nowMs: number): number | undefined {
    const since = this.#overlapMs;
    this.#overlapMs = undefined;
    return since === undefined ? undefined : nowMs - since;
  }
}

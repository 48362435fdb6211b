// Where a session's speech comes from: the lane that the front fills, or the peer's own microphone.
import type { SpeechRingReader } from '../../link/speech-ring.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';

/** Speech at 16 kHz, mono, that can be looked at and consumed. */
export interface SpeechSource {
  /** Samples that can be read now. */
  readonly available: number;
  /** Nothing will ever follow what is available. */
  readonly isDone: boolean;
  /** Monotonic time at which the samples at the head came in. */
  readonly arrivalMs: number;
  read(out: Int16Array, offset: number, count: number): number;
}

const MICROPHONE_CAPACITY = SPEECH_RATE; // one second: a live voice that is later than that is dropped, oldest first

/** A plain ring for decoded microphone audio, filled and drained by the same thread. */
class MicrophoneRing {
  readonly #samples = new Int16Array(MICROPHONE_CAPACITY);
  #head = 0;
  length = 0;
  arrivalMs = 0;
  dropped = 0;

  push(pcm: Int16Array, count: number, nowMs: number): void {
    if (this.length === 0) {
      this.arrivalMs = nowMs;
    }
    for (let i = 0; i < count; i++) {
      this.#samples[(this.#head + this.length) % MICROPHONE_CAPACITY] = pcm[i]!;
      if (this.length < MICROPHONE_CAPACITY) {
        this.length++;
      } else {
        this.#head = (this.#head + 1) % MICROPHONE_CAPACITY;
        this.dropped++;
      }
    }
  }

  read(out: Int16Array, offset: number, count: number): number {
    const take = Math.min(count, this.length);
    for (let i = 0; i < take; i++) {
      out[offset + i] = this.#samples[(this.#head + i) % MICROPHONE_CAPACITY]!;
    }
    this.#head = (this.#head + take) % MICROPHONE_CAPACITY;
    this.length -= take;
    return take;
  }

  clear(): void {
    this.length = 0;
  }
}

/** Both ways in as one source. What the client streams over its socket goes before what the microphone hears. */
export class SessionSpeech implements SpeechSource {
  readonly #lane: SpeechRingReader;
  readonly #microphone = new MicrophoneRing();
  /** Where the samples read last came from. */
  input: 'socket' | 'track' = 'socket';

  constructor(lane: SpeechRingReader) {
    this.#lane = lane;
  }

  get available(): number {
    return this.#lane.length > 0 ? this.#lane.length : this.#microphone.length;
  }
  get isDone(): boolean {
    return this.#lane.isDone;
  }
  /** When the last flush was asked for. */
  get flushMs(): number {
    return this.#lane.flushMs;
  }
  get arrivalMs(): number {
    return this.#lane.length > 0 ? this.#lane.arrivalMs : this.#microphone.arrivalMs;
  }

  read(out: Int16Array, offset: number, count: number): number {
    this.input = this.#lane.length > 0 || this.#microphone.length === 0 ? 'socket' : 'track';
    return this.#lane.length > 0
      ? this.#lane.read(out, offset, count)
      : this.#microphone.read(out, offset, count);
  }

  hear(pcm: Int16Array, count: number, nowMs: number): void {
    this.#microphone.push(pcm, count, nowMs);
  }

  /** Drops what a SKIP or PLAY_IMMEDIATE told us to. @returns true if there was one since the last call. */
  takeFlush(): boolean {
    if (!this.#lane.takeFlush()) {
      return false;
    }
    this.#microphone.clear();
    return true;
  }
}

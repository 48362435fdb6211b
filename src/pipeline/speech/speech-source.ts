// The sources of a session's speech: the speech ring that the front fills, and the peer's
// microphone.
import { type SpeechRingReader, SpeechRingWriter } from '../../link/speech-ring.ts';
import { SampleQueue } from '../../media/sample-queue.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';

/** Mono speech at SPEECH_RATE. */
export interface SpeechSource {
  /** Samples that can be read now. */
  readonly available: number;
  /** Nothing will follow what is available. */
  readonly isDone: boolean;
  /** Monotonic time at which the oldest available samples arrived. */
  readonly arrivalMs: number;
  /** Moves up to `count` samples to `out`, from `offset` on. @returns how many */
  read(out: Int16Array, offset: number, count: number): number;
}

/** One second: a live voice that is later than that is dropped, oldest first. */
const MICROPHONE_CAPACITY = SPEECH_RATE;

/** Decoded audio of the peer's microphone. Takes memory from the first packet on. */
class Microphone {
  #queue: SampleQueue | undefined = undefined;
  arrivalMs = 0;

  get length(): number {
    return this.#queue === undefined ? 0 : this.#queue.length;
  }

  push(pcm: Int16Array, count: number, nowMs: number): void {
    this.#queue ??= new SampleQueue();
    if (this.length === 0) {
      this.arrivalMs = nowMs;
    }
    this.#queue.push(pcm, count);
    this.#queue.drop(this.length - MICROPHONE_CAPACITY);
  }

  read(out: Int16Array, offset: number, count: number): number {
    return this.#queue === undefined ? 0 : this.#queue.take(out, count, offset);
  }

  clear(): void {
    this.#queue?.drop(this.length);
  }
}

/** Takes the decoded audio of a microphone. */
export interface MicrophoneSink {
  /** The first `count` samples of `pcm`. */
  pushMicrophone(pcm: Int16Array, count: number, nowMs: number): void;
}

/** The microphone of a conversation: its sound goes to the agent and not to the lips. */
class MicrophoneRing implements MicrophoneSink {
  readonly #ring: SpeechRingWriter;

  constructor(ring: SpeechRingWriter) {
    this.#ring = ring;
  }

  /** What the ring has no room for is dropped: nobody has listened for a minute. */
  pushMicrophone(pcm: Int16Array, count: number, nowMs: number): void {
    this.#ring.write(pcm, nowMs, 0, count);
  }
}

/** Where the microphone of a session goes: to the ring of its conversation, or to its face. */
export const microphoneSink = (
  ring: SharedArrayBuffer | undefined,
  speech: SessionSpeech,
): MicrophoneSink => (ring === undefined ? speech : new MicrophoneRing(new SpeechRingWriter(ring)));

/** Speech fades when it is muted or heard again within a word: a hard edge would click. */
const MUTE_FADE_SAMPLES = (5 * SPEECH_RATE) / 1000;

/** Both sources as one. Speech from the client's socket goes before that of the microphone. */
export class SessionSpeech implements SpeechSource, MicrophoneSink {
  readonly #ring: SpeechRingReader;
  readonly #microphone = new Microphone();
  #input: 'socket' | 'track' = 'socket';
  /** What is read is silent. */
  isMuted = false;
  /** Gain of the sample read last, in steps of a fade. */
  #gain = MUTE_FADE_SAMPLES;
  /** The source had all samples that the last read asked for. */
  #isContinuous = false;

  constructor(ring: SpeechRingReader) {
    this.#ring = ring;
  }

  /** Source of the samples read last: the client's socket, or the audio track of its peer. */
  get input(): 'socket' | 'track' {
    return this.#input;
  }

  get available(): number {
    const { length } = this.#ring;
    return length > 0 ? length : this.#microphone.length;
  }

  get isDone(): boolean {
    return this.#ring.isDone;
  }

  /** Monotonic time at which the last flush was requested. */
  get flushMs(): number {
    return this.#ring.flushMs;
  }

  get arrivalMs(): number {
    return this.#ring.length > 0 ? this.#ring.arrivalMs : this.#microphone.arrivalMs;
  }

  read(out: Int16Array, offset: number, count: number): number {
    const got = this.#read(out, offset, count);
    this.#applyMute(out, offset, got);
    this.#isContinuous = got === count;
    return got;
  }

  #applyMute(out: Int16Array, offset: number, count: number): void {
    const wanted = this.isMuted ? 0 : MUTE_FADE_SAMPLES;
    if (!this.#isContinuous) {
      this.#gain = wanted;
    }
    for (let i = offset; i < offset + count; i++) {
      this.#gain += Math.sign(wanted - this.#gain);
      out[i] = Math.round((out[i]! * this.#gain) / MUTE_FADE_SAMPLES);
    }
  }

  #read(out: Int16Array, offset: number, count: number): number {
    if (this.#ring.length > 0) {
      this.#input = 'socket';
      return this.#ring.read(out, offset, count);
    }
    this.#input = this.#microphone.length === 0 ? 'socket' : 'track';
    return this.#microphone.read(out, offset, count);
  }

  /** The listener has heard all but the last `unheard` samples that were read from the ring. */
  setHeard(unheard: number): void {
    this.#ring.setHeard(unheard);
  }

  /** Decoded audio of the peer's microphone: the first `count` samples of `pcm`. */
  pushMicrophone(pcm: Int16Array, count: number, nowMs: number): void {
    this.#microphone.push(pcm, count, nowMs);
  }

  /**
   * Drops the speech that SKIP or PLAY_IMMEDIATE cut off.
   * @returns whether there was one since the last call
   */
  takeFlush(): boolean {
    if (!this.#ring.takeFlush()) {
      return false;
    }
    this.#microphone.clear();
    return true;
  }
}

// The way of the voice to the listener: segments of speech go to the session's speech ring, and what
// was really heard of them comes back from it.
import { SPEECH_RATE } from '../media/timeline.ts';
import type { SpeechRingWriter } from '../link/speech-ring.ts';
import { type SpokenClause, heardOf } from './spoken-text.ts';

/** A part of a segment: audio of one clause, or of none. */
interface Span {
  readonly clause: SpokenClause | undefined;
  /** Its first sample within the segment. */
  readonly start: number;
}

/** One reply: from its first audio to its end. */
interface Segment {
  readonly pcm: Int16Array[];
  readonly spans: Span[];
  total: number;
  /** No more audio follows. */
  isFlushed: boolean;
  isStarted: boolean;
  /** What was told as spoken. */
  spoken: string;
  /** Samples that were heard before the last pause. */
  base: number;
  /** Position in the ring of the sample `base`. */
  ringStart: number;
  /**
   * What was heard of it at `base`: later sound of a clause changes the estimate, and the model may
   * have been told this one.
   */
  pausedText: string | undefined;
}

/** What the playback tells. */
export interface PlaybackListener {
  onStarted(nowMs: number): void;
  /** The listener heard more words. @param text of the segment so far */
  onSpoken(text: string): void;
  /** @param seconds of the segment that were heard @param text what was heard of it */
  onFinished(seconds: number, isInterrupted: boolean, text: string): void;
}

/** Signed distance of positions that wrap at 2^32. */
const distance = (a: number, b: number): number => (a - b) | 0;

/** How often the words of a reply are told while it is heard. */
const TELL_MS = 100;

/** Plays one segment after another. */
export class Playback {
  readonly #ring: SpeechRingWriter;
  readonly #listener: PlaybackListener;
  readonly #segments: Segment[] = [];
  #isPaused = false;
  #toldMs = 0;

  constructor(ring: SpeechRingWriter, listener: PlaybackListener) {
    this.#ring = ring;
    this.#listener = listener;
  }

  /** Whether a reply is being heard. */
  get isAudible(): boolean {
    return this.#segments.length > 0 && !this.#isPaused;
  }

  /** What was heard of replies that are not finished. */
  get heardText(): string {
    return this.#segments.map((segment) => textOf(segment, this.#heard(segment))).join(' ');
  }

  /** Samples that `write` can take now. While paused nothing enters the ring. */
  get free(): number {
    return this.#isPaused ? Infinity : this.#ring.free;
  }

  /** Appends speech to the open segment. Write at most `free` samples. */
  write(pcm: Int16Array, clause: SpokenClause | undefined, nowMs: number): void {
    let segment = this.#segments.at(-1);
    if (segment === undefined || segment.isFlushed) {
      segment = {
        pcm: [],
        spans: [],
        total: 0,
        isFlushed: false,
        isStarted: false,
        spoken: '',
        base: 0,
        ringStart: this.#ring.written,
        pausedText: undefined,
      };
      this.#segments.push(segment);
    }
    const last = segment.spans.at(-1);
    if (last === undefined || last.clause !== clause) {
      segment.spans.push({ clause, start: segment.total });
    }
    segment.pcm.push(pcm);
    segment.total += pcm.length;
    if (!this.#isPaused) {
      this.#ring.write(pcm, nowMs);
    }
  }

  /** The open segment is complete. */
  endSegment(): void {
    const segment = this.#segments.at(-1);
    if (segment !== undefined) {
      segment.isFlushed = true;
    }
  }

  /** Drops everything that was not heard yet, and reports each segment as interrupted. */
  clear(nowMs: number): void {
    const heard = this.#segments.map((segment) => this.#heard(segment));
    this.#isPaused = false;
    this.#ring.flush(nowMs);
    const segments = this.#segments.splice(0);
    for (const [index, segment] of segments.entries()) {
      this.#finish(segment, heard[index]!, true);
    }
  }

  /** Falls silent, and keeps what was not heard. */
  pause(nowMs: number): void {
    if (this.#isPaused) {
      return;
    }
    for (const segment of this.#segments) {
      segment.base = this.#heard(segment);
      segment.pausedText = textOf(segment, segment.base);
    }
    this.#isPaused = true;
    if (this.#segments.length > 0) {
      this.#ring.flush(nowMs);
    }
  }

  /** Goes on where `pause` stopped. */
  resume(nowMs: number): void {
    if (!this.#isPaused) {
      return;
    }
    this.#isPaused = false;
    for (const segment of this.#segments) {
      segment.ringStart = this.#ring.written;
      let at = 0;
      for (const pcm of segment.pcm) {
        const from = Math.max(0, Math.min(pcm.length, segment.base - at));
        if (from < pcm.length) {
          this.#ring.write(pcm, nowMs, from);
        }
        at += pcm.length;
      }
    }
  }

  /** Looks how far the listener is. Call it every 10 ms or so. */
  poll(nowMs: number): void {
    for (;;) {
      const segment = this.#segments[0];
      if (segment === undefined || this.#isPaused) {
        return;
      }
      const heard = this.#heard(segment);
      if (heard > 0 && !segment.isStarted) {
        segment.isStarted = true;
        this.#listener.onStarted(nowMs);
      }
      const spoken = nowMs - this.#toldMs < TELL_MS ? '' : textOf(segment, heard);
      this.#toldMs = spoken === '' ? this.#toldMs : nowMs;
      if (spoken.length > segment.spoken.length) {
        segment.spoken = spoken;
        this.#listener.onSpoken(spoken);
      }
      if (!segment.isFlushed || heard < segment.total) {
        return;
      }
      this.#segments.shift();
      this.#finish(segment, heard, false);
    }
  }

  #heard(segment: Segment): number {
    if (this.#isPaused) {
      return segment.base;
    }
    const since = Math.max(0, distance(this.#ring.heard, segment.ringStart));
    return Math.min(segment.total, segment.base + since);
  }

  #finish(segment: Segment, heard: number, isInterrupted: boolean): void {
    this.#listener.onFinished(heard / SPEECH_RATE, isInterrupted, textOf(segment, heard));
  }
}

/** What was heard of a segment when its listener has reached sample `heard`. */
function textOf({ spans, base, pausedText }: Segment, heard: number): string {
  if (pausedText !== undefined && heard <= base) {
    return pausedText;
  }
  return spans
    .map(({ clause, start }) =>
      clause === undefined ? '' : heardOf(clause, heard - start, SPEECH_RATE),
    )
    .join('');
}

// The speech that an agent streams into a room: one byte stream a segment, each resampled and queued;
// and what of it the listener has heard.
import { SPEECH_RATE } from '../../media/timeline.ts';
import { StreamResampler, mixToMono } from '../../native/stream-resampler.ts';
import type { SpeechPort } from '../sessions/session-link.ts';

/** What has become of a segment. */
export interface PlaybackFinished {
  /** Of the segment, that was heard. */
  readonly seconds: number;
  readonly interrupted: boolean;
}

/** What becomes of segments, in order. */
export interface SegmentListener {
  /** The first sample of a segment is heard. Not told when it is interrupted before. */
  started(): void;
  /** Once for each segment that carried audio. */
  finished(finished: PlaybackFinished): void;
}

const MIN_RATE = 8000;
const MAX_RATE = 192_000;
/** Byte streams that are open at once. An agent has one. */
const MAX_OPEN_SEGMENTS = 8;
/** Segments that wait to be played. */
const MAX_SEGMENTS = 1000;
interface Segment {
  readonly channels: 1 | 2;
  readonly resampler: StreamResampler;
  /** Bytes of a sample that was cut at the end of a chunk. */
  rest: Uint8Array;
  /** Where its first sample is in the speech ring. */
  start: number;
  samples: number;
  isComplete: boolean;
  /** It was interrupted: what follows of it is dropped. */
  isDropped: boolean;
  /** The agent was told of its start, and of its end. */
  isStarted: boolean;
  isFinished: boolean;
}

/** The segments of one session, in order. */
export class SpeechSegments {
  readonly #speech: SpeechPort;
  readonly #listener: SegmentListener;
  /** By stream id, until the trailer. */
  readonly #open = new Map<string, Segment>();
  /** Segments with audio of which the agent has not been told. */
  readonly #playing: Segment[] = [];

  constructor(speech: SpeechPort, listener: SegmentListener) {
    this.#speech = speech;
    this.#listener = listener;
  }

  /**
   * A segment begins.
   * @returns what is wrong with it; undefined: nothing
   */
  begin(streamId: string, attributes: Readonly<Record<string, string>>): string | undefined {
    const rate = Number(attributes['sample_rate'] ?? SPEECH_RATE);
    const channels = Number(attributes['num_channels'] ?? 1);
    if (!Number.isInteger(rate) || rate < MIN_RATE || rate > MAX_RATE) {
      return `sample_rate is not within ${MIN_RATE} and ${MAX_RATE}`;
    }
    if (channels !== 1 && channels !== 2) {
      return 'num_channels is not 1 or 2';
    }
    this.end(streamId); // an agent that begins the same stream again
    if (this.#open.size >= MAX_OPEN_SEGMENTS || this.#playing.length >= MAX_SEGMENTS) {
      return 'too many segments wait';
    }
    this.#open.set(streamId, {
      channels,
      resampler: new StreamResampler({
        inputRate: rate,
        outputRate: SPEECH_RATE,
        channels: 1,
        quality: 'medium',
      }),
      rest: new Uint8Array(0),
      start: 0,
      samples: 0,
      isComplete: false,
      isDropped: false,
      isStarted: false,
      isFinished: false,
    });
    return undefined;
  }

  /** A piece of a segment: PCM16. */
  chunk(streamId: string, content: Uint8Array): void {
    const segment = this.#open.get(streamId);
    if (segment === undefined || content.length === 0) {
      return;
    }
    if (segment.isDropped) {
      this.#finish(segment, { seconds: 0, interrupted: true });
      return;
    }
    const frameBytes = segment.channels * 2;
    const bytes = new Uint8Array(segment.rest.length + content.length);
    bytes.set(segment.rest);
    bytes.set(content, segment.rest.length);
    const whole = bytes.length - (bytes.length % frameBytes);
    segment.rest = bytes.slice(whole);
    const pcm = mixToMono(new Int16Array(bytes.buffer, 0, whole / 2), segment.channels);
    this.#queue(segment, segment.resampler.push(pcm));
  }

  /** The trailer of a segment: nothing follows. */
  end(streamId: string): void {
    const segment = this.#open.get(streamId);
    if (segment === undefined) {
      return;
    }
    this.#open.delete(streamId);
    segment.isComplete = true;
    if (!segment.isDropped && segment.samples > 0) {
      this.#queue(segment, segment.resampler.flush());
    }
    segment.resampler.close();
  }

  /** The agent interrupts: forgets all segments, and tells of each what was heard. */
  clear(): void {
    const heard = this.#speech.heardPosition;
    this.#speech.flush();
    for (const segment of this.#open.values()) {
      segment.isDropped = true;
    }
    for (const segment of this.#playing.splice(0)) {
      const played = Math.min(segment.samples, Math.max(0, (heard - segment.start) | 0));
      this.#finish(segment, { seconds: played / SPEECH_RATE, interrupted: true });
    }
  }

  /** Tells of segments that have been heard to their end. Call it some twenty times a second. */
  poll(): void {
    for (;;) {
      const [first] = this.#playing;
      if (first === undefined) {
        return;
      }
      if (!first.isStarted && ((this.#speech.heardPosition - first.start) | 0) > 0) {
        first.isStarted = true;
        this.#listener.started();
      }
      if (!first.isComplete) {
        return;
      }
      const left = (first.start + first.samples - this.#speech.heardPosition) | 0;
      if (left > 0) {
        return;
      }
      this.#playing.shift();
      this.#finish(first, { seconds: first.samples / SPEECH_RATE, interrupted: false });
    }
  }

  close(): void {
    for (const segment of this.#open.values()) {
      segment.resampler.close();
    }
    this.#open.clear();
    this.#playing.length = 0;
  }

  #queue(segment: Segment, speech: Int16Array): void {
    if (speech.length === 0) {
      return;
    }
    const before = this.#speech.writtenPosition;
    this.#speech.push(new Uint8Array(speech.buffer, speech.byteOffset, speech.byteLength));
    if (segment.samples === 0) {
      segment.start = before;
      this.#playing.push(segment);
    }
    segment.samples += (this.#speech.writtenPosition - before) | 0;
  }

  #finish(segment: Segment, finished: PlaybackFinished): void {
    if (!segment.isFinished) {
      segment.isFinished = true;
      this.#listener.finished(finished);
    }
  }
}

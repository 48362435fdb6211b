// Where the speech of a session enters: what every input format has in common.
import { SPEECH_RING_SECONDS } from '../../link/speech-ring.ts';
import { SPEECH_RATE } from '../../media/timeline.ts';

/**
 * Speech of one session that may wait to be played, the ring included. A client may send a whole
 * lecture at once, but not go on sending for ever.
 */
export const MAX_BACKLOG_SECONDS = 600;
/** The same bound for PCM16 that does not fit into the ring. */
export const MAX_WAITING_BYTES = (MAX_BACKLOG_SECONDS - SPEECH_RING_SECONDS) * SPEECH_RATE * 2;

/**
 * Speech waiting on the main thread, of all sessions together: 15 sessions at their bound, or 256
 * that wait for half a minute each.
 */
export const MAX_WAITING_BYTES_TOTAL = 256 << 20;

/** Takes the audio messages of one session, and writes its speech ring. */
export interface AudioIngress {
  /** The speech ring (link/speech-ring.ts), which the worker reads. */
  readonly memory: SharedArrayBuffer;
  /** Position in the ring of the next sample that will be accepted; modulo 2^32. */
  readonly writtenPosition: number;
  /** Position that the listener has reached. */
  readonly heardPosition: number;
  /** Messages that held no audio. */
  readonly invalidMessages: number;
  /** Whether audio waits until the ring has room. */
  readonly hasBacklog: boolean;
  /** Samples in one message, those included that `push` may drop. */
  samplesIn(message: Uint8Array): number;
  /** Copies one message. @returns samples dropped because the backlog is full; 0 normally */
  push(message: Uint8Array, nowMs: number): number;
  /** SKIP: drops all audio that was not played yet. */
  flush(nowMs: number): void;
  /** DONE: no more audio follows. Later messages are dropped. */
  done(): void;
  /** Moves waiting audio into the ring. Call it a few times a second while there is a backlog. */
  pump(nowMs: number): void;
  /** Frees its memory. Do not use it afterwards. */
  close(): void;
}

// What an agent is told of the playback of its segments: calls of lk.playback_started and
// lk.playback_finished, one after the other.
import { after } from '../../base/guard.ts';
import type { PacketWriter } from './data-packets.ts';
import type { PlaybackFinished } from './speech-segments.ts';

const STARTED_METHOD = 'lk.playback_started';
const FINISHED_METHOD = 'lk.playback_finished';
/**
 * The next call waits for the answer to the one before, for this long at most: SDKs handle calls
 * side by side, so two at once may be handled in either order. Agents answer in a round trip.
 */
const ANSWER_MS = 500;
/** Calls that wait. More are dropped: an agent has a few segments at a time. */
const MAX_WAITING = 1000;

interface Call {
  readonly method: string;
  readonly payload: string;
}

/** The calls to one agent, in order. */
export class PlaybackReports {
  readonly #packets: PacketWriter;
  readonly #send: (packet: Uint8Array) => void;
  readonly #waiting: Call[] = [];
  /** The call that waits for its answer. */
  #pending: { readonly id: string; readonly timer: NodeJS.Timeout } | undefined = undefined;
  #agent = '';
  /** The agent has said that it has no method lk.playback_started. */
  #lacksStarted = false;
  #startedId = '';

  constructor(packets: PacketWriter, send: (packet: Uint8Array) => void) {
    this.#packets = packets;
    this.#send = send;
  }

  /** Whom to call. */
  setAgent(identity: string): void {
    this.#agent = identity;
  }

  /** The first sample of a segment is heard. */
  started(): void {
    if (!this.#lacksStarted) {
      this.#add(STARTED_METHOD, {});
    }
  }

  finished({ seconds, interrupted }: PlaybackFinished): void {
    this.#add(FINISHED_METHOD, {
      playback_position: seconds,
      interrupted,
      synchronized_transcript: null,
    });
  }

  /** The agent answered a call. @param isError the method failed, or there is none */
  answered(id: string, isError: boolean): void {
    if (id !== this.#pending?.id) {
      return;
    }
    this.#lacksStarted ||= isError && id === this.#startedId;
    this.#next();
  }

  close(): void {
    clearTimeout(this.#pending?.timer);
    this.#pending = undefined;
    this.#waiting.length = 0;
  }

  #add(method: string, payload: unknown): void {
    if (this.#waiting.length < MAX_WAITING) {
      this.#waiting.push({ method, payload: JSON.stringify(payload) });
    }
    if (this.#pending === undefined) {
      this.#next();
    }
  }

  #next(): void {
    clearTimeout(this.#pending?.timer);
    this.#pending = undefined;
    const call = this.#waiting.shift();
    if (call === undefined) {
      return;
    }
    const { id, packet } = this.#packets.rpcRequest(this.#agent, call.method, call.payload);
    if (call.method === STARTED_METHOD) {
      this.#startedId = id;
    }
    this.#pending = {
      id,
      timer: after(ANSWER_MS, 'the answer of an agent', () => {
        this.#next();
      }),
    };
    this.#send(packet);
  }
}

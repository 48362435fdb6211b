// A client that comes back with its token when its session is lost, and watches its pictures.
import { setTimeout as delay } from 'node:timers/promises';
import { createToken } from '../../test/harness/server.ts';
import { LightPeer, type PeerTarget } from './light-peer.ts';

const WATCH_MS = 20;
const RETRY_MS = 200;
/** A server that has just got clients, or whose frames are late, has no room for a moment. */
const ROOM_WITHIN_MS = 20_000;
/** A second of sound. */
const SPEECH = Int16Array.from({ length: 16_000 }, (_sample, i) => 8000 * Math.sin(i / 10));

/** A client with one token. */
export class ReturningClient {
  readonly target: PeerTarget;
  readonly #token: string;
  #peer: LightPeer;
  readonly #timer: NodeJS.Timeout;
  #frames = 0;
  #lastFrameMs = performance.now();
  #longestPauseMs = 0;
  #speech = 0;

  private constructor(target: PeerTarget, token: string, peer: LightPeer) {
    this.target = target;
    this.#token = token;
    this.#peer = peer;
    this.#timer = setInterval(() => {
      this.#watch();
    }, WATCH_MS);
  }

  /** Connects with a new token. @throws Error with the server's words */
  static async open(target: PeerTarget): Promise<ReturningClient> {
    const sinceMs = performance.now();
    for (;;) {
      try {
        const token = await createToken(target, { faceId: 'ava' });
        return new ReturningClient(target, token, await connect(target, token));
      } catch (error) {
        const isLate = performance.now() - sinceMs > ROOM_WITHIN_MS;
        if (isLate || !String(error).includes('SERVER_OVERLOADED')) {
          throw error;
        }
        await delay(RETRY_MS);
      }
    }
  }

  get sessionId(): string {
    return this.#peer.sessionId;
  }
  get isLive(): boolean {
    return this.#peer.figures.state === 'live';
  }
  /** What the server said last when the session is over. */
  get ending(): string | undefined {
    return this.#peer.figures.ending;
  }

  /** Longest time without a picture since the last call, ms. */
  takeLongestPause(): number {
    this.#watch();
    const longestMs = this.#longestPauseMs;
    this.#longestPauseMs = 0;
    return longestMs;
  }

  #watch(): void {
    const nowMs = performance.now();
    this.#longestPauseMs = Math.max(this.#longestPauseMs, nowMs - this.#lastFrameMs);
    const { frames } = this.#peer.figures;
    if (frames !== this.#frames) {
      this.#frames = frames;
      this.#lastFrameMs = nowMs;
    }
  }

  /** Speaks every third second until `stop`. */
  startSpeaking(): void {
    this.#speech = Math.trunc(performance.now());
    void this.#speak(this.#speech);
  }

  async #speak(id: number): Promise<void> {
    while (this.#speech === id) {
      await this.#peer.speak(SPEECH, 'burst');
      await delay(3000, undefined, { ref: false });
    }
  }

  /**
   * Comes back with the same token, as often as it takes.
   * @returns milliseconds since `sinceMs` until its first picture
   * @throws Error with the last refusal when it is not back within `limitMs`
   */
  async comeBack(sinceMs: number, limitMs: number): Promise<number> {
    await this.#peer.close();
    for (;;) {
      try {
        this.#peer = await connect(this.target, this.#token);
        this.#frames = 0;
        this.#lastFrameMs = performance.now();
        return performance.now() - sinceMs;
      } catch (error) {
        if (performance.now() - sinceMs > limitMs) {
          throw error;
        }
        await delay(RETRY_MS);
      }
    }
  }

  async close(): Promise<void> {
    this.#speech = 0;
    clearInterval(this.#timer);
    await this.#peer.close();
  }
}

const connect = (target: PeerTarget, sessionToken: string): Promise<LightPeer> =>
  LightPeer.connect({ target, codec: 'vp8', faceId: 'ava', sessionToken });

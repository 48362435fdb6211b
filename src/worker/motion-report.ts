// The motion of one session's face, for a client that draws a head of its own or shows captions in
// step with the lips.
import type { FromWorker, ReportedMotion } from '../link/messages.ts';
import { ARKIT_SIZE, toArkit } from '../media/arkit.ts';
import { type Viseme, visemeOf } from '../media/visemes.ts';
import type { Peer } from '../webrtc/peer.ts';
import type { FrameTrack } from './frame-track.ts';

/**
 * Posts the weights of each frame at once: a browser on the same network shows the frame 40 ms
 * later. The only message between threads that is sent for each frame; only sessions that ask for it
 * have one of these.
 */
export class MotionReport {
  readonly #sessionId: string;
  readonly #kind: ReportedMotion;
  readonly #post: (message: FromWorker) => void;
  readonly #weights = new Float32Array(ARKIT_SIZE);
  #viseme: Viseme = 'sil';

  constructor(sessionId: string, kind: ReportedMotion, post: (message: FromWorker) => void) {
    this.#sessionId = sessionId;
    this.#kind = kind;
    this.#post = post;
  }

  /** A frame was sent; one that was dropped is not reported. */
  add(frames: FrameTrack, { stats }: Peer): void {
    if (frames.packets === 0) {
      return;
    }
    const sessionId = this.#sessionId;
    const rtp = stats.videoTimestamp;
    if (this.#kind !== 'arkit') {
      const viseme = visemeOf(frames.articulation.values);
      if (viseme !== this.#viseme) {
        this.#viseme = viseme;
        this.#post({ type: 'viseme', sessionId, rtp, viseme });
      }
    }
    if (this.#kind === 'visemes') {
      return;
    }
    toArkit(frames.articulation.values, frames.renderer.pose, this.#weights);
    this.#post({
      type: 'motion',
      sessionId,
      rtp,
      weights: this.#weights, // posting copies them
    });
  }
}

// Sends test media to a server peer in real time once it is connected: 30 frames/s and Opus packets
// of 20 ms. A key frame request restarts the video at its key frame.
import { monotonicMs } from '../../src/base/time.ts';
import type { Endpoint } from '../../src/webrtc/endpoint.ts';
import type { Peer } from '../../src/webrtc/peer.ts';
import type { TestMedia } from './test-media.ts';
import { PEER_OPTIONS, RecordingListener } from './peer-pair.ts';

export class Broadcast {
  readonly listener: RecordingListener;
  readonly peer: Peer;
  readonly #media: TestMedia;
  readonly #timer: NodeJS.Timeout;
  #startMs = 0;
  #frames = 0;
  #keyFrame = 0;
  #answeredRequests = 0;
  #packets = 0;

  constructor(
    endpoint: Endpoint,
    media: TestMedia,
    listener = new RecordingListener(),
    remote: 'client' | 'sfu' = 'client',
  ) {
    this.listener = listener;
    this.#media = media;
    this.peer = endpoint.createPeer({ ...PEER_OPTIONS, remote }, this.listener);
    void this.listener.connected.promise.then((nowMs) => {
      this.#startMs = nowMs;
    });
    this.#timer = setInterval(() => {
      this.#send(monotonicMs());
    }, 5);
  }

  #send(nowMs: number): void {
    const { frames, packets } = this.#media;
    this.peer.poll(nowMs);
    if (this.#startMs === 0) {
      return;
    }
    for (; (this.#frames * 1000) / 30 <= nowMs - this.#startMs; this.#frames++) {
      if (this.listener.keyFrameRequests > this.#answeredRequests) {
        this.#answeredRequests = this.listener.keyFrameRequests;
        this.#keyFrame = this.#frames;
      }
      const at = (this.#frames - this.#keyFrame) % frames.length;
      this.peer.sendVideo(
        frames[at]!,
        frames[at]!.length,
        at === 0,
        (this.#frames * 1000) / 30,
        nowMs,
      );
    }
    for (; this.#packets * 20 <= nowMs - this.#startMs; this.#packets++) {
      const packet = packets[this.#packets % packets.length]!;
      this.peer.sendAudio(packet, packet.length, this.#packets * 20, nowMs, this.#packets === 0);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

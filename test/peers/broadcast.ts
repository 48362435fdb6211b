// Sends test media to a peer in real time: frames of 1/30 s and packets of 20 ms, from the moment it is connected; from the key frame again when one is asked for, as the server does.
import { monotonicMs } from '../../src/base/time.ts';
import type { Endpoint } from '../../src/webrtc/endpoint.ts';
import type { Peer } from '../../src/webrtc/peer.ts';
import type { TestMedia } from './media.ts';
import { PEER_OPTIONS, Recorder } from './werift-peer.ts';

export class Broadcast {
  readonly told = new Recorder();
  readonly peer: Peer;
  readonly #media: TestMedia;
  readonly #timer: NodeJS.Timeout;
  #startMs = 0;
  #frames = 0;
  #keyFrame = 0;
  #asked = 0;
  #packets = 0;

  constructor(endpoint: Endpoint, media: TestMedia) {
    this.#media = media;
    this.peer = endpoint.createPeer(PEER_OPTIONS, this.told);
    void this.told.connected.promise.then((nowMs) => {
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
      if (this.told.keyFrameRequests > this.#asked) {
        this.#asked = this.told.keyFrameRequests;
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

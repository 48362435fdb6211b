// Once a second: what a session's peer, stream and renderer counted goes into the worker's metrics.
import { newPeerReading } from '../metrics/peer-meter.ts';
import type { SpeechStream } from '../pipeline/speech/speech-stream.ts';
import type { Peer } from '../webrtc/peer.ts';
import type { FrameTrack } from './frame-track.ts';
import type { SpeechState } from './speech-state.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

const SAMPLE_MS = 1000;

/** What is sampled of a session. */
export interface SampledSession {
  readonly peer: Peer | undefined;
  readonly stream: SpeechStream;
  readonly frames: FrameTrack;
  readonly state: SpeechState;
  readonly isAudioOnly: boolean;
}

/** One per session: remembers what was counted at the last sample. */
export class SessionSampler {
  readonly #metrics: WorkerMetrics;
  #reading;
  #lastMs = 0;
  #underruns = 0;
  #framesRepeated = 0;

  constructor(metrics: WorkerMetrics, nowMs: number) {
    this.#metrics = metrics;
    this.#reading = newPeerReading(nowMs);
  }

  /** The session has another peer, which counts from zero. */
  forgetPeer(nowMs: number): void {
    this.#reading = newPeerReading(nowMs);
  }

  /** Call a few times a second while the peer is connected. */
  sample({ peer, stream, frames, state, isAudioOnly }: SampledSession, nowMs: number): void {
    if (nowMs - this.#lastMs < SAMPLE_MS) {
      return;
    }
    this.#lastMs = nowMs;
    const metrics = this.#metrics;
    metrics.peerMeter.read(peer!.stats, this.#reading, nowMs);
    metrics.underruns.add(stream.underruns - this.#underruns);
    this.#underruns = stream.underruns;
    const repeated = frames.audioRenderer?.repeatedFrames ?? 0;
    metrics.framesRepeated.add(repeated - this.#framesRepeated);
    this.#framesRepeated = repeated;
    if (!state.isSpeaking) {
      return;
    }
    metrics.bufferDepth.observe(stream.bufferedMs / 1000);
    if (!isAudioOnly) {
      metrics.avOffset.observe(stream.lipsAheadMs / 1000);
    }
  }
}

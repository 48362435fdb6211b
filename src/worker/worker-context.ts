// What all sessions of a worker share.
import type { FromWorker } from '../link/messages.ts';
import type { MediaConfig } from '../link/worker-init.ts';
import type { SpeechModel } from '../pipeline/inference/speech-model.ts';
import type { FaceCache } from '../pipeline/render/face-cache.ts';
import type { InferenceClient } from '../pipeline/wav2lip/inference-client.ts';
import type { Endpoint } from '../webrtc/endpoint.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

/** Lives on the worker thread. */
export interface WorkerContext {
  readonly endpoint: Endpoint;
  readonly model: SpeechModel;
  readonly faces: FaceCache;
  /** The inference thread of the user's own network, if there is one that can be used. */
  readonly inferenceClient: InferenceClient | undefined;
  /** Coded frames, one at a time: see `VideoTrack`. */
  readonly codedFrame: Uint8Array;
  readonly metrics: WorkerMetrics;
  readonly post: (message: FromWorker) => void;
  readonly media: Pick<
    MediaConfig,
    'videoBitrateKbps' | 'maxVideoBitrateKbps' | 'audioBitrateKbps' | 'motion'
  >;
}

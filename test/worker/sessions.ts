// Sessions of a worker without a network and without a front, for tests of what happens between the
// speech ring and the transport.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { monotonicMs } from '../../src/base/time.ts';
import { SpeechRingWriter, createSpeechRing } from '../../src/link/speech-ring.ts';
import type { FromWorker } from '../../src/link/messages.ts';
import type { Offer } from '../../src/webrtc/sdp/offer.ts';
import { SharedMetrics, createSharedMetrics } from '../../src/metrics/shared-metrics.ts';
import type { SpeechModel } from '../../src/pipeline/inference/speech-model.ts';
import { createWorkerMetrics } from '../../src/worker/worker-metrics.ts';
import type { Endpoint } from '../../src/webrtc/endpoint.ts';
import type { Peer } from '../../src/webrtc/peer.ts';
import { newCodedFrameBuffer } from '../../src/pipeline/encode/video-track.ts';
import { FaceCache } from '../../src/pipeline/render/face-cache.ts';
import type { WorkerContext } from '../../src/worker/worker-context.ts';
import { WorkerSession } from '../../src/worker/worker-session.ts';

const file = readFileSync(path.join(import.meta.dirname, '../../models/build/faces/ava.face'));
export const ava = new SharedArrayBuffer(file.length);
new Uint8Array(ava).set(file);

const stats = {
  packetsSent: 0,
  bytesSent: 0,
  packetsRetransmitted: 0,
  nacksReceived: 0,
  plisReceived: 0,
  firsReceived: 0,
  packetsLost: 0,
  fractionLost: 0,
  jitterMs: 0,
  roundTripMs: 0,
  packetsReceived: 0,
  datagramsRejected: 0,
  targetBitrateKbps: 600,
  videoTimestamp: 0,
};

/** A peer that accepts everything and sends nothing: the transport has its own tests and bench. */
export const sinkPeer: Peer = {
  answer: () => Promise.resolve('v=0'),
  offer: () => 'v=0',
  accept: () => {},
  addCandidate: () => false,
  createChannel: () => {
    throw new Error('no data section');
  },
  videoCodec: 'vp8',
  mids: { audio: '1', video: '0' },
  lastHeardMs: 0,
  isConnected: true,
  stats,
  packetizeMs: 0.01,
  sendVideo: () => 1,
  sendAudio: () => 1,
  poll: () => {},
  close: () => Promise.resolve(),
};

export const workerContext = (
  model: SpeechModel,
  peer: Peer,
  post: (message: FromWorker) => void = () => {},
): WorkerContext => ({
  endpoint: { createPeer: () => peer } as unknown as Endpoint,
  model,
  faces: new FaceCache(),
  inferenceClient: undefined,
  codedFrame: newCodedFrameBuffer(),
  metrics: createWorkerMetrics(new SharedMetrics(createSharedMetrics())),
  post,
  media: {
    videoBitrateKbps: 600,
    maxVideoBitrateKbps: 1500,
    audioBitrateKbps: 32,
    motion: 'natural',
  },
});

/** The peers of these sessions do not read their offer. */
export const offer: Offer = { sections: [], bundle: [], isIceLite: false, candidates: [] };

/** A session whose peer is connected: media flows once its clock is started. */
export async function joinSession(
  id: string,
  context: WorkerContext,
  renderer = 'rig',
): Promise<{ session: WorkerSession; writer: SpeechRingWriter }> {
  const speechRing = createSpeechRing();
  const session = new WorkerSession(
    {
      sessionId: id,
      face: { faceId: 'ava', bytes: ava },
      emotion: 0,
      renderer,
      handleSilence: true,
      startFrame: 0,
      maxIdleMs: 1e9,
      maxLengthMs: 1e9,
      outlivesPeers: false,
      speechRing,
    },
    context,
  );
  await session.offer(offer, { offerId: 0, isNewPeer: true });
  session.onConnected(monotonicMs(), monotonicMs());
  return { session, writer: new SpeechRingWriter(speechRing) };
}

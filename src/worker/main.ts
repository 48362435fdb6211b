// The entry of a worker thread: pins itself to its core, loads the model, opens its UDP port, and
// then serves the messages of the front.
import os from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { every, guarded, reportDefectsTo } from '../base/guard.ts';
import { NativeRuns } from '../base/native-runs.ts';
import { HEARTBEAT_MS, beatHeart } from '../link/heartbeat.ts';
import type { FromWorker, Scheduling, ToWorker } from '../link/messages.ts';
import type { WorkerInit } from '../link/worker-init.ts';
import { SharedMetrics } from '../metrics/shared-metrics.ts';
import { watchWorkerThread } from '../metrics/threads.ts';
import { native } from '../native/addon.ts';
import { newCodedFrameBuffer } from '../pipeline/encode/video-track.ts';
import { SpeechModel } from '../pipeline/inference/speech-model.ts';
import { FaceCache } from '../pipeline/render/face-cache.ts';
import { InferenceClient } from '../pipeline/wav2lip/inference-client.ts';
import { Wav2LipRefused } from '../pipeline/wav2lip/wav2lip-network.ts';
import { createEndpoint } from '../webrtc/endpoint.ts';
import { FramePipeline } from './frame-pipeline.ts';
import { FrameScheduler } from './frame-scheduler.ts';
import { FrontMessages } from './front-messages.ts';
import { measureSessionCost } from './session-cost.ts';
import { createWorkerMetrics } from './worker-metrics.ts';
import type { WorkerContext } from './worker-context.ts';

/** Placement goes by what a worker reports once a second. */
const REPORT_MS = 1000;
/** Nice value where the thread may not be scheduled in real time. */
const MEDIA_NICE = -10;

const init = workerData as WorkerInit;
const post = (message: FromWorker): void => {
  parentPort!.postMessage(message);
};
const logError = (message: string, fields: Record<string, unknown>, sessionId?: string): void => {
  post({ type: 'log', level: 'error', sessionId, message, fields });
};
const fieldsOf = (error: unknown): { error: string; stack: string | undefined } => ({
  error: String(error),
  stack: error instanceof Error ? error.stack : undefined,
});

native.setThreadName(`mp-worker-${init.index}`);
if (init.cpu !== undefined) {
  native.pinThread(Int32Array.of(init.cpu));
}

reportDefectsTo((where, error, missed) => {
  logError(`${where} failed`, { ...fieldsOf(error), missed });
});
// An exception in the handling of one peer must not end the sessions of all others.
process.on('unhandledRejection', (reason) => {
  logError('unhandled rejection in a worker', fieldsOf(reason));
});

const { media } = init;
const sharedMetrics = new SharedMetrics(init.sharedMetrics);
const metrics = createWorkerMetrics(sharedMetrics);
watchWorkerThread(sharedMetrics, () => native.threadCpuMs());
const model = await SpeechModel.load({
  maxBatch: media.maxSessionsPerWorker,
  runs: new NativeRuns(init.nativeRuns),
});
const endpoint = await createEndpoint({
  bindAddress: media.bindAddress,
  port: init.port,
  announcedAddresses: media.announcedAddresses,
  metrics: sharedMetrics,
  onPeerError: (error, sessionId) => {
    logError('a defect in the transport ended this peer', fieldsOf(error), sessionId);
  },
});
const scheduler = new FrameScheduler({
  pipeline: new FramePipeline(model, metrics, media.maxSessionsPerWorker),
  metrics,
  post,
  threadCpuMs: () => native.threadCpuMs(),
  costPerSession: await measureSessionCost(model, init.calibrationFace, media),
});
const inferenceClient = await connectInference();
const context: WorkerContext = {
  endpoint,
  model,
  faces: new FaceCache(),
  inferenceClient,
  codedFrame: newCodedFrameBuffer(),
  metrics,
  post,
  media,
};
const frontMessages = new FrontMessages(context, scheduler, () => {
  void endpoint.close().finally(() => {
    process.exit(0);
  });
});

/** @returns undefined when there is no network, or none that can be used: the log says why */
async function connectInference(): Promise<InferenceClient | undefined> {
  if (init.inferencePort === undefined) {
    return undefined;
  }
  try {
    return await InferenceClient.connect(init.inferencePort);
  } catch (error) {
    if (!(error instanceof Wav2LipRefused)) {
      throw error;
    }
    logError(error.message, {});
    return undefined;
  }
}

/**
 * Frames have deadlines; most other work on this machine has none. Only root, or limits on rtprio
 * and nice, allow this: otherwise the thread competes as an equal.
 */
function prioritise(): Scheduling {
  try {
    if (init.isRealtime) {
      native.makeThreadRealtime();
      return 'realtime';
    }
  } catch {
    // Not allowed: try the nice value.
  }
  try {
    os.setPriority(native.threadId(), MEDIA_NICE); // on Linux this sets the calling thread alone
    return 'prioritised';
  } catch {
    return 'ordinary';
  }
}

parentPort!.on(
  'message',
  guarded('a message of the front', (message: ToWorker) => {
    frontMessages.receive(message);
  }),
);
every(REPORT_MS, 'the report of load', () => {
  scheduler.reportLoad();
});
every(HEARTBEAT_MS, 'the heartbeat', () => {
  beatHeart(init.heartbeat);
});

post({
  type: 'ready',
  workerIndex: init.index,
  threadId: native.threadId(),
  cpu: init.cpu,
  scheduling: prioritise(),
  wav2lipCost: inferenceClient?.costPerSession,
});

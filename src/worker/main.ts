// A worker thread: pins itself to its core, loads the model, opens its UDP port, then serves the front's messages.
import os from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { every, guarded, reportDefectsTo } from '../base/guard.ts';
import { toWireError } from '../base/errors.ts';
import { HEARTBEAT_MS, beatHeart } from '../link/heartbeat.ts';
import type { WorkerInit } from '../link/worker-init.ts';
import type { FromWorker, Scheduling, ToWorker } from '../link/messages.ts';
import { SharedMetrics } from '../metrics/shared-metrics.ts';
import { watchWorkerThread } from '../metrics/threads.ts';
import { native } from '../native/addon.ts';
import { measureSessionCost } from './session-cost.ts';
import { SpeechModel } from '../pipeline/inference/speech-model.ts';
import { createWorkerMetrics } from './worker-metrics.ts';
import { createEndpoint } from '../webrtc/endpoint.ts';
import { FramePipeline } from './pipeline.ts';
import { WorkerSession, type WorkerContext } from './worker-session.ts';
import { FaceCache } from '../pipeline/render/face-cache.ts';
import { FrameScheduler } from './frame-scheduler.ts';
import { InferenceClients } from '../pipeline/wav2lip/inference-clients.ts';
import { Wav2LipRefused } from '../pipeline/wav2lip/network.ts';

const REPORT_MS = 1000;
const MEDIA_PRIORITY = -10;

const init = workerData as WorkerInit;
const post = (message: FromWorker): void => {
  parentPort!.postMessage(message);
};
const log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields: Record<string, unknown> = {},
  sessionId?: string,
): void => {
  post({ type: 'log', level, sessionId, message, fields });
};

native.setThreadName(`mp-worker-${init.index}`);
if (init.cpu !== undefined) {
  native.pinThread(Int32Array.of(init.cpu));
}

reportDefectsTo((where, error, missed) => {
  log('error', `${where} failed`, {
    error: String(error),
    stack: error instanceof Error ? error.stack : undefined,
    missed,
  });
});
// Whatever a peer manages to throw at us must not take the other sessions along.
process.on('unhandledRejection', (reason) => {
  log('error', 'unhandled rejection in a worker', {
    error: String(reason),
    stack: reason instanceof Error ? reason.stack : undefined,
  });
});

const sharedMetrics = new SharedMetrics(init.sharedMetrics);
const metrics = createWorkerMetrics(sharedMetrics);
watchWorkerThread(sharedMetrics, () => native.threadCpuMs());
const model = await SpeechModel.load({ maxBatch: init.media.maxSessionsPerWorker });
const endpoint = await createEndpoint({
  bindAddress: init.media.bindAddress,
  port: init.port,
  announcedAddresses: init.media.announcedAddresses,
  metrics: sharedMetrics,
  onPeerError: (error, sessionId) => {
    log(
      'error',
      'a defect in the transport ended this peer',
      { error: String(error), stack: error instanceof Error ? error.stack : undefined },
      sessionId,
    );
  },
});
const scheduler = new FrameScheduler({
  pipeline: new FramePipeline(model, metrics, init.media.maxSessionsPerWorker),
  instruments: metrics,
  post,
  threadCpuMs: () => native.threadCpuMs(),
  costPerSession: await measureSessionCost(
    model,
    init.calibrationFace,
    init.media.videoBitrateKbps,
  ),
});
const wav2lip =
  init.inferencePort === undefined
    ? undefined
    : await InferenceClients.connect(init.inferencePort).catch((error: unknown) => {
        if (!(error instanceof Wav2LipRefused)) {
          throw error;
        }
        log('error', error.message);
        return undefined;
      });
const context: WorkerContext = {
  endpoint,
  model,
  faces: new FaceCache(),
  inferenceClients: wav2lip,
  metrics,
  post,
  media: init.media,
};

/** Frames have deadlines, what else runs on this machine has none. Only root, or limits on rtprio and nice, may: without them the thread competes as an equal. */
function prioritise(): Scheduling {
  try {
    if (init.isRealtime) {
      native.makeThreadRealtime();
      return 'realtime';
    }
  } catch {
    /* the next best then */
  }
  try {
    os.setPriority(native.threadId(), MEDIA_PRIORITY); // on Linux this moves the calling thread alone
    return 'prioritised';
  } catch {
    return 'ordinary';
  }
}

/** What the front says of sessions whose face is still being prepared. */
const opening = new Map<string, ToWorker[]>();

async function openWithNewFace(message: ToWorker & { readonly type: 'open' }): Promise<void> {
  const { sessionId, face } = message.spec;
  const waiting: ToWorker[] = [message];
  opening.set(sessionId, waiting);
  await context.faces.load(face.faceId, face.bytes).catch(() => {}); // what is wrong with it is said again when the session takes it
  opening.delete(sessionId);
  for (const each of waiting) {
    receive(each, true);
  }
}

function handle(message: ToWorker, isFaceLoaded = false): void {
  switch (message.type) {
    case 'open':
      if (isFaceLoaded || context.faces.has(message.spec.face.faceId)) {
        scheduler.add(new WorkerSession(message.spec, context));
      } else {
        void openWithNewFace(message);
      }
      return;
    case 'offer':
      scheduler
        .get(message.sessionId)
        ?.offer(message.offer)
        .catch((error: unknown) => {
          log('error', 'offer failed', { error: String(error) }, message.sessionId);
        });
      return;
    case 'close': {
      const session = scheduler.get(message.sessionId);
      if (session === undefined) {
        return;
      }
      session.end(message.reason);
      scheduler.remove(session);
      return;
    }
    case 'stats':
      post({
        type: 'stats',
        sessionId: message.sessionId,
        requestId: message.requestId,
        stats: scheduler.get(message.sessionId)?.statsReport() ?? undefined,
      });
      return;
    case 'stop':
      for (const session of scheduler) {
        session.end('server_stopped');
      }
      scheduler.stop();
      void endpoint.close().finally(() => {
        process.exit(0);
      });
  }
}

function receive(message: ToWorker, isFaceLoaded = false): void {
  const waiting = 'sessionId' in message ? opening.get(message.sessionId) : undefined;
  if (waiting !== undefined) {
    waiting.push(message);
    return;
  }
  try {
    handle(message, isFaceLoaded);
  } catch (error) {
    log('error', `message '${message.type}' failed`, {
      error: String(error),
      stack: error instanceof Error ? error.stack : undefined,
    });
    if (message.type === 'open') {
      post({
        type: 'failed',
        sessionId: message.spec.sessionId,
        error: toWireError(error),
        reason: 'error',
      });
    }
    if (message.type === 'open') {
      post({ type: 'ended', sessionId: message.spec.sessionId, reason: 'error' });
    }
  }
}

parentPort!.on(
  'message',
  guarded('a message of the front', (message: ToWorker) => {
    receive(message);
  }),
);

every(REPORT_MS, 'the report of load', () => {
  scheduler.reportLoad();
});
every(HEARTBEAT_MS, 'the sign of life', () => {
  beatHeart(init.heartbeat);
});

post({
  type: 'ready',
  workerIndex: init.index,
  threadId: native.threadId(),
  cpu: init.cpu,
  scheduling: prioritise(),
  wav2lipCost: wav2lip?.costPerSession ?? undefined,
});

// The inference thread of a media worker: runs the user's own network for the worker's sessions,
// one patch after another.
//
// The front starts it. Started by the media worker it would be ended together with the worker, and
// onnxruntime-node aborts the process when that happens during a run. Instead the port between the
// two closes, and the thread ends when nothing is left to do.
import os from 'node:os';
import { workerData } from 'node:worker_threads';
import { guarded } from '../../base/guard.ts';
import { monotonicMs } from '../../base/time.ts';
import type { Wav2LipInit } from '../../link/worker-init.ts';
import { FPS, FRAME_MS } from '../../media/timeline.ts';
import { native } from '../../native/addon.ts';
import type { FromInferenceThread, ToInferenceThread } from './messages.ts';
import { patchAlpha, patchBytes } from './patch.ts';
import { PatchGenerator, measurePatchMs } from './patch-generator.ts';
import { Wav2LipFace } from './wav2lip-face.ts';
import { Wav2LipNetwork, Wav2LipRefused } from './wav2lip-network.ts';

/** After the media workers and the front where they want the same core, before offline jobs. */
const NICE = 5;

const init = workerData as Wav2LipInit;
const post = (message: FromInferenceThread): void => {
  init.port.postMessage(message);
};

native.setThreadName('mp-inference');
// On Linux this sets the calling thread alone, and those that it starts later: the network's.
os.setPriority(native.threadId(), NICE);

interface OpenSession {
  readonly generator: PatchGenerator;
  /** Shared with the media worker. */
  readonly patches: readonly Uint8Array[];
}

const sessions = new Map<number, OpenSession>();

async function load(): Promise<{ network: Wav2LipNetwork; msPerFrame: number }> {
  const network = await Wav2LipNetwork.load(init.file, init.providers, init.threads);
  const face = new Wav2LipFace(new Uint8Array(init.face), network.side);
  const msPerFrame =
    init.knownCost === undefined
      ? await measurePatchMs(network, face, init.maxFrameMs)
      : (init.knownCost * 1000) / (init.threads * FPS);
  return { network, msPerFrame };
}

function open(
  { id, face: bytes, slots }: ToInferenceThread & { readonly type: 'open' },
  network: Wav2LipNetwork,
): void {
  const face = new Wav2LipFace(new Uint8Array(bytes), network.side);
  const size = patchBytes(face.box);
  const patches = new SharedArrayBuffer(slots * size);
  sessions.set(id, {
    generator: new PatchGenerator(face, network),
    patches: Array.from({ length: slots }, (_, slot) => new Uint8Array(patches, slot * size, size)),
  });
  post({ type: 'opened', id, box: face.box, alpha: patchAlpha(face.box), patches });
}

async function takeSpeech(
  message: ToInferenceThread & { readonly type: 'speech' },
  msPerFrame: number,
): Promise<void> {
  const { id, isUtteranceStart, pcm, requests } = message;
  const session = sessions.get(id);
  if (session === undefined) {
    return;
  }
  const { generator, patches } = session;
  if (isUtteranceStart) {
    generator.reset();
  }
  generator.pushAudio(pcm);
  for (const { slot, backMs, dueMs } of requests) {
    const startMs = monotonicMs();
    // A patch that comes too late would only delay the next ones. A network slower than a frame
    // must still be allowed to begin, so no more than a frame is asked for.
    const isInTime = startMs + Math.min(msPerFrame, FRAME_MS) <= dueMs;
    if (isInTime) {
      await generator.make(backMs, patches[slot]!);
    }
    post({ type: 'patch', id, slot, tookMs: isInTime ? monotonicMs() - startMs : undefined });
  }
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

try {
  const { network, msPerFrame } = await load();
  let last: Promise<void> = Promise.resolve();
  init.port.on(
    'message',
    guarded('a message to the inference thread', (message: ToInferenceThread) => {
      last = last
        .then(async () => {
          if (message.type === 'open') {
            open(message, network);
          } else if (message.type === 'speech') {
            await takeSpeech(message, msPerFrame);
          } else {
            sessions.delete(message.id);
          }
        })
        .catch((error: unknown) => {
          post({ type: 'failed', id: message.id, why: textOf(error) });
        });
    }),
  );
  init.port.on('close', () => {
    sessions.clear();
  });
  post({ type: 'ready', msPerFrame, threads: init.threads });
} catch (error) {
  post({
    type: 'refused',
    why: textOf(error),
    isDefect: !(error instanceof Wav2LipRefused),
  });
  init.port.close();
}

// The inference thread of a media worker: hears the speech of its sessions with a network of their own and makes their mouths, one after another.
//
// The front starts it, not the media worker, whose end would end it at once: onnxruntime-node aborts the process when that happens in the middle of a run.
// Instead the port between the two closes, and the thread ends when there is nothing left to do.
import os from 'node:os';
import { workerData } from 'node:worker_threads';
import { guarded } from '../../base/guard.ts';
import { monotonicMs } from '../../base/time.ts';
import { FRAME_MS } from '../../media/timeline.ts';
import { native } from '../../native/addon.ts';
import { Wav2LipFace, alphaOf, patchBytes } from './face.ts';
import type { Wav2LipInit } from '../../link/worker-init.ts';
import type { FromInferenceThread, ToInferenceThread } from './messages.ts';
import { InferenceClient, measureInference } from './inference-client.ts';
import { Wav2LipNetwork, Wav2LipRefused } from './network.ts';

/** Behind the media workers and the front wherever they want the same core, before offline work. */
const NICE = 5;

const birth = workerData as Wav2LipInit;
const post = (message: FromInferenceThread): void => {
  birth.port.postMessage(message);
};

native.setThreadName('mp-mouths');
os.setPriority(native.threadId(), NICE); // on Linux this moves the calling thread alone, and those it starts: the network's own

interface Seat {
  readonly mouth: InferenceClient;
  readonly patches: readonly Uint8Array[];
}

const seats = new Map<number, Seat>();

async function load(): Promise<{ network: Wav2LipNetwork; msPerFrame: number }> {
  const network = await Wav2LipNetwork.load(birth.file, birth.providers, birth.threads);
  return {
    network,
    msPerFrame: await measureInference(
      network,
      new Wav2LipFace(new Uint8Array(birth.face), network.side),
      birth.maxFrameMs,
    ),
  };
}

function open(
  { id, face: bytes, slots }: ToInferenceThread & { readonly type: 'open' },
  network: Wav2LipNetwork,
): void {
  const face = new Wav2LipFace(new Uint8Array(bytes), network.side);
  const size = patchBytes(face.box);
  const patches = new SharedArrayBuffer(slots * size);
  seats.set(id, {
    mouth: new InferenceClient(face, network),
    patches: Array.from({ length: slots }, (_, slot) => new Uint8Array(patches, slot * size, size)),
  });
  post({ type: 'opened', id, box: face.box, alpha: alphaOf(face.box), patches });
}

async function hear(
  { id, isNew, pcm, wanted }: ToInferenceThread & { readonly type: 'hear' },
  msPerFrame: number,
): Promise<void> {
  const seat = seats.get(id);
  if (seat === undefined) {
    return;
  }
  if (isNew) {
    seat.mouth.reset();
  }
  seat.mouth.hear(pcm);
  for (const { slot, backMs, dueMs } of wanted) {
    const startMs = monotonicMs();
    // One that comes too late only makes the next ones late. (Slower than a frame is no reason never to begin.)
    const isInTime = startMs + Math.min(msPerFrame, FRAME_MS) <= dueMs;
    if (isInTime) {
      await seat.mouth.make(backMs, seat.patches[slot]!);
    }
    post({ type: 'made', id, slot, tookMs: isInTime ? monotonicMs() - startMs : undefined });
  }
}

try {
  const { network, msPerFrame } = await load();
  let last: Promise<void> = Promise.resolve();
  birth.port.on(
    'message',
    guarded('a message to the inference thread', (message: ToInferenceThread) => {
      last = last
        .then(async () => {
          if (message.type === 'open') {
            open(message, network);
          } else if (message.type === 'hear') {
            await hear(message, msPerFrame);
          } else {
            seats.delete(message.id);
          }
        })
        .catch((error: unknown) => {
          post({
            type: 'failed',
            id: message.id,
            why: error instanceof Error ? error.message : String(error),
          });
        });
    }),
  );
  birth.port.on('close', () => {
    seats.clear();
  });
  post({ type: 'ready', msPerFrame, threads: birth.threads });
} catch (error) {
  post({
    type: 'refused',
    why: error instanceof Error ? error.message : String(error),
    isDefect: !(error instanceof Wav2LipRefused),
  });
  birth.port.close();
}

// A media worker's end of the port to its inference thread. onnxruntime-node runs a network on the
// thread that calls it, however long it takes: so a thread other than the worker calls it.
import type { MessagePort } from 'node:worker_threads';
import { guarded } from '../../base/guard.ts';
import { FPS } from '../../media/timeline.ts';
import type { FrameRequest, FromInferenceThread, ToInferenceThread } from './messages.ts';
import { Wav2LipRefused } from './wav2lip-network.ts';

/** What the inference thread tells one session. */
export interface InferenceClientListener {
  opened(message: FromInferenceThread & { readonly type: 'opened' }): void;
  /** The request for `slot` is done; `tookMs` is undefined when no patch was made. */
  patchDone(slot: number, tookMs: number | undefined): void;
  /** The session gets no more patches. */
  failed(why: string): void;
}

type SessionMessage = Exclude<FromInferenceThread, { type: 'ready' | 'refused' }>;

const GONE = 'The inference thread of WAV2LIP_MODEL has ended.';

/** One per media worker, for all its sessions. */
export class InferenceClient {
  /** Share of a core that one speaking session's network takes, as measured when it was loaded. */
  readonly costPerSession: number;

  readonly #port: MessagePort;
  readonly #listeners = new Map<number, InferenceClientListener>();
  #nextId = 0;
  #isGone = false;

  private constructor(port: MessagePort, costPerSession: number) {
    this.#port = port;
    this.costPerSession = costPerSession;
    port.on(
      'message',
      guarded('an answer of the inference thread', (message: SessionMessage) => {
        this.#receive(message);
      }),
    );
    port.once('close', () => {
      this.#isGone = true;
      for (const listener of [...this.#listeners.values()]) {
        guarded('the end of the inference thread', () => {
          listener.failed(GONE);
        })();
      }
    });
  }

  /**
   * Waits until the thread at the other end of `port` (inference-thread.ts) has loaded and timed
   * the network.
   * @throws Wav2LipRefused when the network's shapes do not fit, its output is not a picture, or it
   *   cannot hold the frame rate here; Error when the thread fails
   */
  static async connect(port: MessagePort): Promise<InferenceClient> {
    const first = await new Promise<FromInferenceThread | undefined>((resolve) => {
      port.once('message', resolve);
      port.once('close', () => {
        resolve(undefined);
      });
    });
    if (first?.type === 'ready') {
      return new InferenceClient(port, (first.msPerFrame * first.threads * FPS) / 1000);
    }
    if (first?.type === 'refused') {
      throw first.isDefect ? new Error(first.why) : new Wav2LipRefused(first.why);
    }
    throw new Error(GONE);
  }

  /**
   * @param face a face asset file
   * @param slots patches in shared memory
   * @returns the session's id
   * @throws Error when the thread has ended
   */
  open(face: SharedArrayBuffer, slots: number, listener: InferenceClientListener): number {
    if (this.#isGone) {
      throw new Error(GONE);
    }
    const id = this.#nextId;
    this.#nextId++;
    this.#listeners.set(id, listener);
    this.#post({ type: 'open', id, face, slots });
    return id;
  }

  /** Sends the next speech of a session and requests the patches that can be made with it. */
  sendSpeech(
    id: number,
    isUtteranceStart: boolean,
    pcm: Int16Array,
    requests: readonly FrameRequest[],
  ): void {
    this.#post({ type: 'speech', id, isUtteranceStart, pcm, requests });
  }

  /** The session is over. Idempotent. */
  close(id: number): void {
    if (this.#listeners.delete(id)) {
      this.#post({ type: 'close', id });
    }
  }

  /** Ends the thread after the patch that it is working on. */
  stop(): void {
    this.#listeners.clear();
    this.#port.close();
  }

  #receive(message: SessionMessage): void {
    const listener = this.#listeners.get(message.id);
    if (message.type === 'opened') {
      listener?.opened(message);
    } else if (message.type === 'patch') {
      listener?.patchDone(message.slot, message.tookMs);
    } else {
      listener?.failed(message.why);
    }
  }

  #post(message: ToInferenceThread): void {
    this.#port.postMessage(message);
  }
}

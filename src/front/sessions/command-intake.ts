// The commands of one session: each goes to the marks of its speech, or to the worker.
import { toWireError } from '../../base/errors.ts';
import { monotonicMs } from '../../base/time.ts';
import { TokenBucket } from '../../base/token-bucket.ts';
import type { ToWorker } from '../../link/messages.ts';
import type { Command } from './commands.ts';
import type { ServerMessage } from './server-messages.ts';
import type { SpeechMarks } from './speech-marks.ts';

/** @throws ServiceError when the face does not exist or is not ready */
export type LoadFace = (faceId: string) => Promise<SharedArrayBuffer>;

type FaceOrder = Extract<ToWorker, { readonly type: 'command' | 'face' }>;
/** For the worker of the session. */
type Order = {
  [Type in FaceOrder['type']]: Omit<Extract<FaceOrder, { readonly type: Type }>, 'sessionId'>;
}[FaceOrder['type']];

/** What the commands are obeyed with. */
export interface CommandIntakeOptions {
  readonly marks: SpeechMarks;
  readonly loadFace: LoadFace;
  readonly post: (order: Order) => void;
  readonly tell: (message: ServerMessage) => void;
}

/** Orders to the worker of one session. */
const ORDERS_PER_SECOND = 20;
const ORDER_BURST = 100;
/** A new face costs the main thread a file, and the worker its preparation: about 10 ms. */
const FACES_PER_SECOND = 0.5;
const FACE_BURST = 5;

/** Obeys the commands of one session. */
export class CommandIntake {
  readonly #options: CommandIntakeOptions;
  readonly #orders = new TokenBucket(ORDERS_PER_SECOND, ORDER_BURST, monotonicMs());
  readonly #faces = new TokenBucket(FACES_PER_SECOND, FACE_BURST, monotonicMs());
  /** The latest face that was asked for. */
  #faceId = '';

  constructor(options: CommandIntakeOptions) {
    this.#options = options;
  }

  obey(command: Command, nowMs: number): void {
    const { marks, tell, post } = this.#options;
    if (command.type === 'interrupt') {
      tell({ type: 'interrupted', ...marks.interrupt() });
      return;
    }
    const isTooMuch =
      command.type === 'flush'
        ? !marks.mark(command.id)
        : command.type === 'words'
          ? !marks.announce(command.words)
          : !(command.type === 'face' ? this.#faces : this.#orders).take(1, nowMs);
    if (isTooMuch) {
      const message = 'Too many of these commands. Send fewer.';
      tell({ type: 'rejected', command: command.type, message });
    } else if (command.type === 'face') {
      void this.#show(command.faceId);
    } else if (command.type !== 'flush' && command.type !== 'words') {
      post({ type: 'command', command });
    }
  }

  async #show(faceId: string): Promise<void> {
    const { loadFace, post, tell } = this.#options;
    this.#faceId = faceId;
    try {
      const bytes = await loadFace(faceId);
      if (this.#faceId === faceId) {
        post({ type: 'face', face: { faceId, bytes } });
      }
    } catch (error) {
      const { message } = toWireError(error);
      tell({ type: 'rejected', command: 'face', message });
    }
  }
}

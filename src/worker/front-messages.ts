// What the front asks of this worker: opens sessions, and passes each message on to its session.
import { toWireError } from '../base/errors.ts';
import type { FromWorker, SessionSpec, ToWorker } from '../link/messages.ts';
import type { ConversationState } from '../media/conversation-state.ts';
import type { FrameScheduler } from './frame-scheduler.ts';
import { reportOf } from './session-report.ts';
import type { WorkerContext } from './worker-context.ts';
import { WorkerSession } from './worker-session.ts';

type Open = ToWorker & { readonly type: 'open' };

/**
 * Handles the messages of the front to one worker. Messages to a session whose face is still being
 * prepared wait in order until the session is open.
 */
export class FrontMessages {
  readonly #context: WorkerContext;
  readonly #scheduler: FrameScheduler;
  readonly #stop: () => void;
  /** Sessions whose face is still being prepared, each with its messages so far. */
  readonly #opening = new Map<string, ToWorker[]>();

  /** @param stop called for the message `stop`, when all sessions have ended */
  constructor(context: WorkerContext, scheduler: FrameScheduler, stop: () => void) {
    this.#context = context;
    this.#scheduler = scheduler;
    this.#stop = stop;
  }

  /** A defect in the handling of a message is logged; a session that cannot be opened ends. */
  receive(message: ToWorker): void {
    const waiting = 'sessionId' in message ? this.#opening.get(message.sessionId) : undefined;
    if (waiting !== undefined) {
      waiting.push(message);
      return;
    }
    if (message.type === 'open' && !this.#context.faces.has(message.spec.face.faceId)) {
      void this.#openWithNewFace(message);
      return;
    }
    this.#handle(message);
  }

  async #openWithNewFace(message: Open): Promise<void> {
    const { sessionId, face } = message.spec;
    const waiting: ToWorker[] = [message];
    this.#opening.set(sessionId, waiting);
    // A malformed face is reported when the session takes it.
    await this.#context.faces.load(face.faceId, face.bytes).catch(() => {});
    this.#opening.delete(sessionId);
    for (const each of waiting) {
      this.#handle(each);
    }
  }

  #handle(message: ToWorker): void {
    try {
      this.#dispatch(message);
    } catch (error) {
      this.#log(undefined, `message '${message.type}' failed`, error);
      if (message.type === 'open') {
        const { sessionId } = message.spec;
        const reason = 'error';
        this.#post({ type: 'failed', sessionId, error: toWireError(error), reason });
        this.#post({ type: 'ended', sessionId, reason });
      }
    }
  }

  #dispatch(message: ToWorker): void {
    const scheduler = this.#scheduler;
    switch (message.type) {
      case 'open':
        scheduler.add(new WorkerSession(message.spec, this.#context));
        return;
      case 'offer': {
        const { sessionId, offer, spec } = message;
        scheduler
          .get(sessionId)
          ?.offer(offer, spec)
          .catch((error: unknown) => {
            this.#log(sessionId, 'offer failed', error);
          });
        return;
      }
      case 'makeOffer': {
        const { sessionId, spec } = message;
        scheduler
          .get(sessionId)
          ?.peers.makeOffer(spec)
          .catch((error: unknown) => {
            this.#log(sessionId, 'an offer of ours failed', error);
          });
        return;
      }
      case 'accept': {
        const { sessionId, answer, offerId } = message;
        scheduler
          .get(sessionId)
          ?.peers.accept(answer, offerId)
          .catch((error: unknown) => {
            this.#log(sessionId, 'an answer failed', error);
          });
        return;
      }
      case 'candidate':
        scheduler.get(message.sessionId)?.peers.addCandidate(message.candidate);
        return;
      case 'video':
        scheduler.get(message.sessionId)?.setVideoWanted(message.isWanted);
        return;
      case 'data':
        scheduler.get(message.sessionId)?.peers.sendData(message.data);
        return;
      case 'heed':
        scheduler.get(message.sessionId)?.peers.heed(message.identity);
        return;
      case 'dropPeer':
        scheduler.get(message.sessionId)?.peers.drop();
        return;
      case 'close': {
        const session = scheduler.get(message.sessionId);
        if (session !== undefined) {
          session.end(message.reason);
          scheduler.remove(session);
        }
        return;
      }
      case 'command':
        scheduler.get(message.sessionId)?.obey(message.command);
        return;
      case 'face':
        void this.#showFace(message.sessionId, message.face);
        return;
      case 'conversation':
        this.#setConversation(message.sessionId, message.state);
        return;
      case 'stats': {
        const { sessionId, requestId } = message;
        const session = scheduler.get(sessionId);
        const stats = session === undefined ? undefined : reportOf(session);
        this.#post({ type: 'stats', sessionId, requestId, stats });
        return;
      }
      case 'stop':
        for (const session of scheduler) {
          session.end('server_stopped');
        }
        scheduler.stop();
        this.#stop();
    }
  }

  /** Parses the face on another thread first. */
  async #showFace(sessionId: string, face: SessionSpec['face']): Promise<void> {
    try {
      await this.#context.faces.load(face.faceId, face.bytes);
      this.#scheduler.get(sessionId)?.showFace(face);
    } catch (error) {
      this.#log(sessionId, 'a face could not be shown', error);
    }
  }

  #setConversation(sessionId: string, state: ConversationState): void {
    const session = this.#scheduler.get(sessionId);
    if (session !== undefined) {
      session.state.conversation = state;
      session.frames.renderer.setConversation(state);
    }
  }

  #log(sessionId: string | undefined, message: string, error: unknown): void {
    const stack = error instanceof Error ? error.stack : undefined;
    const fields = { error: String(error), stack };
    this.#post({ type: 'log', level: 'error', sessionId, message, fields });
  }

  #post(message: FromWorker): void {
    this.#context.post(message);
  }
}

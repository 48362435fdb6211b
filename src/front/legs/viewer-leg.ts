// The viewer of a session that has an agent of its own: one peer connection at a time, negotiated
// over HTTP (WHEP) or over a socket. The viewer who comes last watches.
import { randomBytes } from 'node:crypto';
import { ServiceError } from '../../base/errors.ts';
import { after } from '../../base/guard.ts';
import { monotonicMs } from '../../base/time.ts';
import { TokenBucket } from '../../base/token-bucket.ts';
import type { AnswerMessage, RefusedOfferMessage } from '../../link/messages.ts';
import { readOffer } from '../sessions/offer-intake.ts';
import type { ServerMessage } from '../sessions/server-messages.ts';
import {
  type LinkedSession,
  type SessionLink,
  sendSessionFacts,
} from '../sessions/session-link.ts';
import { fragmentOf, parseFragment, ufragOf, withCredentialsOf } from './sdp-fragment.ts';

/** A viewer with a socket: what it is told. Both methods may be called after its close. */
export interface ViewerSocket {
  send(message: ServerMessage): void;
  /** No message follows. */
  end(): void;
}

/** What the leg is built from. */
export interface ViewerLegOptions {
  /** host:port of this server, as the viewer is told. */
  readonly destination: string;
  /** How long the session may be without a viewer. */
  readonly graceMs: number;
  /** A viewer came or left. */
  readonly onChange: (isConnected: boolean) => void;
  readonly onClosed: () => void;
}

/** An answer over HTTP. */
export interface WhepAnswer {
  /** Names the peer connection in its URL: nobody can guess it. */
  readonly id: string;
  /** Names the ICE session. */
  readonly etag: string;
  readonly sdp: string;
}

/** A viewer over HTTP, or one with a socket. */
type Viewer =
  | { readonly kind: 'whep'; readonly id: string; offer: string; generation: number }
  | { readonly kind: 'socket'; readonly socket: ViewerSocket };

/** Offers of one session: each costs the worker 2 to 4 ms. */
const OFFERS_PER_SECOND = 1;
const OFFER_BURST = 10;
/** The worker answers within milliseconds. */
const ANSWER_TIMEOUT_MS = 5000;

const etagOf = (generation: number): string => `"${generation}"`;

/** What a viewer is told of the session: all but the replies to its agent. */
const TOLD: ReadonlySet<ServerMessage['type']> = new Set([
  'speaking',
  'silent',
  'motion',
  'viseme',
  'word',
  'closing',
  'stopped',
  'error',
] satisfies ServerMessage['type'][]);

/** The viewers of one session, one after the other. */
export class ViewerLeg implements SessionLink {
  readonly kind = 'split';
  readonly takesOffers = false;
  readonly outlivesPeers = true;
  readonly noPeerReason = 'join_timeout';
  readonly peerWaitMs: number;

  readonly #options: ViewerLegOptions;
  readonly #offers = new TokenBucket(OFFERS_PER_SECOND, OFFER_BURST, monotonicMs());
  readonly #waiting = new Map<
    number,
    { readonly resolve: (sdp: string) => void; readonly reject: (error: Error) => void }
  >();
  /** Peer connections that gave way to another viewer. */
  readonly #replaced = new Set<string>();
  #session: LinkedSession | undefined = undefined;
  #viewer: Viewer | undefined = undefined;
  #lastOfferId = 0;
  #isConnected = false;

  constructor(options: ViewerLegOptions) {
    this.#options = options;
    this.peerWaitMs = options.graceMs;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  // ── over HTTP ──────────────────────────────────────────────────────────────────────────────────

  /**
   * Somebody wants to watch.
   * @throws ServiceError INVALID_OFFER, RATE_LIMITED
   */
  async watch(sdp: string): Promise<WhepAnswer> {
    this.#check(sdp);
    this.#replaceViewer();
    const id = randomBytes(16).toString('base64url');
    const viewer: Viewer = { kind: 'whep', id, offer: sdp, generation: 1 };
    this.#viewer = viewer;
    try {
      return { id, etag: etagOf(1), sdp: await this.#answerTo(sdp, true) };
    } catch (error) {
      this.#drop(viewer);
      throw error;
    }
  }

  /**
   * Candidates of a viewer, or new ICE credentials.
   * @param ifMatch the header If-Match; '' when absent
   * @returns undefined for candidates; the answer to a restart of ICE otherwise
   * @throws ServiceError NOT_FOUND, PRECONDITION_FAILED, PRECONDITION_REQUIRED, INVALID_OFFER
   */
  async patch(
    id: string,
    fragment: string,
    ifMatch: string,
  ): Promise<Omit<WhepAnswer, 'id'> | undefined> {
    const viewer = this.#find(id);
    const { ufrag, password, candidates } = parseFragment(fragment);
    const isRestart =
      ufrag !== undefined && password !== undefined && ufrag !== ufragOf(viewer.offer);
    if (isRestart) {
      if (ifMatch === '') {
        throw new ServiceError('PRECONDITION_REQUIRED');
      }
      if (ifMatch !== '*') {
        throw new ServiceError('PRECONDITION_FAILED', 'A restart of ICE needs If-Match: *.');
      }
      const offer = withCredentialsOf(viewer.offer, ufrag, password);
      this.#check(offer);
      const sdp = await this.#answerTo(offer, false);
      viewer.offer = offer;
      this.#candidates(candidates);
      return { etag: etagOf(++viewer.generation), sdp: fragmentOf(sdp) };
    }
    // Some clients send no If-Match with their candidates. A wrong one is of an older ICE session.
    if (ifMatch !== '' && ifMatch !== '*' && ifMatch !== etagOf(viewer.generation)) {
      throw new ServiceError(
        'PRECONDITION_FAILED',
        'If-Match does not name the present ICE session. Send candidates of it with the ETag of ' +
          'the last answer, and forget older ones.',
      );
    }
    this.#candidates(candidates);
    return undefined;
  }

  /** The viewer stops watching. @throws ServiceError NOT_FOUND */
  stop(id: string): void {
    this.#drop(this.#find(id));
  }

  #find(id: string): Viewer & { readonly kind: 'whep' } {
    const viewer = this.#viewer;
    if (viewer?.kind === 'whep' && viewer.id === id) {
      return viewer;
    }
    if (this.#replaced.has(id)) {
      throw new ServiceError('VIEWER_REPLACED');
    }
    throw new ServiceError('NOT_FOUND', 'This peer connection is over. POST another offer.');
  }

  #candidates(candidates: ReturnType<typeof parseFragment>['candidates']): void {
    for (const candidate of candidates) {
      this.#session?.tell({ type: 'candidate', candidate });
    }
  }

  // ── over a socket ──────────────────────────────────────────────────────────────────────────────

  /** An offer of a viewer with a socket; its first one takes the place of another viewer. */
  async offer(socket: ViewerSocket, sdp: string | undefined): Promise<void> {
    const isNew = this.#viewer?.kind !== 'socket' || this.#viewer.socket !== socket;
    try {
      this.#check(sdp);
      if (isNew) {
        this.#replaceViewer();
        this.#viewer = { kind: 'socket', socket };
      }
      socket.send({ type: 'answer', sdp: await this.#answerTo(sdp!, isNew) });
    } catch (error) {
      if (isNew) {
        const code = error instanceof ServiceError ? error.code : 'INTERNAL_ERROR';
        socket.send({
          type: 'error',
          code: code === 'RATE_LIMITED' ? code : 'INVALID_OFFER',
          message: (error as Error).message,
        });
        this.left(socket);
        socket.end();
      } else {
        socket.send({ type: 'rate', reason: 'offer_refused' });
      }
      return;
    }
    if (isNew) {
      const session = this.#session!;
      sendSessionFacts(
        {
          id: session.id,
          size: session.size,
          send: (message) => {
            socket.send(message);
          },
        },
        this.#options.destination,
      );
    }
  }

  /** The socket of a viewer closed. */
  left(socket: ViewerSocket): void {
    const viewer = this.#viewer;
    if (viewer?.kind === 'socket' && viewer.socket === socket) {
      this.#drop(viewer);
    }
  }

  // ── both ───────────────────────────────────────────────────────────────────────────────────────

  /** @throws ServiceError before anything has changed */
  #check(sdp: string | undefined): void {
    if (!this.#offers.take(1, monotonicMs())) {
      throw new ServiceError('RATE_LIMITED', undefined, 1 / OFFERS_PER_SECOND);
    }
    const read = readOffer(sdp);
    if ('refusal' in read) {
      throw new ServiceError(read.refusal.code, read.refusal.message);
    }
  }

  #replaceViewer(): void {
    const viewer = this.#viewer;
    if (viewer === undefined) {
      return;
    }
    this.#drop(viewer);
    if (viewer.kind === 'whep') {
      this.#replaced.add(viewer.id);
    } else {
      viewer.socket.send({ type: 'stopped', reason: 'taken_over' });
      viewer.socket.end();
    }
  }

  #drop(viewer: Viewer): void {
    if (this.#viewer === viewer) {
      this.#viewer = undefined;
      this.#rejectAll('Another offer came, or the viewer left.');
      this.#session?.dropPeer();
      this.#changed(false);
    }
  }

  #rejectAll(why: string): void {
    for (const { reject } of this.#waiting.values()) {
      reject(new ServiceError('NOT_FOUND', why));
    }
  }

  #changed(isConnected: boolean): void {
    if (this.#isConnected !== isConnected) {
      this.#isConnected = isConnected;
      this.#options.onChange(isConnected);
    }
  }

  async #answerTo(sdp: string, isNewPeer: boolean): Promise<string> {
    const offerId = ++this.#lastOfferId;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise((resolve, reject) => {
        this.#waiting.set(offerId, { resolve, reject });
        timer = after(ANSWER_TIMEOUT_MS, 'the wait for an answer', () => {
          reject(new ServiceError('WORKER_LOST'));
        });
        this.#session!.offer(sdp, { offerId, isNewPeer });
      });
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(offerId);
    }
  }

  // ── the session ────────────────────────────────────────────────────────────────────────────────

  open(session: LinkedSession): void {
    this.#session = session;
  }

  answered({ sdp, offerId }: AnswerMessage): void {
    this.#waiting.get(offerId)?.resolve(sdp);
  }

  refused({ offerId, error }: RefusedOfferMessage): void {
    this.#waiting.get(offerId)?.reject(new ServiceError(error.code, error.message));
  }

  connected(): void {
    if (this.#viewer?.kind === 'socket') {
      this.#viewer.socket.send({ type: 'started' });
    }
    this.#changed(true);
  }

  peerLost(): void {
    const viewer = this.#viewer;
    this.#viewer = undefined;
    this.#changed(false);
    if (viewer?.kind === 'socket') {
      viewer.socket.send({ type: 'error', code: 'PEER_LOST' });
      viewer.socket.end();
    }
  }

  /** A message of the session, for the viewer too. */
  tell(message: ServerMessage): void {
    if (this.#viewer?.kind === 'socket' && TOLD.has(message.type)) {
      this.#viewer.socket.send(message);
    }
  }

  close(): void {
    this.#rejectAll('The session is over.');
    if (this.#viewer?.kind === 'socket') {
      this.#viewer.socket.end();
    }
    this.#viewer = undefined;
    this.#options.onClosed();
  }

  offered(): void {}
  data(): void {}
  peerSilent(): void {}
  speaking(): void {}
}

// The signalling of one session: offers of the client or of its link go to the worker, and the
// worker's answers to the link.
import type { WireError } from '../../base/errors.ts';
import type { FromWorker, LocalOfferSpec, OfferSpec, ToWorker } from '../../link/messages.ts';
import { FIRST_OFFER, OfferIntake, readOffer } from './offer-intake.ts';
import type { PeerProgress } from './peer-progress.ts';
import type { MediaServerMessage, SessionLink } from './session-link.ts';

/** What the worker says about the peer connection. */
export type SignallingMessage = Extract<
  FromWorker,
  { type: 'answer' | 'localOffer' | 'data' | 'peerSilent' | 'offerRefused' | 'peerLost' }
>;

/** What the signalling of one session is built from. */
export interface SessionSignallingOptions {
  readonly sessionId: string;
  readonly link: SessionLink;
  readonly progress: PeerProgress;
  /** When the session was asked for, monotonic. */
  readonly openedMs: number;
  readonly post: (message: ToWorker) => void;
  /** The offer that the session begins with cannot be used: the session ends. */
  readonly onRefusal: (error: WireError) => void;
}

/** Passes on what connects the session to its peers. Nothing is passed on after its end. */
export class SessionSignalling {
  readonly #options: SessionSignallingOptions;
  readonly #offers: OfferIntake;

  constructor(options: SessionSignallingOptions) {
    this.#options = options;
    this.#offers = new OfferIntake(options.openedMs);
  }

  /**
   * An offer that came over the socket of the session.
   * @returns false when there are too many: it is dropped
   */
  clientOffer(sdp: string | undefined, nowMs: number): boolean {
    const isFirst = this.#options.progress.phase === 'waiting';
    const spec = isFirst ? FIRST_OFFER : this.#offers.next(nowMs);
    if (spec !== undefined) {
      this.offer(sdp, spec);
    }
    return spec !== undefined;
  }

  /** Parses the offer here: unlike the worker, this thread has no frame deadlines. */
  offer(sdp: string | undefined, spec: OfferSpec): void {
    const { link, progress, sessionId, post, onRefusal } = this.#options;
    if (progress.phase === 'over') {
      return;
    }
    const read = readOffer(sdp);
    if (!('refusal' in read)) {
      if (spec.isNewPeer) {
        progress.begin();
      }
      post({ type: 'offer', sessionId, offer: read.offer, spec });
    } else if (link.outlivesPeers || !spec.isNewPeer) {
      const { offerId } = spec;
      link.refused({ type: 'offerRefused', sessionId, offerId, error: read.refusal });
    } else {
      onRefusal(read.refusal);
    }
  }

  /** Asks for an offer of ours, to a media server. */
  makeOffer(spec: LocalOfferSpec): void {
    const { progress, sessionId, post } = this.#options;
    if (progress.phase === 'over') {
      return;
    }
    if (spec.isNewPeer) {
      progress.begin();
    }
    post({ type: 'makeOffer', sessionId, spec });
  }

  /** Passes on what the media server says. */
  tell(message: MediaServerMessage): void {
    const { progress, sessionId, post } = this.#options;
    if (progress.phase !== 'over') {
      post({ ...message, sessionId });
    }
    if (message.type === 'accept') {
      progress.acceptedAnswer();
    }
  }

  /** Closes the peer. Another one may come. */
  dropPeer(): void {
    const { progress, sessionId, post } = this.#options;
    if (progress.phase === 'over' || progress.phase === 'waiting') {
      return;
    }
    post({ type: 'dropPeer', sessionId });
    progress.lost();
  }

  /** Handles what the worker says about the peer connection. */
  receive(message: SignallingMessage): void {
    const { link, progress } = this.#options;
    switch (message.type) {
      case 'answer':
        progress.answered();
        link.answered(message);
        return;
      case 'localOffer':
        link.offered(message);
        return;
      case 'data':
        link.data(message.data);
        return;
      case 'peerSilent':
        link.peerSilent();
        return;
      case 'offerRefused':
        link.refused(message);
        return;
      case 'peerLost':
        // Speech that was not played waits in the ring.
        progress.lost();
        link.peerLost();
        return;
      default:
    }
  }
}

// How the peer connection of a session is negotiated: over the socket of the session itself, or in a
// LiveKit room.
import { FIRST_OFFER } from './offer-intake.ts';
import type { EndReason } from '../../base/session-ends.ts';
import type { SessionKind } from '../../base/session-kinds.ts';
import type {
  AnswerMessage,
  LocalOfferMessage,
  LocalOfferSpec,
  OfferSpec,
  RefusedOfferMessage,
  SessionSpec,
} from '../../link/messages.ts';
import type { PictureSize } from '../../media/face-look.ts';
import { FPS } from '../../media/timeline.ts';
import type { RemoteCandidate } from '../../webrtc/sdp/candidate.ts';
import type { Answer } from '../../webrtc/sdp/offer.ts';
import type { ServerMessage } from './server-messages.ts';

/** What a media server says, for the worker. */
export type MediaServerMessage =
  | { readonly type: 'accept'; readonly answer: Answer; readonly offerId: number }
  | { readonly type: 'candidate'; readonly candidate: RemoteCandidate }
  | { readonly type: 'video'; readonly isWanted: boolean }
  /** A message for the others in the room. */
  | { readonly type: 'data'; readonly data: Uint8Array }
  /** Whose messages in the room count. */
  | { readonly type: 'heed'; readonly identity: string };

/** The speech of a session. Positions count samples at SPEECH_RATE, modulo 2^32. */
export interface SpeechPort {
  /** PCM16 at SPEECH_RATE, mono. @returns false when some of it was dropped */
  push(bytes: Uint8Array): boolean;
  /** Drops what has not been heard. */
  flush(): void;
  readonly writtenPosition: number;
  readonly heardPosition: number;
}

/** A session as its link sees it. */
export interface LinkedSession {
  readonly id: string;
  /** Of its pictures. */
  readonly size: PictureSize;
  /** Sends a message over the socket of the session. */
  send(message: ServerMessage): void;
  /**
   * Passes an offer on to the worker. An offer that cannot be parsed ends the session, or comes
   * back to `refused` where the session outlives its peers.
   * @param sdp undefined: it was too long to be read
   */
  offer(sdp: string | undefined, spec?: OfferSpec): void;
  /** Asks the worker for an offer of ours, to a media server; it comes to `offered`. */
  makeOffer(spec: LocalOfferSpec): void;
  /** Passes on what the media server answered, or that nobody looks. */
  tell(message: MediaServerMessage): void;
  /** Speech that arrived through the room, and where the listener is. */
  readonly speech: SpeechPort;
  /** The viewer left: closes the peer. Another one may come. */
  dropPeer(): void;
  end(reason: EndReason): void;
}

/** The link of one session. */
export interface SessionLink {
  readonly kind: SessionKind;
  /** Whether offers arrive over the socket of the session. */
  readonly takesOffers: boolean;
  /** Whether the session goes on when its peer is lost, and waits for another one. */
  readonly outlivesPeers: boolean;
  /** How long the session may be without a peer; default: OFFER_TIMEOUT_MS. */
  readonly peerWaitMs?: number;
  /** Why the session ends when no peer comes in time. */
  readonly noPeerReason: EndReason;
  /** The session has been placed on a worker. */
  open(session: LinkedSession): void;
  /** The worker answered an offer. */
  answered(answer: AnswerMessage): void;
  /** The offer that the worker was asked for. */
  offered(offer: LocalOfferMessage): void;
  /** Media can flow. */
  connected(): void;
  /** A message of somebody in the room. */
  data(message: Uint8Array): void;
  /** Nothing has been heard of the peer for some seconds. */
  peerSilent(): void;
  /** An offer could not be answered; the session goes on. The first only where `outlivesPeers`. */
  refused(refusal: RefusedOfferMessage): void;
  /** The peer is lost. Only where `outlivesPeers`. */
  peerLost(): void;
  /** The face begins or ceases to speak. */
  speaking(isSpeaking: boolean): void;
  /** The session is over, and its client was told. */
  close(reason: EndReason): void;
}

/** What the worker must know of a link. */
export const workerSpecOf = ({
  kind,
  outlivesPeers,
}: SessionLink): Pick<SessionSpec, 'outlivesPeers' | 'delaysFrames' | 'ignoresMicrophone'> => ({
  outlivesPeers,
  ignoresMicrophone: kind === 'split',
  // The room of an agent is on somebody else's server.
  delaysFrames: kind === 'agent',
});

/** Says where the session runs: part of what every link tells its client. */
export function sendSessionFacts(
  session: Pick<LinkedSession, 'id' | 'send' | 'size'>,
  destination: string,
): void {
  session.send({ type: 'session', destination, session_id: session.id });
  session.send({ type: 'video', fps: FPS, ...session.size });
}

/** WSS /compose/webrtc/p2p: offers and answers over the socket of the session. */
export class PeerToPeerLink implements SessionLink {
  readonly kind = 'p2p';
  readonly takesOffers = true;
  readonly outlivesPeers = false;
  readonly noPeerReason = 'offer_timeout';
  readonly #destination: string;
  #session: LinkedSession | undefined = undefined;

  /** @param destination host:port of this server, as the client is told */
  constructor(destination: string) {
    this.#destination = destination;
  }

  open(session: LinkedSession): void {
    this.#session = session;
  }

  answered({ sdp, offerId }: AnswerMessage): void {
    const session = this.#session!;
    session.send({ type: 'answer', sdp });
    if (offerId === FIRST_OFFER.offerId) {
      sendSessionFacts(session, this.#destination);
    }
  }

  /** A further offer: the connection goes on as it was. */
  refused(): void {
    this.#session!.send({ type: 'rate', reason: 'offer_refused' });
  }

  offered(): void {}
  connected(): void {}
  data(): void {}
  peerSilent(): void {}
  peerLost(): void {}
  speaking(): void {}
  close(): void {}
}

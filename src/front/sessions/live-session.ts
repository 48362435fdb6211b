// One live session on the main thread: its state machine, from the offer to its end. Its I/O is
// handed in.
import type { Logger } from '../../base/log.ts';
import type { EndReason } from '../../base/session-ends.ts';
import { monotonicMs } from '../../base/time.ts';
import type {
  FromWorker,
  LocalOfferSpec,
  SessionSpec,
  SessionStatsReport,
} from '../../link/messages.ts';
import type { ConversationState } from '../../media/conversation-state.ts';
import { assetSize } from '../../media/face-asset-size.ts';
import type { PictureSize } from '../../media/face-look.ts';
import { pictureWeight } from '../../media/picture.ts';
import type { AttachedSession } from '../placement/worker-handle.ts';
import type { AudioIngress } from './audio-ingress.ts';
import { CommandIntake, type LoadFace } from './command-intake.ts';
import { type ClientPort, RateNotices } from './client-port.ts';
import type { ConversationHost, OpenConversation } from './conversation-port.ts';
import { FIRST_OFFER } from './offer-intake.ts';
import {
  type LinkedSession,
  type MediaServerMessage,
  type SessionLink,
  workerSpecOf,
} from './session-link.ts';
import { OFFER_TIMEOUT_MS, PeerProgress } from './peer-progress.ts';
import type { SocketTally, StepMeter } from './session-meter.ts';
import type { SessionPhase, SessionWorker } from './session-ports.ts';
import { SessionSignalling } from './session-signalling.ts';
import { SpeechIntake } from './speech-intake.ts';
import { SpeechMarks } from './speech-marks.ts';
import { StatsRequests } from './stats-requests.ts';
import type { SessionSpan } from '../tracing/tracing.ts';
import {
  type RateMessage,
  type ServerMessage,
  endMessage,
  errorMessage,
  motionMessage,
} from './server-messages.ts';
import { parseClientMessage } from './wire-protocol.ts';

/** What a session is given by the session service. */
export interface LiveSessionOptions {
  readonly id: string;
  readonly client: ClientPort;
  readonly worker: SessionWorker;
  /** The spec for the worker, without what the session adds. */
  readonly spec: Omit<SessionSpec, 'sessionId' | 'speechRing' | 'outlivesPeers'>;
  /** The conversation that the session holds; the session ends it. */
  readonly conversation: OpenConversation | undefined;
  /** Takes the audio messages; the session closes it. */
  readonly ingress: AudioIngress;
  /** Negotiates the peer connection; the session closes it. */
  readonly link: SessionLink;
  /** Loads another face of the owner. */
  readonly loadFace: LoadFace;
  readonly log: Logger;
  readonly tally: SocketTally;
  readonly step: StepMeter;
  /** Undefined: the session is not traced. */
  readonly span?: SessionSpan | undefined;
  /** When the socket opened, monotonic. */
  readonly openedMs: number;
  /** Called once, after the client was told the end. */
  readonly onEnd: (session: LiveSession, reason: EndReason) => void;
}

/** The session of one client. It is attached to its worker from its construction to its end. */
export class LiveSession implements AttachedSession, LinkedSession, ConversationHost {
  readonly id: string;
  readonly renderer: string;
  readonly size: PictureSize;
  readonly weight: number;
  readonly openedMs: number;
  isSpeaking = false;
  readonly speech: SpeechIntake;

  readonly #options: LiveSessionOptions;
  readonly #ingress: AudioIngress;
  readonly #progress: PeerProgress;
  readonly #signalling: SessionSignalling;
  readonly #marks: SpeechMarks;
  readonly #commands: CommandIntake;
  #failure: ServerMessage | undefined = undefined;
  readonly #rateNotices: RateNotices;
  #ignored = 0;
  /** Times that the face began to speak. */
  #utterance = 0;
  readonly #stats = new StatsRequests();

  constructor(options: LiveSessionOptions) {
    this.#options = options;
    this.id = options.id;
    this.openedMs = options.openedMs;
    this.#ingress = options.ingress;
    this.speech = new SpeechIntake(options.ingress, options.tally);
    this.#marks = new SpeechMarks(this.speech, (message) => {
      this.send(message);
    });
    this.#commands = new CommandIntake({
      marks: this.#marks,
      tell: (message) => {
        this.send(message);
      },
      loadFace: options.loadFace,
      post: (message) => {
        if (this.phase !== 'over') {
          options.worker.post({ ...message, sessionId: this.id });
        }
      },
    });
    this.#rateNotices = new RateNotices(options.client);
    this.#progress = new PeerProgress({
      openedMs: options.openedMs,
      waitMs: options.link.peerWaitMs ?? OFFER_TIMEOUT_MS,
      step: options.step,
      onTimeout: () => {
        this.end(options.link.noPeerReason);
      },
    });
    this.#signalling = new SessionSignalling({
      sessionId: options.id,
      link: options.link,
      progress: this.#progress,
      openedMs: options.openedMs,
      post: (message) => {
        options.worker.post(message);
      },
      onRefusal: (error) => {
        this.#failure = errorMessage(error);
        this.end('invalid_offer');
      },
    });
    this.renderer = options.spec.renderer;
    this.size = assetSize(options.spec.face.bytes);
    this.weight = pictureWeight(this.size);
    options.worker.attach(this);
    options.worker.post({
      type: 'open',
      spec: {
        ...options.spec,
        sessionId: this.id,
        speechRing: this.#ingress.memory,
        ...workerSpecOf(options.link),
        microphoneRing: options.conversation?.microphoneRing,
      },
    });
    options.link.open(this);
  }

  get phase(): SessionPhase {
    return this.#progress.phase;
  }

  get isLive(): boolean {
    return this.phase === 'live';
  }

  /** Messages without a meaning. */
  get ignoredMessages(): number {
    return this.#ignored + this.#ingress.invalidMessages;
  }

  // ── from the client ────────────────────────────────────────────────────────────────────────────

  /** Handles one message of the client. @param message valid only during the call */
  message(message: ArrayBuffer, isBinary: boolean): void {
    if (this.phase === 'over') {
      return;
    }
    const nowMs = monotonicMs();
    const parsed = parseClientMessage(message, isBinary, this.#options.link.takesOffers);
    this.#options.tally.received(parsed.kind, message.byteLength);
    switch (parsed.kind) {
      case 'audio':
        this.#audio(parsed.bytes, nowMs);
        return;
      case 'playImmediate':
        this.#marks.interrupt();
        this.#audio(parsed.bytes, nowMs);
        return;
      case 'skip':
        this.#marks.interrupt();
        return;
      case 'command':
        this.#commands.obey(parsed.command, nowMs);
        return;
      case 'wrongCommand':
        this.send({ type: 'rejected', command: parsed.type, message: parsed.problem });
        return;
      case 'done':
        this.#ingress.done();
        // Without a peer nothing will be played; the guest of a conversation hangs up.
        if (this.phase === 'waiting' || this.#options.conversation !== undefined) {
          this.end('done');
        }
        return;
      case 'ping':
        this.send({ type: 'pong', payload: parsed.payload });
        return;
      case 'offer':
        if (!this.#signalling.clientOffer(parsed.sdp, nowMs)) {
          this.tellRate({ type: 'rate', reason: 'offer_refused' }, nowMs);
        }
        return;
      default:
        this.#ignored++;
    }
  }

  #audio(bytes: Uint8Array, nowMs: number): void {
    const isWhole = this.speech.push(bytes, nowMs);
    this.send({ type: 'ack' });
    if (!isWhole) {
      this.tellRate({ type: 'rate', reason: 'audio_backlog_full' }, nowMs);
    }
  }

  /** Tells the client that some of its messages or audio are dropped, at most once a second. */
  tellRate(message: RateMessage, nowMs: number): void {
    if (this.phase !== 'over') {
      this.#rateNotices.tell(message, nowMs);
    }
  }

  offer(sdp: string | undefined, spec = FIRST_OFFER): void {
    this.#signalling.offer(sdp, spec);
  }

  makeOffer(spec: LocalOfferSpec): void {
    this.#signalling.makeOffer(spec);
  }

  tell(message: MediaServerMessage): void {
    this.#signalling.tell(message);
  }

  dropPeer(): void {
    this.#signalling.dropPeer();
  }

  /** The socket closed. */
  closed(): void {
    this.end('client_closed');
  }

  // ── from the worker ────────────────────────────────────────────────────────────────────────────

  /** Handles one message of the worker. */
  receive(message: Extract<FromWorker, { sessionId: string }>): void {
    if (this.phase === 'over') {
      return;
    }
    const { log, link } = this.#options;
    switch (message.type) {
      case 'peerLost':
        log.info({ reason: message.reason }, 'the peer of a session was lost');
        this.#signalling.receive(message);
        return;
      case 'connected':
        this.#connected(message);
        return;
      case 'firstFrame':
        this.#progress.firstFrame(message.atMs);
        return;
      case 'lips':
        this.#options.span?.spoke(message);
        return;
      case 'speak':
      case 'silent':
        this.isSpeaking = message.type === 'speak';
        this.#utterance += Number(this.isSpeaking);
        this.send({ type: this.isSpeaking ? 'speaking' : 'silent', utterance: this.#utterance });
        link.speaking(this.isSpeaking);
        return;
      case 'motion':
        this.send(motionMessage(message.rtp, message.weights));
        return;
      case 'viseme':
        this.send({ type: 'viseme', rtp: message.rtp, viseme: message.viseme });
        return;
      case 'faceShown':
        this.send({ type: 'face', faceId: message.faceId });
        return;
      case 'failed':
        this.#failure = errorMessage(message.error);
        return;
      case 'stats':
        this.#stats.answered(message.requestId, message.stats);
        return;
      case 'ended':
        this.#finish(message.reason);
        return;
      case 'answer':
      case 'localOffer':
      case 'offerRefused':
      case 'peerSilent':
      case 'data':
        this.#signalling.receive(message);
        return;
      default:
    }
  }

  #connected(message: Extract<FromWorker, { type: 'connected' }>): void {
    const connected = this.#progress.connected(message);
    if (connected === undefined) {
      return;
    }
    const { log, conversation, link } = this.#options;
    log.info({ setupMs: connected.setupMs }, 'session connected');
    if (connected.isFirst) {
      this.send({ type: 'started' });
      conversation?.begin(this);
    }
    link.connected();
  }

  get speechRing(): SharedArrayBuffer {
    return this.#ingress.memory;
  }

  setState(state: ConversationState): void {
    this.#options.worker.post({ type: 'conversation', sessionId: this.id, state });
  }

  fail(message: string): void {
    this.#failure = { type: 'error', code: 'CONVERSATION_FAILED', message };
    this.end('conversation_failed');
  }

  /** Statistics of the session; undefined when the worker does not answer in time. */
  async stats(timeoutMs = 1000): Promise<SessionStatsReport | undefined> {
    if (this.phase === 'over') {
      return undefined;
    }
    return await this.#stats.ask((requestId) => {
      this.#options.worker.post({ type: 'stats', sessionId: this.id, requestId });
    }, timeoutMs);
  }

  // ── the end ────────────────────────────────────────────────────────────────────────────────────

  /** Sends a message to the client. */
  send(message: ServerMessage): void {
    this.#options.client.send(message);
  }

  /** Ends the session from this side. */
  end(reason: EndReason): void {
    if (this.phase === 'over') {
      return;
    }
    this.#finish(reason);
    this.#options.worker.post({ type: 'close', sessionId: this.id, reason });
  }

  #finish(reason: EndReason): void {
    if (this.phase === 'over') {
      return;
    }
    this.#progress.close();
    this.#marks.close();
    this.speech.close();
    this.#options.conversation?.end(reason);
    this.#options.worker.detach(this);
    this.#stats.close();
    const message = endMessage(reason);
    if (message !== undefined) {
      this.send(this.#failure ?? message);
    }
    this.#options.client.end();
    this.#options.link.close(reason);
    this.#options.span?.end(reason);
    this.#options.onEnd(this, reason);
  }
}

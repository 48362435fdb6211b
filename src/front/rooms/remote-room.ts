// A session in a room of a LiveKit server: joins it, publishes our tracks there, and stays in it when
// connections are lost. What the session does there is the business of its role.
import { randomUUID } from 'node:crypto';
import {
  DisconnectReason,
  LeaveRequest,
  LeaveRequest_Action,
  SessionDescription,
} from '@livekit/protocol';
import { ServiceError, toWireError } from '../../base/errors.ts';
import { after } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import type { EndReason } from '../../base/session-ends.ts';
import { monotonicMs } from '../../base/time.ts';
import type { LocalOfferMessage, RefusedOfferMessage } from '../../link/messages.ts';
import type { VideoCodec } from '../../media/coded-frame.ts';
import { parseAnswer } from '../../webrtc/sdp/offer.ts';
import type { LinkedSession, SessionLink } from '../sessions/session-link.ts';
import { publishRequest, resumeRequest } from './join-messages.ts';
import type { LiveKitServer } from './livekit-url.ts';
import type { RoomRole } from './room-role.ts';
import { RemoteCandidates } from './remote-candidates.ts';
import { isFinal, Reconnection } from './reconnection.ts';
import type { RoomMeter } from './room-meter.ts';
import type { DescriptionSignal } from './description-signal.ts';
import type { JoinedRoom, LeaveSignal, ServerSignal } from './server-signals.ts';
import { SignalBudget } from './signal-budget.ts';
import { SignalConnection } from './signal-client.ts';

/** What a session in a room is built from. */
export interface RemoteRoomOptions {
  readonly server: LiveKitServer;
  /** The avatar's. */
  readonly token: string;
  readonly videoCodec: VideoCodec;
  readonly role: RoomRole;
  readonly meter: RoomMeter;
  readonly log: Logger;
}

const STREAM_ID = 'avatar';
/** From the offer to the answer of the server. */
const JOIN_TIMEOUT_MS = 8_000;
/** What servers say at a join; a resume repeats nothing. */
const PING_INTERVAL_SECONDS = 5;
const PING_SILENCE_SECONDS = 15;
/** Who closes our media tells the reason over the signal connection, a moment later. */
const GOODBYE_MS = 250;

/** The session's place in a room of a LiveKit server. */
export class RemoteRoom implements SessionLink {
  readonly takesOffers = false;
  readonly outlivesPeers = true;
  readonly noPeerReason = 'room_lost';
  /** Resolves when the room has been joined; rejects with a ServiceError when it cannot be. */
  readonly joined: Promise<void>;

  readonly #options: RemoteRoomOptions;
  #settle!: { resolve(): void; reject(error: ServiceError): void };
  #session: LinkedSession | undefined = undefined;
  #signal: SignalConnection | undefined = undefined;
  /** The newest token: the server refreshes it. */
  #token: string;
  #sid = '';
  #videoSid = '';
  readonly #names = {
    streamId: STREAM_ID,
    audioTrackId: randomUUID(),
    videoTrackId: randomUUID(),
  };
  #offerId = 0;
  /** The offer that the server has answered. */
  #answeredId = 0;
  /** The offer that waits for the worker is of a new peer, and goes with a request to join. */
  #isJoining = false;
  /** A request to join that no server has seen yet: its peer can still be used. */
  #unseenRequest: string | undefined = undefined;
  #hasJoined = false;
  #hasPeer = false;
  /** Nothing was heard of the peer while there was no signal connection to restart ICE on. */
  #owesRestart = false;
  #isOver = false;
  readonly #reconnection = new Reconnection();
  #timer: NodeJS.Timeout | undefined = undefined;
  readonly #candidates: RemoteCandidates;
  readonly #budget: SignalBudget;

  constructor(options: RemoteRoomOptions) {
    this.#options = options;
    this.#token = options.token;
    this.#budget = new SignalBudget(options.meter, monotonicMs());
    this.#candidates = new RemoteCandidates(options.server.isTrusted);
    this.joined = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.joined.catch(() => {}); // whoever waits for it gets the error
  }

  get kind(): RoomRole['kind'] {
    return this.#options.role.kind;
  }

  // ── the session ────────────────────────────────────────────────────────────────────────────────

  open(session: LinkedSession): void {
    this.#session = session;
    const { role } = this.#options;
    role.opened(session);
    void Promise.resolve(role.prepare?.()).then(() => {
      if (!this.#isOver) {
        this.#join();
      }
    });
  }

  offered({ sdp, offerId }: LocalOfferMessage): void {
    if (this.#isOver || offerId !== this.#offerId) {
      return;
    }
    const offer = new SessionDescription({ type: 'offer', sdp, id: offerId });
    if (!this.#isJoining) {
      this.#signal?.send({ case: 'offer', value: offer });
      return;
    }
    const { size } = this.#session!;
    this.#unseenRequest = publishRequest(offer, this.#names, this.#options.videoCodec, size);
    this.#connect(this.#unseenRequest);
  }

  connected(): void {
    this.#hasPeer = true;
    if (this.#signal !== undefined) {
      this.#restored();
    }
  }

  data(message: Uint8Array): void {
    this.#options.role.data?.(message);
  }

  peerSilent(): void {
    const { isUnderWay } = this.#reconnection;
    this.#owesRestart = isUnderWay && !this.#isJoining;
    if (!isUnderWay) {
      this.#restartIce();
    }
  }

  peerLost(): void {
    this.#unseenRequest = undefined;
    this.#hasPeer = false;
    if (!this.#isJoining) {
      this.#retry('media', GOODBYE_MS);
    }
  }

  answered(): void {}

  /** The server's answer could not be used. */
  refused({ error }: RefusedOfferMessage): void {
    this.#options.log.warn({ reason: error.message }, 'the answer of a LiveKit server is refused');
    this.#refuse(error.message);
  }

  speaking(): void {}

  close(reason: EndReason): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    const value = new LeaveRequest({
      reason: DisconnectReason.CLIENT_INITIATED,
      action: LeaveRequest_Action.DISCONNECT,
    });
    this.#signal?.send({ case: 'leave', value });
    this.#signal?.close();
    this.#settle.reject(new ServiceError('ROOM_JOIN_FAILED', `The session ended: ${reason}.`));
    this.#options.role.closed(reason);
  }

  // ── joining, and joining again ─────────────────────────────────────────────────────────────────

  /** With a new peer connection. */
  #join(): void {
    this.#signal?.close();
    this.#signal = undefined;
    this.#hasPeer = this.#owesRestart = false;
    this.#isJoining = true;
    this.#candidates.reset();
    if (this.#unseenRequest === undefined) {
      this.#offer(true, false);
    } else {
      this.#connect(this.#unseenRequest);
    }
    this.#awaitAnswer();
  }

  #restartIce(): void {
    this.#options.log.info('nothing is heard of the LiveKit server: ICE restarts');
    this.#offer(false, true);
  }

  #offer(isNewPeer: boolean, restartsIce: boolean): void {
    this.#offerId++;
    this.#session?.makeOffer({
      offerId: this.#offerId,
      isNewPeer,
      restartsIce,
      names: this.#names,
      videoCodecs: [this.#options.videoCodec],
    });
  }

  #awaitAnswer(): void {
    this.#await(JOIN_TIMEOUT_MS, () => {
      this.#lost('no answer', undefined);
    });
  }

  #connect(joinRequest: string): void {
    const isCurrent = (): boolean => connection === this.#signal;
    const { server } = this.#options;
    const connection = new SignalConnection(server, this.#token, joinRequest, this.#budget, {
      message: (message) => {
        if (isCurrent()) {
          this.#receive(message);
        }
      },
      lost: (reason, refusal) => {
        if (isCurrent()) {
          this.#lost(reason, refusal);
        }
      },
    });
    this.#signal?.close();
    this.#signal = connection;
  }

  /** The signal connection is lost. Media goes on: the session resumes. */
  #lost(reason: string, refusal: string | undefined): void {
    const isSeen = this.#signal?.isOpened === true || refusal !== undefined;
    this.#signal?.close();
    this.#signal = undefined;
    if (this.#isOver) {
      return;
    }
    if (!this.#hasJoined) {
      this.#refuse(refusal === undefined ? `it does not answer (${reason})` : refusal);
      return;
    }
    if (isSeen) {
      this.#unseenRequest = undefined;
    }
    // A server that took the request to resume, but not us, does not know us any more.
    const isForgotten = isSeen && this.#hasPeer && this.#reconnection.isUnderWay;
    this.#hasPeer &&= !isForgotten;
    this.#retry(reason, isForgotten ? 0 : undefined);
  }

  /** @param ownDelayMs instead of the usual wait */
  #retry(reason: string, ownDelayMs?: number): void {
    if (!this.#reconnection.isUnderWay) {
      this.#options.meter.failed('connection_lost');
      this.#options.log.info({ reason }, 'the connection to a LiveKit server is lost');
    }
    const delayMs = this.#reconnection.nextDelayMs(monotonicMs(), ownDelayMs);
    if (delayMs === undefined) {
      this.#options.meter.failed('room_lost');
      this.#session?.end('room_lost');
      return;
    }
    this.#await(delayMs, () => {
      if (this.#hasPeer) {
        this.#connect(resumeRequest(this.#sid));
        this.#awaitAnswer();
      } else {
        this.#join();
      }
    });
  }

  #restored(): void {
    clearTimeout(this.#timer);
    const lostMs = this.#reconnection.succeed(monotonicMs());
    if (lostMs !== undefined) {
      const ms = Math.round(lostMs);
      this.#options.log.info({ ms }, 'the connection to a LiveKit server is restored');
    }
    if (this.#owesRestart) {
      this.#owesRestart = false;
      this.#restartIce();
    }
  }

  /** One timer: waits for an answer, or before the next attempt. */
  #await(delayMs: number, work: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = after(delayMs, 'the connection to a LiveKit server', () => {
      if (!this.#isOver) {
        work();
      }
    });
  }

  /** The room cannot be joined. */
  #refuse(reason: string): void {
    const text = `The LiveKit room could not be joined: ${reason}`;
    this.#options.meter.joined('refused');
    this.#options.meter.failed('join_failed');
    this.#options.log.warn({ reason }, 'a LiveKit room could not be joined');
    this.#settle.reject(new ServiceError('ROOM_JOIN_FAILED', text));
    this.#session?.end('room_refused');
  }

  // ── what the server says ───────────────────────────────────────────────────────────────────────

  #receive(message: ServerSignal): void {
    switch (message.case) {
      case 'join':
        this.#onJoin(message.value);
        return;
      case 'reconnect':
        this.#options.meter.joined('resumed');
        if (this.#hasPeer) {
          this.#restored();
        }
        this.#signal?.keepAlive(PING_INTERVAL_SECONDS, PING_SILENCE_SECONDS);
        return;
      case 'answer':
        this.#onAnswer(message.value);
        return;
      case 'trickle':
        this.#onCandidate(message.value.candidateInit);
        return;
      case 'trackPublished':
        if (message.value.cid === this.#names.videoTrackId) {
          this.#videoSid = message.value.sid;
        }
        return;
      case 'subscribedQualityUpdate':
        if (message.value.trackSid === this.#videoSid) {
          // Nobody looks: no picture is drawn. Somebody does: the next one is a key frame.
          this.#session?.tell({ type: 'video', isWanted: message.value.isWatched });
        }
        return;
      case 'refreshToken':
        this.#token = message.value;
        return;
      case 'update':
        this.#options.role.changed(message.value);
        return;
      case 'leave':
        this.#onLeave(message.value);
        return;
      case 'other': // of rooms, speakers and others' tracks: nothing to do
    }
  }

  #onJoin(join: JoinedRoom): void {
    const { log, meter, role } = this.#options;
    this.#sid = join.participant?.sid ?? '';
    this.#isJoining = false;
    this.#unseenRequest = undefined;
    meter.joined(this.#hasJoined ? 'restarted' : 'joined');
    log.info({ room: join.room?.name, version: join.serverInfo?.version }, 'joined a LiveKit room');
    this.#signal?.keepAlive(join.pingInterval, join.pingTimeout);
    try {
      role.joined(join);
    } catch (error) {
      this.#refuse(toWireError(error).message);
    }
  }

  #onAnswer({ sdp, id }: DescriptionSignal): void {
    // One for each offer: reading it takes milliseconds.
    if (this.#answeredId === this.#offerId || (id !== 0 && id !== this.#offerId)) {
      return;
    }
    this.#answeredId = this.#offerId;
    try {
      const parsed = parseAnswer(sdp);
      const candidates = parsed.candidates.filter((one) => this.#candidates.mayCheck(one));
      const answer = { ...parsed, candidates };
      this.#session?.tell({ type: 'accept', answer, offerId: this.#offerId });
    } catch (error) {
      this.#refuse(toWireError(error).message);
      return;
    }
    clearTimeout(this.#timer);
    this.#hasJoined = true;
    this.#settle.resolve();
  }

  #onCandidate(candidateInit: string): void {
    const candidate = this.#candidates.trickled(candidateInit);
    if (candidate !== undefined) {
      this.#session?.tell({ type: 'candidate', candidate });
    }
  }

  #onLeave(leave: LeaveSignal): void {
    const { action, reason } = leave;
    this.#options.log.info(
      { reason: DisconnectReason[reason], action: LeaveRequest_Action[action] },
      'the LiveKit server says goodbye',
    );
    if (isFinal(leave)) {
      this.#signal?.close();
      this.#signal = undefined;
      if (this.#hasJoined) {
        this.#session?.end('room_closed');
      } else {
        this.#refuse(DisconnectReason[reason] ?? 'refused');
      }
      return;
    }
    this.#hasPeer &&= action === LeaveRequest_Action.RESUME;
    this.#lost('leave', undefined);
  }
}

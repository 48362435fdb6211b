// A session in a room of a LiveKit server: joins it, publishes our tracks there, and stays in it when
// connections are lost. What the session does there is the business of its role.
import { randomUUID } from 'node:crypto';
import {
  DisconnectReason,
  type JoinResponse,
  LeaveRequest,
  LeaveRequest_Action,
  SessionDescription,
} from '@livekit/protocol';
import { ServiceError, toWireError } from '../../base/errors.ts';
import { after } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import type { EndReason } from '../../base/session-ends.ts';
import { monotonicMs } from '../../base/time.ts';
import { TokenBucket } from '../../base/token-bucket.ts';
import type { LocalOfferMessage, RefusedOfferMessage } from '../../link/messages.ts';
import type { VideoCodec } from '../../media/coded-frame.ts';
import { type RemoteCandidate, parseCandidate } from '../../webrtc/sdp/candidate.ts';
import { parseAnswer } from '../../webrtc/sdp/offer.ts';
import type { LinkedSession, SessionLink } from '../sessions/session-link.ts';
import { publishRequest, resumeRequest } from './join-messages.ts';
import { isPublicAddress, type LiveKitServer } from './livekit-url.ts';
import { type RoomRole, isWatched } from './room-role.ts';
import type { RoomMeter } from './room-meter.ts';
import { type ServerMessage, SignalConnection } from './signal-client.ts';

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
/** Attempts to restore a connection wait for this long, one after the other. */
const RETRY_DELAYS_MS = [0, 300, 700, 1500, 3000, 5000];
/** When a connection could not be restored for this long, the session ends. */
const RESTORE_TIMEOUT_MS = 60_000;
/** From the offer to the answer of the server. */
const JOIN_TIMEOUT_MS = 8_000;
/** The address of a candidate is that of a stranger: each makes us send. A server has a handful. */
const MAX_CANDIDATES = 32;
/** Messages of the server. Each participant that comes or goes causes a few. */
const MESSAGES_PER_SECOND = 200;
const MESSAGE_BURST = 2000;

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
  /** The offer that waits for the worker is of a new peer, and goes with a request to join. */
  #isJoining = false;
  #hasJoined = false;
  #hasPeer = false;
  #isOver = false;
  /** Since when the connection is lost; 0: it is not. */
  #lostMs = 0;
  #attempts = 0;
  #timer: NodeJS.Timeout | undefined = undefined;
  #candidates = 0;
  readonly #messages = new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST, monotonicMs());

  constructor(options: RemoteRoomOptions) {
    this.#options = options;
    this.#token = options.token;
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
    this.#connect(publishRequest(offer, this.#names, this.#options.videoCodec));
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
    this.#options.log.info('nothing is heard of the LiveKit server: ICE restarts');
    this.#offer(false, true);
  }

  peerLost(): void {
    this.#hasPeer = false;
    this.#retry('media');
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
    this.#hasPeer = false;
    this.#isJoining = true;
    this.#candidates = 0;
    this.#offer(true, false);
    this.#await(JOIN_TIMEOUT_MS, () => {
      this.#lost('no answer', undefined);
    });
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

  #resume(): void {
    this.#connect(resumeRequest(this.#sid));
    this.#await(JOIN_TIMEOUT_MS, () => {
      this.#lost('no answer', undefined);
    });
  }

  #connect(joinRequest: string): void {
    const { server } = this.#options;
    const connection: SignalConnection = new SignalConnection(server, this.#token, joinRequest, {
      message: (message) => {
        if (connection === this.#signal) {
          this.#receive(message);
        }
      },
      lost: (reason, refusal) => {
        if (connection === this.#signal) {
          this.#lost(reason, refusal);
        }
      },
    });
    this.#signal?.close();
    this.#signal = connection;
  }

  /** The signal connection is lost. Media goes on: the session resumes. */
  #lost(reason: string, refusal: string | undefined): void {
    this.#signal?.close();
    this.#signal = undefined;
    if (this.#isOver) {
      return;
    }
    if (!this.#hasJoined) {
      this.#refuse(refusal === undefined ? `it does not answer (${reason})` : refusal);
      return;
    }
    // A server that refuses to resume does not know us any more.
    this.#hasPeer &&= refusal === undefined;
    this.#retry(reason);
  }

  #retry(reason: string): void {
    const nowMs = monotonicMs();
    if (this.#lostMs === 0) {
      this.#lostMs = nowMs;
      this.#options.meter.failed('connection_lost');
      this.#options.log.info({ reason }, 'the connection to a LiveKit server is lost');
    }
    if (nowMs - this.#lostMs > RESTORE_TIMEOUT_MS) {
      this.#options.meter.failed('room_lost');
      this.#session?.end('room_lost');
      return;
    }
    const delayMs = RETRY_DELAYS_MS[Math.min(this.#attempts, RETRY_DELAYS_MS.length - 1)]!;
    // The first attempt resumes. Where that fails, the server may have forgotten us.
    const resumes = this.#hasPeer && this.#attempts < 2;
    this.#attempts++;
    this.#await(delayMs, () => {
      if (resumes) {
        this.#resume();
      } else {
        this.#join();
      }
    });
  }

  #restored(): void {
    clearTimeout(this.#timer);
    if (this.#lostMs > 0) {
      const ms = Math.round(monotonicMs() - this.#lostMs);
      this.#options.log.info({ ms }, 'the connection to a LiveKit server is restored');
    }
    this.#lostMs = this.#attempts = 0;
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

  #receive(message: ServerMessage): void {
    if (!this.#messages.take(1, monotonicMs())) {
      this.#options.meter.dropped('rate');
      this.#lost('too many messages', undefined);
      return;
    }
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
          this.#videoSid = message.value.track?.sid ?? '';
        }
        return;
      case 'subscribedQualityUpdate':
        if (message.value.trackSid === this.#videoSid) {
          // Nobody looks: no picture is drawn. Somebody does: the next one is a key frame.
          this.#session?.tell({ type: 'video', isWanted: isWatched(message.value) });
        }
        return;
      case 'refreshToken':
        this.#token = message.value;
        return;
      case 'update':
        this.#options.role.changed(message.value.participants);
        return;
      case 'leave':
        this.#onLeave(message.value);
        return;
      default: // of rooms, speakers and others' tracks: nothing to do
    }
  }

  #onJoin(join: JoinResponse): void {
    const { log, meter, role } = this.#options;
    this.#sid = join.participant?.sid ?? '';
    this.#isJoining = false;
    meter.joined(this.#hasJoined ? 'restarted' : 'joined');
    log.info({ room: join.room?.name, version: join.serverInfo?.version }, 'joined a LiveKit room');
    this.#signal?.keepAlive(join.pingInterval, join.pingTimeout);
    try {
      role.joined(join);
    } catch (error) {
      this.#refuse(toWireError(error).message);
    }
  }

  #onAnswer({ sdp, id }: SessionDescription): void {
    if (id !== 0 && id !== this.#offerId) {
      return;
    }
    try {
      const parsed = parseAnswer(sdp);
      const candidates = parsed.candidates.filter((one) => this.#mayCheck(one));
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

  #onCandidate(text: string): void {
    if (this.#candidates >= MAX_CANDIDATES) {
      return;
    }
    this.#candidates++;
    let line: unknown;
    try {
      line = (JSON.parse(text) as { candidate?: unknown }).candidate;
    } catch {
      return;
    }
    const candidate = typeof line === 'string' ? parseCandidate(line) : undefined;
    if (candidate !== undefined && this.#mayCheck(candidate)) {
      this.#session?.tell({ type: 'candidate', candidate });
    }
  }

  /** Whether we may send to an address that the server names. */
  #mayCheck({ address }: RemoteCandidate): boolean {
    return this.#options.server.isTrusted || isPublicAddress(address);
  }

  #onLeave({ action, reason, canReconnect }: LeaveRequest): void {
    this.#options.log.info(
      { reason: DisconnectReason[reason], action: LeaveRequest_Action[action] },
      'the LiveKit server says goodbye',
    );
    if (action === LeaveRequest_Action.DISCONNECT && !canReconnect) {
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

/** What servers say at a join; a resume repeats nothing. */
const PING_INTERVAL_SECONDS = 5;
const PING_SILENCE_SECONDS = 15;

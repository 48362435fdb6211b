// A LiveKit room that this server serves itself: one avatar and one viewer, without an SFU. The
// viewer is an unmodified LiveKit client, whose peer connection ends at our worker.
import { randomBytes } from 'node:crypto';
import { DisconnectReason, LeaveRequest_Action } from '@livekit/protocol';
import type { Logger } from '../../base/log.ts';
import type { EndReason } from '../../base/session-ends.ts';
import { monotonicMs, wallMs, wallSeconds } from '../../base/time.ts';
import { TokenBucket } from '../../base/token-bucket.ts';
import type { AnswerMessage, RefusedOfferMessage } from '../../link/messages.ts';
import type { IceServer } from '../sessions/ice-credentials.ts';
import {
  type LinkedSession,
  type SessionLink,
  sendSessionFacts,
} from '../sessions/session-link.ts';
import { readClientSignal } from './client-signals.ts';
import type { Join } from './join-request.ts';
import type { RoomMeter } from './room-meter.ts';
import {
  AVATAR_IDENTITY,
  answerResponse,
  joinResponse,
  leaveResponse,
  oldPongResponse,
  pongResponse,
  reconnectResponse,
  speakersResponse,
  type RoomNames,
} from './signal-messages.ts';

/** The signal WebSocket of a viewer. Both methods may be called after its close. */
export interface SignalSocket {
  send(message: Uint8Array): boolean;
  end(code?: number, reason?: string): void;
}

/** What a room is built from. */
export interface OwnRoomOptions {
  /** Name of the room, and the key under which its viewers find it. */
  readonly name: string;
  /** What the client is told: where to join, and with which token. */
  readonly url: string;
  readonly token: string;
  /** host:port of this server, as the client is told. */
  readonly destination: string;
  readonly iceServers: () => readonly IceServer[];
  readonly meter: RoomMeter;
  readonly log: Logger;
  /** The session is over. */
  readonly onClosed: () => void;
}

/** Signal messages of a viewer. livekit-client sends some thirty while it joins. */
const MESSAGES_PER_SECOND = 20;
const MESSAGE_BURST = 300;
/** Offers cost the worker time. livekit-client sends two while it joins. */
const OFFERS_PER_SECOND = 1;
const OFFER_BURST = 10;
/** A larger message is not signalling: the largest are offers. */
const MAX_MESSAGE_BYTES = 128 * 1024;

/** A random identifier with a LiveKit prefix. */
const newSid = (prefix: string): string => prefix + randomBytes(9).toString('hex').slice(0, 12);

/** Someone in the room. */
interface Viewer {
  readonly sid: string;
  /** Undefined while its signal connection is lost: media goes on, and the client resumes. */
  socket: SignalSocket | undefined;
  hasPeer: boolean;
  readonly messages: TokenBucket;
  readonly offers: TokenBucket;
}

/**
 * The room of one session. A viewer that joins takes the place of the one before it: they have the
 * same token, so it is the same client again.
 */
export class OwnRoom implements SessionLink {
  readonly kind = 'livekit';
  readonly takesOffers = false;
  readonly outlivesPeers = true;
  readonly noPeerReason = 'join_timeout';
  readonly name: string;

  readonly #options: OwnRoomOptions;
  readonly #names: RoomNames;
  #session: LinkedSession | undefined = undefined;
  #viewer: Viewer | undefined = undefined;
  #isSpeaking = false;

  constructor(options: OwnRoomOptions) {
    this.#options = options;
    this.name = options.name;
    this.#names = {
      room: options.name,
      avatarSid: newSid('PA_'),
      audioTrackSid: newSid('TR_A'),
      videoTrackSid: newSid('TR_V'),
    };
  }

  // ── the session ────────────────────────────────────────────────────────────────────────────────

  open(session: LinkedSession): void {
    this.#session = session;
    const { destination, url, token } = this.#options;
    sendSessionFacts(session, destination);
    session.send({ type: 'room', livekit_url: url, livekit_token: token });
  }

  answered({ sdp, offerId, audioMid, videoMid }: AnswerMessage): void {
    const midToTrackId: Record<string, string> = {};
    if (audioMid !== undefined) {
      midToTrackId[audioMid] = this.#names.audioTrackSid;
    }
    if (videoMid !== undefined) {
      midToTrackId[videoMid] = this.#names.videoTrackSid;
    }
    this.#viewer?.socket?.send(answerResponse(sdp, offerId, midToTrackId));
  }

  offered(): void {}
  connected(): void {}
  data(): void {}
  peerSilent(): void {}

  refused({ error }: RefusedOfferMessage): void {
    this.#options.log.info({ code: error.code, reason: error.message }, 'a viewer was refused');
    this.#options.meter.joined('refused');
    this.#dismiss(DisconnectReason.JOIN_FAILURE, LeaveRequest_Action.DISCONNECT);
    this.#session?.dropPeer();
  }

  /** A client that is still there joins again. */
  peerLost(): void {
    if (this.#viewer !== undefined) {
      this.#dismiss(DisconnectReason.CONNECTION_TIMEOUT, LeaveRequest_Action.RECONNECT);
    }
  }

  speaking(isSpeaking: boolean): void {
    this.#isSpeaking = isSpeaking;
    this.#viewer?.socket?.send(speakersResponse(this.#names.avatarSid, isSpeaking));
  }

  close(reason: EndReason): void {
    const isShutdown = reason === 'server_stopped';
    this.#dismiss(
      isShutdown ? DisconnectReason.SERVER_SHUTDOWN : DisconnectReason.ROOM_DELETED,
      LeaveRequest_Action.DISCONNECT,
    );
    this.#options.onClosed();
  }

  // ── the viewer ─────────────────────────────────────────────────────────────────────────────────

  /** Somebody with a token for this room opened a signal WebSocket. */
  join(socket: SignalSocket, { resumedSid, offer, client }: Join): void {
    const viewer = this.#viewer;
    if (resumedSid !== undefined) {
      this.#resume(socket, viewer?.sid === resumedSid && viewer.hasPeer ? viewer : undefined);
      return;
    }
    if (viewer !== undefined) {
      this.#dismiss(DisconnectReason.DUPLICATE_IDENTITY, LeaveRequest_Action.DISCONNECT);
      this.#session?.dropPeer();
    }
    const nowMs = monotonicMs();
    const joined: Viewer = {
      sid: newSid('PA_'),
      socket,
      hasPeer: false,
      messages: new TokenBucket(MESSAGES_PER_SECOND, MESSAGE_BURST, nowMs),
      offers: new TokenBucket(OFFERS_PER_SECOND, OFFER_BURST, nowMs),
    };
    this.#viewer = joined;
    this.#options.log.info({ client }, 'a viewer joined');
    this.#options.meter.joined('joined');
    const iceServers = this.#options.iceServers();
    socket.send(
      joinResponse(this.#names, this.#session!.size, joined.sid, wallSeconds(), iceServers),
    );
    if (this.#isSpeaking) {
      socket.send(speakersResponse(this.#names.avatarSid, true));
    }
    if (offer !== undefined) {
      this.#offer(joined, offer.sdp, offer.id);
    }
  }

  /** A client that lost its signal WebSocket, or changed its network, continues on a new one. */
  #resume(socket: SignalSocket, viewer: Viewer | undefined): void {
    const { iceServers, meter } = this.#options;
    meter.joined(viewer === undefined ? 'restarted' : 'resumed');
    if (viewer === undefined) {
      const { RECONNECT } = LeaveRequest_Action;
      socket.send(leaveResponse(DisconnectReason.STATE_MISMATCH, RECONNECT));
      socket.end(1000, 'STATE_MISMATCH');
      return;
    }
    viewer.socket?.end(1000, 'RESUMED');
    viewer.socket = socket;
    socket.send(reconnectResponse(iceServers()));
  }

  /** A message on the signal WebSocket. @param message valid only during the call */
  message(socket: SignalSocket, message: ArrayBuffer): void {
    const viewer = this.#viewer;
    const nowMs = monotonicMs();
    if (viewer?.socket !== socket) {
      return;
    }
    const { meter } = this.#options;
    if (message.byteLength > MAX_MESSAGE_BYTES || !viewer.messages.take(1, nowMs)) {
      meter.dropped(message.byteLength > MAX_MESSAGE_BYTES ? 'too_large' : 'rate');
      return;
    }
    const request = readClientSignal(new Uint8Array(message));
    if (request === undefined) {
      meter.dropped('malformed');
      return;
    }
    switch (request.case) {
      case 'offer':
        if (viewer.offers.take(1, nowMs)) {
          this.#offer(viewer, request.value.sdp, request.value.id);
        } else {
          meter.dropped('rate');
        }
        return;
      case 'pingReq':
        socket.send(pongResponse(request.timestamp, wallMs()));
        return;
      case 'ping':
        socket.send(oldPongResponse(request.timestamp));
        return;
      case 'leave':
        this.#viewer = undefined;
        socket.end(1000, 'LEFT');
        this.#session?.dropPeer();
        return;
      case 'other': // the viewer publishes nothing, and the candidates of a peer are found by its checks
    }
  }

  /** The signal WebSocket closed. The client resumes, or its peer connection ends too. */
  disconnected(socket: SignalSocket): void {
    if (this.#viewer?.socket === socket) {
      this.#viewer.socket = undefined;
    }
  }

  #offer(viewer: Viewer, sdp: string, offerId: number): void {
    const { avatarSid, audioTrackSid, videoTrackSid } = this.#names;
    const isNewPeer = !viewer.hasPeer;
    viewer.hasPeer = true;
    this.#session?.offer(sdp, {
      offerId,
      isNewPeer,
      names: {
        streamId: `${avatarSid}|${AVATAR_IDENTITY}`,
        audioTrackId: audioTrackSid,
        videoTrackId: videoTrackSid,
      },
    });
  }

  #dismiss(reason: DisconnectReason, action: LeaveRequest_Action): void {
    const socket = this.#viewer?.socket;
    this.#viewer = undefined;
    socket?.send(leaveResponse(reason, action));
    socket?.end(1000, '');
  }
}

// A receiving client without decoder or screen: signals, connects, decrypts, answers RTCP, and
// keeps the times of all that arrives.
import {
  type MediaStreamTrack,
  type RTCPeerConnection,
  type RTCRtpReceiver,
  RtcpSrPacket,
} from 'werift';
import type { VideoCodec } from '../../src/media/coded-frame.ts';
import { SPEECH_RATE } from '../../src/media/timeline.ts';
import { createConnection, sendEstimate } from './connection.ts';
import { type ArrivedFrame, FrameAssembler } from './frames.ts';
import { type Impairment, ImpairedRelay, mediaAddress, rerouted } from './impaired-relay.ts';
import { Microphone } from './microphone.ts';
import { MediaWatch } from './media-watch.ts';
import { newFigures, newUtterance, type Utterance } from './peer-figures.ts';
import { RoomSignalling } from './room-signalling.ts';

export interface PeerTarget {
  readonly url: string;
  readonly apiKey: string;
}
/** How a peer gets its media: from the server directly, or as the viewer of a LiveKit room. */
export type PeerKind = 'p2p' | 'livekit';
export interface PeerOptions {
  /** Default: p2p. */
  readonly kind?: PeerKind | undefined;
  readonly target: PeerTarget;
  readonly codec: VideoCodec;
  readonly faceId: string;
  /** Keep the coded frames, for decoding afterwards. */
  readonly keepFrames?: boolean;
  /** A bad network in between. */
  readonly impairment?: Impairment | undefined;
  readonly token?: Readonly<Record<string, unknown>>;
  /** A token that was made before; undefined: the peer makes one. */
  readonly sessionToken?: string | undefined;
  /** Holds a conversation, started with `token`: what its person says, at SPEECH_RATE. */
  readonly microphone?: Int16Array | undefined;
}

const SETTLED_AFTER_SKIP_MS = 600;
const GIVE_UP_WAITING_MS = 30_000;
const CHUNK_BYTES = 6000;
const CONNECT_LIMIT_MS = 20_000;

export class LightPeer {
  readonly figures = newFigures();
  sessionId = '';
  readonly #options: PeerOptions;
  readonly #pc: RTCPeerConnection;
  #socket: WebSocket | undefined = undefined;
  #room: RoomSignalling | undefined = undefined;
  #relay: ImpairedRelay | undefined = undefined;
  readonly #beganMs = performance.now();
  readonly #media: MediaWatch;
  readonly #microphone: Microphone | undefined;
  readonly #onOver: (() => void)[] = [];

  private constructor(options: PeerOptions) {
    this.#options = options;
    this.#media = new MediaWatch(this.figures, options.keepFrames ?? false);
    this.#microphone = options.microphone === undefined ? undefined : new Microphone();
    this.#pc = createConnection(
      options.codec,
      new URL(options.target.url).hostname,
      'recvonly',
      this.#microphone?.track,
    );
  }

  /**
   * @throws Error when the session does not come up within 20 s, with the server's word if it gave
   * one.
   */
  static async connect(options: PeerOptions): Promise<LightPeer> {
    const peer = new LightPeer(options);
    try {
      await peer.#open();
      return peer;
    } catch (error) {
      await peer.close();
      throw error;
    }
  }

  /** Complete frames, if kept. */
  get kept(): readonly ArrivedFrame[] {
    return this.#media.kept;
  }

  #sinceBegin(): number {
    return performance.now() - this.#beganMs;
  }

  async #open(): Promise<void> {
    const { target, microphone, kind = 'p2p' } = this.#options;
    const token = await (microphone === undefined ? this.#token() : this.#roomToken());
    this.figures.setUp.token = this.#sinceBegin();

    const origin = target.url.replace(/^http/, 'ws');
    const socket = new WebSocket(`${origin}/compose/webrtc/${kind}?session_token=${token}`);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    const started = Promise.withResolvers<void>();
    const firstFrame = Promise.withResolvers<void>();
    for (const { promise } of [started, firstFrame]) {
      promise.catch(() => {});
    }
    const fail = (why: string): void => {
      this.#end(why);
      for (const { reject } of [started, firstFrame]) {
        reject(new Error(why));
      }
    };
    socket.addEventListener('message', ({ data }) => {
      this.#onMessage(
        String(data),
        () => {
          started.resolve();
        },
        fail,
      );
    });
    socket.addEventListener('close', () => {
      fail(this.figures.ending ?? 'socket closed');
    });
    socket.addEventListener('error', () => {
      fail('socket error');
    });
    const limit = setTimeout(() => {
      fail('not connected in time');
    }, CONNECT_LIMIT_MS);
    try {
      await Promise.race([
        new Promise<void>((resolve) => {
          socket.addEventListener(
            'open',
            () => {
              resolve();
            },
            { once: true },
          );
        }),
        started.promise,
      ]);
      this.figures.setUp.socket = this.#sinceBegin();
      this.#receive(firstFrame.resolve);
      if (kind === 'p2p') {
        socket.send(JSON.stringify({ type: 'offer', sdp: await this.#offer() }));
      }
      await started.promise;
      await firstFrame.promise;
      this.figures.state = 'live';
      this.#microphone?.start(microphone!);
    } finally {
      clearTimeout(limit);
    }
  }

  async #token(): Promise<string> {
    const { faceId, token, sessionToken } = this.#options;
    if (sessionToken !== undefined) {
      return sessionToken;
    }
    const { session_token: found } = await this.#post('/compose/token', { faceId, ...token });
    return String(found);
  }

  /** Starts a conversation, and joins its room. */
  async #roomToken(): Promise<string> {
    const { faceId, token } = this.#options;
    const { roomUrl } = await this.#post('/auto/start/configurable', { faceId, ...token });
    const room = new URL(String(roomUrl));
    const secret = room.hash.slice(1);
    const { session_token: found } = await this.#post(`${room.pathname}/join`, { secret });
    return String(found);
  }

  async #post(path: string, body: object): Promise<Record<string, unknown>> {
    const { target } = this.#options;
    const response = await fetch(target.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-api-key': target.apiKey },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(CONNECT_LIMIT_MS),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    if (!response.ok) {
      throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`);
    }
    return answer;
  }

  #onMessage(text: string, onStart: () => void, fail: (why: string) => void): void {
    if (text.startsWith('{')) {
      const message = JSON.parse(text) as {
        sdp?: string;
        session_id?: string;
        livekit_url?: string;
        livekit_token?: string;
      };
      if (message.session_id !== undefined) {
        this.sessionId = message.session_id;
      }
      if (message.sdp !== undefined) {
        this.#answered(message.sdp, fail);
      } else if (message.livekit_url !== undefined) {
        this.#joinRoom(message.livekit_url, message.livekit_token ?? '', fail).catch(
          (error: unknown) => {
            fail(`room: ${String(error)}`);
          },
        );
      }
      return;
    }
    const word = text.split(' ', 1)[0]!.toUpperCase();
    const last = this.figures.utterances.at(-1);
    if (word === 'START') {
      this.figures.setUp.start = this.#sinceBegin();
      onStart();
    } else if (word === 'SPEAK' && last !== undefined) {
      last.speakMs ??= performance.now();
    } else if (word === 'SILENT' && last !== undefined) {
      last.silentMs = performance.now();
    } else if (word === 'STOP') {
      this.figures.ending ??= text;
    } else if (word === 'ERROR') {
      fail(text);
    }
  }

  async #offer(): Promise<string> {
    await this.#pc.setLocalDescription(await this.#pc.createOffer());
    return this.#pc.localDescription!.sdp;
  }

  async #joinRoom(url: string, token: string, fail: (why: string) => void): Promise<void> {
    this.#room = new RoomSignalling(url, token, await this.#offer(), {
      answered: (sdp) => {
        this.#answered(sdp, fail);
      },
      candidate: (candidate) => {
        this.#pc.addIceCandidate({ candidate, sdpMLineIndex: 0 }).catch(() => {});
      },
      lost: fail,
    });
  }

  #answered(sdp: string, fail: (why: string) => void): void {
    this.figures.setUp.answer = this.#sinceBegin();
    this.#accept(sdp).catch((error: unknown) => {
      fail(`answer: ${String(error)}`);
    });
  }

  async #accept(answer: string): Promise<void> {
    const { impairment } = this.#options;
    if (impairment !== undefined) {
      this.#relay = await ImpairedRelay.open(mediaAddress(answer), impairment);
    }
    await this.#pc.setRemoteDescription({
      type: 'answer',
      sdp: this.#relay === undefined ? answer : rerouted(answer, this.#relay.port),
    });
  }

  /** Changes the network in between, if the peer was opened with one. */
  impair(impairment: Impairment): void {
    if (this.#relay !== undefined) {
      this.#relay.impairment = impairment;
    }
  }

  #receive(onFirstFrame: () => void): void {
    this.#pc.connectionStateChange.subscribe((state) => {
      if (state === 'connected') {
        this.figures.setUp.connected = this.#sinceBegin();
      }
    });
    this.#pc.onTrack.subscribe((track) => {
      const receiver = this.#pc.getReceivers().find(({ kind }) => kind === track.kind)!;
      receiver.onRtcp.subscribe((packet) => {
        if (packet instanceof RtcpSrPacket) {
          this.#media.onSenderReport(track.kind === 'audio' ? 'audio' : 'video', {
            ntpMs: (Number(packet.senderInfo.ntpTimestamp >> 16n) * 1000) / 65_536,
            rtp: packet.senderInfo.rtpTimestamp,
          });
        }
      });
      if (track.kind === 'audio') {
        track.onReceiveRtp.subscribe((packet) => {
          this.#media.onAudio(packet);
        });
      } else {
        this.#receiveVideo(track, receiver, onFirstFrame);
      }
    });
  }

  #receiveVideo(track: MediaStreamTrack, receiver: RTCRtpReceiver, onFirstFrame: () => void): void {
    const { figures } = this;
    const assembler = new FrameAssembler(
      this.#options.codec,
      (frame) => {
        if (figures.frames === 0) {
          figures.setUp.firstFrame = this.#sinceBegin();
          onFirstFrame();
        }
        this.#media.onFrame(frame);
        figures.framesLost = assembler.framesLost;
      },
      () => {
        figures.plis++;
        receiver.sendRtcpPLI(track.ssrc!).catch(() => {});
      },
    );
    receiver.onPacketLost.subscribe(() => {
      figures.nacks++;
    });
    track.onReceiveRtp.subscribe((packet) => {
      const nowMs = performance.now();
      this.#media.onVideo(packet, nowMs);
      assembler.push(
        packet.header.sequenceNumber,
        packet.header.timestamp,
        packet.header.marker,
        packet.payload,
        nowMs,
      );
      const { estimate } = this.#media;
      if (estimate.update(nowMs)) {
        figures.estimateKbps = Math.round(estimate.bitrate / 1000);
        sendEstimate(receiver, track.ssrc!, estimate.bitrate);
      }
    });
  }

  /**
   * Sends speech at once, or as a microphone would.
   * @returns when all of it was handed to the socket
   */
  async speak(pcm: Int16Array, pace: 'burst' | 'realtime'): Promise<Utterance> {
    const utterance = newUtterance();
    this.figures.utterances.push(utterance);
    const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
    const step = pace === 'burst' ? CHUNK_BYTES : (SPEECH_RATE * 2) / 50;
    for (let at = 0; at < bytes.length && this.#socket?.readyState === WebSocket.OPEN; at += step) {
      this.#socket.send(bytes.slice(at, at + step));
      if (pace === 'burst') {
        continue;
      }
      const dueMs = utterance.sentMs + ((at + step) / (SPEECH_RATE * 2)) * 1000;
      await new Promise((resolve) => {
        setTimeout(resolve, Math.max(0, dueMs - performance.now()));
      });
    }
    return utterance;
  }

  /** Sends binary messages as they are, at once, as one utterance: packets of Opus, say. */
  sendMessages(messages: readonly Uint8Array<ArrayBuffer>[]): Utterance {
    const utterance = newUtterance();
    this.figures.utterances.push(utterance);
    for (const message of messages) {
      this.#socket?.send(message);
    }
    return utterance;
  }

  /**
   * Interrupts.
   * @returns milliseconds until the last packet with sound arrived; 0 if none came any more
   */
  async skip(): Promise<number> {
    const sentMs = performance.now();
    this.#socket?.send('SKIP');
    await new Promise((resolve) => {
      setTimeout(resolve, SETTLED_AFTER_SKIP_MS);
    });
    return Math.max(0, this.figures.lastAudibleMs - sentMs);
  }

  /** Resolves when the session is over, whoever ended it. */
  get over(): Promise<void> {
    return this.figures.state === 'over'
      ? Promise.resolve()
      : new Promise((resolve) => {
          this.#onOver.push(resolve);
        });
  }

  #end(why: string): void {
    this.#microphone?.stop();
    if (this.figures.state === 'over') {
      return;
    }
    this.figures.state = 'over';
    this.figures.ending ??= why;
    for (const tell of this.#onOver.splice(0)) {
      tell();
    }
  }

  /**
   * @param how `clean`: peer connection and socket are closed; `vanish`: nothing is sent any more,
   * as if the network were cut, until the server gives up
   */
  async close(how: 'clean' | 'vanish' = 'clean'): Promise<void> {
    if (how === 'vanish') {
      for (const { connection } of this.#pc.iceTransports) {
        // Below ICE, so that consent checks (RFC 7675) fall silent too.
        for (const { transport } of (
          connection as unknown as { protocols: { transport: { send: () => Promise<void> } }[] }
        ).protocols) {
          transport.send = () => Promise.resolve();
        }
      }
      await Promise.race([
        this.over,
        new Promise((resolve) => {
          setTimeout(resolve, GIVE_UP_WAITING_MS).unref();
        }),
      ]);
    }
    this.#end('closed by us');
    this.#room?.close();
    this.#socket?.close();
    await this.#pc.close();
    this.#relay?.close();
  }
}

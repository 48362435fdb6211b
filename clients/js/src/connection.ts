// One connection of a session: its WebSocket and its peer connection, from the offer to the end. A
// session that is lost gets another one.
import { SessionError } from './events.ts';
import { sendOn } from './socket.ts';

/** A preferred video codec. */
export type Codec = 'vp8' | 'h264';

/** What a connection is made from. */
export interface ConnectionOptions {
  readonly socketUrl: URL;
  readonly iceServers: RTCIceServer[];
  readonly iceTransportPolicy: RTCIceTransportPolicy;
  readonly codec: Codec | undefined;
  readonly microphone: MediaStreamTrack | undefined;
  readonly onTrack: (track: MediaStreamTrack) => void;
  /** An event of the server; those that concern the connection alone are not passed on. */
  readonly onEvent: (event: ServerEvent) => void;
  /** Once. `error` is null after a STOP. */
  readonly onEnd: (reason: string, error: SessionError | null) => void;
}

/** A message of the server, as JSON with `events=json`. */
export interface ServerEvent {
  readonly type: string;
  readonly at: number;
  readonly [field: string]: unknown;
}

/** One WebSocket and one peer connection. */
export class Connection {
  readonly peer: RTCPeerConnection;
  readonly socket: WebSocket;
  readonly #options: ConnectionOptions;
  #hasOpened = false;
  #isOver = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { iceServers, iceTransportPolicy } = options;
    this.peer = new RTCPeerConnection({
      iceServers,
      iceTransportPolicy,
      bundlePolicy: 'max-bundle',
    });
    this.socket = new WebSocket(options.socketUrl);
    this.socket.binaryType = 'arraybuffer';
    this.socket.onopen = () => {
      this.#hasOpened = true;
    };
    this.socket.onmessage = ({ data }) => this.#receive(JSON.parse(String(data)) as ServerEvent);
    // A server that ends a session says so first. Without that the connection was lost.
    this.socket.onclose = () =>
      this.#end('lost', new SessionError(this.#hasOpened ? 'CONNECTION_LOST' : 'SOCKET_FAILED'));
    this.peer.ontrack = ({ track, receiver }) => {
      // Ask for the shortest delay that the network allows. Some browsers ignore it.
      if ('jitterBufferTarget' in receiver) {
        receiver.jitterBufferTarget = 0;
      }
      options.onTrack(track);
    };
    this.peer.onconnectionstatechange = () => {
      if (this.peer.connectionState === 'failed') {
        this.#end('lost', new SessionError('ICE_FAILED'));
      }
    };
    this.#offer().catch((error: unknown) => {
      this.#end('offer_failed', new SessionError('OFFER_FAILED', String(error)));
    });
  }

  /** Sends a message if the socket is open. @returns whether it is */
  send(message: string | Uint8Array<ArrayBuffer>): boolean {
    return sendOn(this.socket, message);
  }

  /** Replaces the track that is sent. @throws Error when the connection began without one */
  async replaceMicrophone(track: MediaStreamTrack): Promise<void> {
    const sender = this.peer.getSenders().find((one) => one.track?.kind === 'audio');
    if (!sender) {
      throw new Error('The session was opened without a microphone: give it to connect.');
    }
    await sender.replaceTrack(track);
  }

  close(): void {
    this.#isOver = true;
    this.socket.close();
    this.peer.close();
  }

  async #offer(): Promise<void> {
    const { codec, microphone } = this.#options;
    const video = this.peer.addTransceiver('video', { direction: 'recvonly' });
    if (microphone) {
      this.peer.addTransceiver(microphone, { direction: 'sendrecv' });
    } else {
      this.peer.addTransceiver('audio', { direction: 'recvonly' });
    }
    if (codec) {
      preferCodec(video, codec);
    }
    await this.peer.setLocalDescription(await this.peer.createOffer());
    // Do not wait for ICE candidates: a reachable server accepts checks from addresses that were
    // not signalled (peer-reflexive candidates).
    await opened(this.socket);
    const { type, sdp } = this.peer.localDescription!;
    this.send(JSON.stringify({ type, sdp }));
  }

  #receive(event: ServerEvent): void {
    switch (event.type) {
      case 'answer':
        this.peer
          .setRemoteDescription({ type: 'answer', sdp: event['sdp'] as string })
          .catch((error: unknown) => {
            this.#end('answer_failed', new SessionError('ANSWER_FAILED', String(error)));
          });
        return;
      case 'stopped':
        this.#end((event['reason'] as string) || 'stop', null);
        return;
      case 'error': {
        const { code, message } = event as unknown as { code: string; message?: string };
        this.#end('error', new SessionError(code, message));
        return;
      }
      default:
        this.#options.onEvent(event);
    }
  }

  #end(reason: string, error: SessionError | null): void {
    if (!this.#isOver) {
      this.close();
      this.#options.onEnd(reason, error);
    }
  }
}

/** Puts a codec before the others. */
export function preferCodec(transceiver: RTCRtpTransceiver, codec: Codec): void {
  const all = RTCRtpReceiver.getCapabilities('video')?.codecs ?? [];
  const isWanted = ({ mimeType }: { mimeType: string }): boolean =>
    mimeType.toLowerCase() === `video/${codec}`;
  if (all.some(isWanted)) {
    transceiver.setCodecPreferences([
      ...all.filter(isWanted),
      ...all.filter((one) => !isWanted(one)),
    ]);
  }
}

function opened(socket: WebSocket): Promise<void> {
  if (socket.readyState === WebSocket.OPEN) {
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    socket.addEventListener('open', () => resolve(), { once: true });
  });
}

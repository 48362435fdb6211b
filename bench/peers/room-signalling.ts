// The signal WebSocket of a LiveKit client, as far as a viewer needs it: joins with an offer, and
// keeps the connection alive.
import {
  ClientInfo,
  ClientInfo_SDK,
  ConnectionSettings,
  JoinRequest,
  Ping,
  SessionDescription,
  SignalRequest,
  SignalResponse,
  WrappedJoinRequest,
} from '@livekit/protocol';

/** What the viewer is told. */
export interface RoomListener {
  /** The room's answer to the offer. */
  answered(sdp: string): void;
  /** A candidate of the room's media server, as in SDP. */
  candidate(line: string): void;
  /** The room sent the viewer away, or the WebSocket closed. */
  lost(why: string): void;
}

const PING_MS = 5000;
/** The first protocol with one peer connection for both directions. */
const PROTOCOL = 17;

/** One viewer's place in a room. */
export class RoomSignalling {
  readonly #socket: WebSocket;
  readonly #pings: NodeJS.Timeout;
  #isClosed = false;

  /** @param sdp the offer, with the candidates in it */
  constructor(url: string, token: string, sdp: string, listener: RoomListener) {
    const request = new JoinRequest({
      clientInfo: new ClientInfo({
        sdk: ClientInfo_SDK.NODE,
        version: '2.13.0',
        protocol: PROTOCOL,
      }),
      connectionSettings: new ConnectionSettings({ autoSubscribe: true }),
      publisherOffer: new SessionDescription({ type: 'offer', sdp, id: 1 }),
    });
    const wrapped = new WrappedJoinRequest({ joinRequest: request.toBinary() }).toBinary();
    const address = new URL(`${url.replace(/\/$/, '')}/rtc/v1`);
    address.searchParams.set('access_token', token);
    // Go's decoder wants the padding.
    const text = Buffer.from(wrapped).toString('base64').replaceAll('+', '-').replaceAll('/', '_');
    address.searchParams.set('join_request', text);
    const socket = (this.#socket = new WebSocket(address));
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('message', ({ data }) => {
      const { message } = SignalResponse.fromBinary(new Uint8Array(data as ArrayBuffer));
      if (message.case === 'answer') {
        listener.answered(message.value.sdp);
      } else if (message.case === 'trickle') {
        const { candidate } = JSON.parse(message.value.candidateInit) as { candidate?: string };
        listener.candidate(candidate ?? '');
      } else if (message.case === 'leave') {
        listener.lost(`sent away, reason ${message.value.reason}`);
      }
    });
    socket.addEventListener('close', ({ code }) => {
      if (!this.#isClosed) {
        listener.lost(`signal socket closed with ${code}`);
      }
    });
    this.#pings = setInterval(() => {
      if (socket.readyState === WebSocket.OPEN) {
        const value = new Ping({ timestamp: BigInt(Date.now()) });
        const ping = new SignalRequest({ message: { case: 'pingReq', value } });
        socket.send(Uint8Array.from(ping.toBinary()));
      }
    }, PING_MS);
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#pings);
    this.#socket.close();
  }
}

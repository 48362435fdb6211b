// What lies between an avatar and a livekit-server: passes the signal connection and the media on, and
// does to both what networks and servers do. Nothing else leads from one to the other.
import { once } from 'node:events';
import { createServer, type IncomingMessage, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import {
  JoinRequest,
  SessionDescription,
  SignalRequest,
  SignalResponse,
  TrickleRequest,
  WrappedJoinRequest,
} from '@livekit/protocol';
import { WebSocket, WebSocketServer } from 'ws';
import {
  type Impairment,
  ImpairedRelay,
  PERFECT,
  rerouted,
} from '../../bench/peers/impaired-relay.ts';
import type { LiveKitTestServer } from './livekit-server.ts';

/** A request of the avatar to join, or to resume. */
export interface SeenJoin {
  readonly token: string;
  readonly isResume: boolean;
  readonly atMs: number;
}

type Request = NonNullable<NonNullable<ConstructorParameters<typeof SignalRequest>[0]>['message']>;
type Response = NonNullable<
  NonNullable<ConstructorParameters<typeof SignalResponse>[0]>['message']
>;

/** The way of one avatar to its server. */
export class LiveKitPath {
  readonly joins: SeenJoin[] = [];
  /** The newest token that the server gave out. */
  refreshedToken = '';
  /** Offers of ICE restarts. */
  restarts = 0;
  /** New signal connections are refused, as by a server that is not there. */
  isDown = false;
  /** Messages are swallowed; connections stay. */
  isFrozen = false;
  readonly #server: LiveKitTestServer;
  readonly #http: Server;
  readonly #webSockets = new WebSocketServer({ noServer: true });
  readonly #relays: ImpairedRelay[] = [];
  #impairment = PERFECT;
  #avatar: WebSocket | undefined = undefined;
  #upstream: WebSocket | undefined = undefined;

  private constructor(server: LiveKitTestServer, http: Server) {
    this.#server = server;
    this.#http = http;
    http.on('request', (incoming, response) => {
      const { method, headers, url: path } = incoming;
      const outgoing = httpRequest(this.#address(path), { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      outgoing.on('error', () => response.destroy());
      incoming.pipe(outgoing);
    });
    http.on('upgrade', (incoming: IncomingMessage, socket: Socket, head: Buffer) => {
      socket.on('error', () => {});
      if (this.isDown) {
        socket.destroy();
        return;
      }
      this.#webSockets.handleUpgrade(incoming, socket, head, (avatar) => {
        void this.#join(avatar, incoming);
      });
    });
  }

  static async open(server: LiveKitTestServer): Promise<LiveKitPath> {
    const http = createServer();
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    return new LiveKitPath(server, http);
  }

  /** Where the avatar finds its server. */
  get url(): string {
    return `ws://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  /** What the network does to media, each way. */
  set impairment(impairment: Impairment) {
    this.#impairment = impairment;
    for (const relay of this.#relays) {
      relay.impairment = impairment;
    }
  }

  /** All media is lost, both ways. */
  set losesMedia(isLost: boolean) {
    this.impairment = { ...PERFECT, lossPercent: isLost ? 100 : 0 };
  }

  /** The signal connection is cut, without goodbye. */
  cutSignal(): void {
    this.#avatar?.terminate();
    this.#upstream?.terminate();
  }

  /** Tells the server something in the avatar's name. */
  tell(message: Request): void {
    this.#upstream?.send(new SignalRequest({ message }).toBinary());
  }

  /** Tells the avatar something in the server's name. */
  say(message: Response): void {
    this.#avatar?.send(new SignalResponse({ message }).toBinary());
  }

  async close(): Promise<void> {
    this.cutSignal();
    for (const relay of this.#relays) {
      relay.close();
    }
    this.#webSockets.close();
    this.#http.closeAllConnections();
    await new Promise((resolve) => {
      this.#http.close(resolve);
    });
  }

  #address(path = '/'): URL {
    return new URL(path, this.#server.url.replace('ws', 'http'));
  }

  async #join(avatar: WebSocket, { url }: IncomingMessage): Promise<void> {
    // The first messages of the avatar wait for the upstream connection.
    avatar.pause();
    avatar.on('error', () => {});
    const address = this.#address(url);
    const { searchParams } = address;
    const wrapped = WrappedJoinRequest.fromBinary(
      Buffer.from(searchParams.get('join_request')!, 'base64url'),
    );
    const join = JoinRequest.fromBinary(wrapped.joinRequest);
    this.joins.push({
      token: searchParams.get('access_token')!,
      isResume: join.reconnect,
      atMs: performance.now(),
    });
    if (join.publisherOffer !== undefined) {
      const port = this.#server.udpPort;
      this.#relays.push(await ImpairedRelay.open({ address: '127.0.0.1', port }, this.#impairment));
      join.publisherOffer.sdp = withoutCandidates(join.publisherOffer.sdp);
    }
    const bytes = new WrappedJoinRequest({ joinRequest: join.toBinary() }).toBinary();
    // Go's decoder of base64 wants the padding.
    const text = Buffer.from(bytes).toString('base64').replaceAll('+', '-').replaceAll('/', '_');
    searchParams.set('join_request', text);
    address.protocol = 'ws:';
    const upstream = new WebSocket(address);
    this.#avatar = avatar;
    this.#upstream = upstream;
    upstream.on('open', () => {
      avatar.resume();
    });
    upstream.on('message', (data: Buffer) => {
      if (!this.isFrozen && avatar.readyState === WebSocket.OPEN) {
        avatar.send(this.#toAvatar(data));
      }
    });
    avatar.on('message', (data: Buffer) => {
      if (!this.isFrozen && upstream.readyState === WebSocket.OPEN) {
        upstream.send(this.#toServer(data));
      }
    });
    upstream.on('error', () => {
      avatar.terminate();
    });
    upstream.on('close', () => {
      avatar.terminate();
    });
    avatar.on('close', () => {
      upstream.terminate();
    });
  }

  /** The server's media is behind the relay. */
  #toAvatar(data: Buffer): Uint8Array {
    const response = SignalResponse.fromBinary(new Uint8Array(data));
    const { message } = response;
    const port = this.#relays.at(-1)?.port ?? 0;
    if (message.case === 'answer') {
      message.value.sdp = rerouted(message.value.sdp, port);
    } else if (message.case === 'trickle') {
      message.value = movedCandidate(message.value, port);
    } else if (message.case === 'refreshToken') {
      this.refreshedToken = message.value;
    }
    return response.toBinary();
  }

  /** The avatar's own addresses stay unknown: the server finds the relay's by its checks. */
  #toServer(data: Buffer): Uint8Array {
    const request = SignalRequest.fromBinary(new Uint8Array(data));
    const { message } = request;
    if (message.case === 'offer') {
      this.restarts++;
      const { id, sdp } = message.value;
      message.value = new SessionDescription({ type: 'offer', id, sdp: withoutCandidates(sdp) });
    }
    return request.toBinary();
  }
}

const withoutCandidates = (sdp: string): string => sdp.replaceAll(/^a=candidate:.*\r\n/gm, '');

/** The candidate with the port of the relay. Those of TCP stay: the avatar does not use them. */
function movedCandidate(trickle: TrickleRequest, port: number): TrickleRequest {
  const init = JSON.parse(trickle.candidateInit) as { candidate: string };
  init.candidate = init.candidate.replace(
    /^(candidate:\S+ \d+ udp \d+) \S+ \d+ /i,
    `$1 127.0.0.1 ${port} `,
  );
  const { target, final } = trickle;
  return new TrickleRequest({ target, final, candidateInit: JSON.stringify(init) });
}

// A client on an independent WebRTC stack (werift): offers, receives raw RTP and RTCP, and can misbehave inside and outside its keys.
import {
  classes,
  Message,
  methods,
  RTCPeerConnection,
  RTCRtpCodecParameters,
  RTCRtpHeaderExtensionParameters,
  useAbsSendTime,
  useFIR,
  useH264,
  useNACK,
  useOPUS,
  usePLI,
  useREMB,
  useSdesMid,
  useVP8,
  type RTCCertificate,
  type RtcpPacket,
  type RtpPacket,
} from 'werift';
import { createSocket, type Socket } from 'node:dgram';
import type { TestContext } from 'vitest';
import { parseOffer } from '../../src/webrtc/sdp/offer.ts';
import { monotonicMs } from '../../src/base/time.ts';
import { createEndpoint, type Endpoint } from '../../src/webrtc/endpoint.ts';
import type { Peer, PeerCloseReason, PeerListener } from '../../src/webrtc/peer.ts';
import { socketsMadeBy } from './sockets.ts';

const PLAYOUT_DELAY = 'http://www.webrtc.org/experiments/rtp-hdrext/playout-delay';

export interface ClientWish {
  readonly codec?: 'vp8' | 'h264';
  readonly rtx?: boolean;
  readonly dataChannel?: boolean;
  readonly certificate?: RTCCertificate;
  readonly video?: boolean;
  readonly audio?: 'recvonly' | 'sendrecv' | 'sendonly' | undefined;
  /** The port that the client finds the server at, when there is a relay between them. */
  readonly relayPort?: number;
}

/** A werift connection that speaks to loopback only and asks no STUN server. */
export function createClient(wish: ClientWish = {}): RTCPeerConnection {
  const feedback = [useNACK(), usePLI(), useREMB(), useFIR()];
  const main =
    wish.codec === 'h264'
      ? useH264({
          payloadType: 98,
          rtcpFeedback: feedback,
          parameters: 'level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f',
        })
      : useVP8({ payloadType: 96, rtcpFeedback: feedback });
  const rtx = new RTCRtpCodecParameters({
    mimeType: 'video/rtx',
    clockRate: 90_000,
    payloadType: main.payloadType + 1,
    parameters: `apt=${main.payloadType}`,
  });
  const client = new RTCPeerConnection({
    iceServers: [],
    iceUseIpv4: false,
    iceUseIpv6: false,
    iceAdditionalHostAddresses: ['127.0.0.1'],
    iceInterfaceAddresses: { udp4: '127.0.0.1' },
    bundlePolicy: 'max-bundle',
    codecs: {
      video: wish.rtx === false ? [main] : [main, rtx],
      audio: [useOPUS({ payloadType: 111 })],
    },
    headerExtensions: {
      video: [
        useSdesMid(),
        useAbsSendTime(),
        new RTCRtpHeaderExtensionParameters({ uri: PLAYOUT_DELAY }),
      ],
      audio: [useSdesMid()],
    },
    ...(wish.certificate === undefined ? {} : { certificates: [wish.certificate] }),
  });
  if (wish.video !== false) {
    client.addTransceiver('video', { direction: 'recvonly' });
  }
  if (wish.audio !== undefined) {
    client.addTransceiver('audio', { direction: wish.audio ?? 'recvonly' });
  }
  if (wish.dataChannel === true) {
    client.createDataChannel('events');
  }
  for (const { connection } of client.iceTransports) {
    (connection as unknown as { stunServer: undefined }).stunServer = undefined;
  }
  return client;
}

/** What the server's side of a connection was told. */
export class Recorder implements PeerListener {
  readonly connected = Promise.withResolvers<number>();
  readonly closed = Promise.withResolvers<PeerCloseReason>();
  isClosed = false;
  detail = '';
  keyFrameRequests = 0;
  readonly bitrates: number[] = [];
  readonly audio: {
    readonly packet: Buffer;
    readonly timestamp: number;
    readonly sequenceNumber: number;
  }[] = [];
  onConnected(nowMs: number): void {
    this.connected.resolve(nowMs);
  }
  onClosed(reason: PeerCloseReason, detail: string): void {
    if (this.isClosed) {
      throw new Error('closed twice');
    }
    this.isClosed = true;
    this.detail = detail;
    this.closed.resolve(reason);
  }
  onKeyFrameRequest(): void {
    this.keyFrameRequests++;
  }
  onTargetBitrate(kbps: number): void {
    this.bitrates.push(kbps);
  }
  onAudio(packet: Uint8Array, timestamp: number, sequenceNumber: number): void {
    this.audio.push({ packet: Buffer.from(packet), timestamp, sequenceNumber });
  }
}

export const PEER_OPTIONS = {
  sessionId: 'test',
  minBitrateKbps: 150,
  maxBitrateKbps: 1500,
} as const;

/** Both ends of one connection over loopback. */
export class Pair {
  readonly endpoint: Endpoint;
  readonly peer: Peer;
  readonly client: RTCPeerConnection;
  readonly told = new Recorder();
  readonly rtp: RtpPacket[] = [];
  readonly rtcp: RtcpPacket[] = [];
  readonly #ownsEndpoint: boolean;
  readonly #polling: NodeJS.Timeout;
  answer = '';

  private constructor(endpoint: Endpoint, client: RTCPeerConnection, ownsEndpoint: boolean) {
    this.endpoint = endpoint;
    this.client = client;
    this.#ownsEndpoint = ownsEndpoint;
    this.peer = endpoint.createPeer(PEER_OPTIONS, this.told);
    this.#polling = setInterval(() => {
      this.peer.poll(monotonicMs());
    }, 50);
  }

  /** Signals, without waiting for the connection. */
  static async start(t: TestContext, wish: ClientWish = {}, shared?: Endpoint): Promise<Pair> {
    const endpoint =
      shared ??
      (await createEndpoint({ bindAddress: '127.0.0.1', port: 0, announcedAddresses: [] }));
    const pair = new Pair(endpoint, createClient(wish), shared === undefined);
    t.onTestFinished(() => pair.close());
    await pair.client.setLocalDescription(await pair.client.createOffer());
    pair.answer = await pair.peer.answer(parseOffer(pair.client.localDescription?.sdp ?? ''));
    const [transport] = pair.client.dtlsTransports;
    transport?.onRtp.subscribe((packet) => {
      pair.rtp.push(packet);
    });
    transport?.onRtcp.subscribe((packet) => {
      pair.rtcp.push(packet);
    });
    const { relayPort } = wish;
    const port = relayPort ?? endpoint.port;
    const seen = pair.answer.replaceAll(` ${endpoint.port} `, ` ${port} `);
    await pair.client.setRemoteDescription({ type: 'answer', sdp: seen });
    return pair;
  }

  static async connect(t: TestContext, wish: ClientWish = {}, shared?: Endpoint): Promise<Pair> {
    const pair = await Pair.start(t, wish, shared);
    await pair.told.connected.promise;
    await until(() => pair.transport.srtp !== undefined && pair.transport.state === 'connected');
    return pair;
  }

  get transport(): RTCPeerConnection['dtlsTransports'][number] {
    const [transport] = this.client.dtlsTransports;
    if (transport === undefined) {
      throw new Error('no transport');
    }
    return transport;
  }

  /** Sends bytes from the client's validated address, as somebody could who spoofs it. */
  sendRaw(data: Buffer): void {
    this.transport.iceTransport.connection.send(data).catch(() => {});
  }

  /** An RTCP packet inside the client's SRTCP keys. */
  sendRtcp(plain: Buffer): void {
    this.sendRaw(this.transport.srtcp.encrypt(plain));
  }

  packetsOf(ssrc: number): RtpPacket[] {
    return this.rtp.filter(({ header }) => header.ssrc === ssrc);
  }

  /** From here on the test says what time it is. */
  stopPolling(): void {
    clearInterval(this.#polling);
  }

  async close(): Promise<void> {
    clearInterval(this.#polling);
    await this.peer.close();
    await this.client.close();
    if (this.#ownsEndpoint) {
      await this.endpoint.close();
    }
  }
}

/** Resolves once `condition` holds; fails after `limitMs`. */
export async function until(
  condition: () => boolean,
  limitMs = 5_000,
  what = 'condition',
): Promise<void> {
  const deadline = monotonicMs() + limitMs;
  while (!condition()) {
    if (monotonicMs() > deadline) {
      throw new Error(`${what} not met within ${limitMs} ms`);
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}

/** A socket that is not the client's: what it sends comes from a foreign address. */
export class Attacker {
  readonly #socket: Socket;
  readonly #port: number;
  readonly replies: Buffer[] = [];
  sentBytes = 0;
  private constructor(socket: Socket, port: number) {
    this.#socket = socket;
    this.#port = port;
    socket.on('message', (data) => {
      this.replies.push(data);
    });
  }

  static async against(t: TestContext, endpoint: Endpoint): Promise<Attacker> {
    return new Attacker(await boundSocket(t), endpoint.port);
  }

  get receivedBytes(): number {
    return this.replies.reduce((sum, { length }) => sum + length, 0);
  }

  send(data: Buffer): Promise<void> {
    this.sentBytes += data.length;
    return new Promise((resolve) => {
      this.#socket.send(data, this.#port, '127.0.0.1', () => {
        resolve();
      });
    });
  }
}

/** A Binding request as an attacker can make it: any name, any key. */
export function stunRequest(
  username: string | undefined,
  password: string | undefined,
  nominate = true,
): Buffer {
  const request = new Message(methods.BINDING, classes.REQUEST);
  if (username !== undefined) {
    request.setAttribute('USERNAME', username);
  }
  request.setAttribute('PRIORITY', 1).setAttribute('ICE-CONTROLLING', 1n);
  if (nominate) {
    request.setAttribute('USE-CANDIDATE', null);
  }
  if (password !== undefined) {
    request.addMessageIntegrity(Buffer.from(password)).addFingerprint();
  }
  return request.bytes;
}

/** The server's ICE credentials, as its answer has them: what a client needs for a Binding request. */
export const credentialsOf = (answer: string): { ufrag: string; password: string } => ({
  ufrag: /a=ice-ufrag:(\S+)/.exec(answer)![1]!,
  password: /a=ice-pwd:(\S+)/.exec(answer)![1]!,
});

/** An endpoint on loopback and the socket inside it, for datagrams that only a raw socket could send. */
export async function openEndpoint(
  t: TestContext,
): Promise<{ endpoint: Endpoint; socket: Socket }> {
  const options = { bindAddress: '127.0.0.1', port: 0, announcedAddresses: [] };
  const { made, value: endpoint } = await socketsMadeBy(() => createEndpoint(options));
  t.onTestFinished(() => endpoint.close());
  return { endpoint, socket: made[0]! };
}

/** A NAT between client and endpoint: the endpoint sees an address of the NAT's, which can change. */
export class Nat {
  readonly #inside: Socket;
  readonly #serverPort: number;
  readonly #t: TestContext;
  #outside: Socket;
  #client = { address: '', port: 0 };
  private constructor(t: TestContext, inside: Socket, outside: Socket, serverPort: number) {
    this.#t = t;
    this.#inside = inside;
    this.#outside = outside;
    this.#serverPort = serverPort;
    inside.on('message', (data, from) => {
      this.#client = from;
      this.#outside.send(data, this.#serverPort, '127.0.0.1');
    });
    this.#listen();
  }

  static async before(t: TestContext, endpoint: Endpoint): Promise<Nat> {
    return new Nat(t, await boundSocket(t), await boundSocket(t), endpoint.port);
  }

  get port(): number {
    return this.#inside.address().port;
  }
  /** What the endpoint sees the client as. */
  get outsidePort(): number {
    return this.#outside.address().port;
  }

  /** From now on the client has another address, and nothing that is sent to the old one arrives. */
  async rebind(): Promise<void> {
    this.#outside.removeAllListeners('message');
    this.#outside = await boundSocket(this.#t);
    this.#listen();
  }

  /** Sends to the endpoint from the client's address of now. */
  send(data: Buffer): void {
    this.#outside.send(data, this.#serverPort, '127.0.0.1');
  }

  #listen(): void {
    this.#outside.on('message', (data) => {
      this.#inside.send(data, this.#client.port, this.#client.address);
    });
  }
}

async function boundSocket(t: TestContext): Promise<Socket> {
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => {
    socket.bind(0, '127.0.0.1', resolve);
  });
  t.onTestFinished(() => {
    socket.close();
  });
  return socket;
}

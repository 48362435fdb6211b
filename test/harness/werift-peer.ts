// A second WebRTC stack as the client: werift receives on loopback and keeps every packet, with the sender's clock beside it.
import {
  RTCPeerConnection,
  RTCRtpCodecParameters,
  RtcpSrPacket,
  type RtpPacket,
  useH264,
  useNACK,
  useOPUS,
  usePLI,
  useREMB,
  useSdesMid,
  useVP8,
} from 'werift';
import type { TestServer } from './server.ts';
import { WsClient } from './ws-client.ts';

const SETUP_LIMIT_MS = 10_000;

/** The sender's wall clock at an RTP timestamp (RFC 3550 section 6.4.1). */
export interface ClockPoint {
  readonly rtp: number;
  readonly ntpMs: number;
}

export interface ReceivedStream {
  readonly packets: RtpPacket[];
  readonly arrivalMs: number[];
  readonly clock: ClockPoint[];
}

export class WeriftPeer {
  readonly video: ReceivedStream = { packets: [], arrivalMs: [], clock: [] };
  readonly audio: ReceivedStream = { packets: [], arrivalMs: [], clock: [] };
  readonly socket: WsClient;
  readonly connection: RTCPeerConnection;
  offerSdp = '';
  answerSdp = '';

  private constructor(socket: WsClient, connection: RTCPeerConnection) {
    this.socket = socket;
    this.connection = connection;
  }

  /** Opens the socket, offers, and resolves with START. */
  static async connect(
    server: Pick<TestServer, 'url'>,
    token: string,
    codec: 'vp8' | 'h264' = 'vp8',
    kinds: readonly ('audio' | 'video')[] = ['audio', 'video'],
  ): Promise<WeriftPeer> {
    const peer = new WeriftPeer(await WsClient.open(server, token), newConnection(codec));
    await peer.#offer(kinds, (sdp) => sdp);
    await peer.socket.waitFor('START', { limitMs: SETUP_LIMIT_MS });
    return peer;
  }

  /** Opens the socket and offers what `alter` makes of the offer; does not wait for the connection. */
  static async open(
    server: Pick<TestServer, 'url'>,
    token: string,
    alter: (sdp: string) => string,
  ): Promise<WeriftPeer> {
    const peer = new WeriftPeer(await WsClient.open(server, token), newConnection('vp8'));
    await peer.#offer(['audio', 'video'], alter);
    return peer;
  }

  async #offer(
    kinds: readonly ('audio' | 'video')[],
    alter: (sdp: string) => string,
  ): Promise<void> {
    const { connection, socket } = this;
    for (const kind of kinds) {
      const transceiver = connection.addTransceiver(kind, { direction: 'recvonly' });
      const stream = this[kind];
      transceiver.onTrack.subscribe((track) => {
        track.onReceiveRtp.subscribe((packet) => {
          stream.packets.push(packet);
          stream.arrivalMs.push(performance.now());
        });
        track.onReceiveRtcp.subscribe((packet) => {
          if (!(packet instanceof RtcpSrPacket)) {
            return;
          }
          const { ntpTimestamp, rtpTimestamp } = packet.senderInfo;
          stream.clock.push({
            rtp: rtpTimestamp,
            ntpMs:
              Number(ntpTimestamp >> 32n) * 1000 +
              (Number(ntpTimestamp & 0xffffffffn) / 2 ** 32) * 1000,
          });
        });
      });
    }
    // werift would ask a public STUN server even with an empty list.
    for (const transport of connection.iceTransports) {
      (transport.connection as { stunServer: unknown }).stunServer = undefined;
    }
    await connection.setLocalDescription(await connection.createOffer());
    this.offerSdp = alter(connection.localDescription!.sdp);
    socket.send(JSON.stringify({ type: 'offer', sdp: this.offerSdp }));
    const answer = await socket.waitFor('{"sdp"', { limitMs: SETUP_LIMIT_MS });
    this.answerSdp = JSON.parse(answer.text).sdp;
    await connection.setRemoteDescription({ type: 'answer', sdp: this.answerSdp });
  }

  async close(): Promise<void> {
    await this.socket.close();
    await this.connection.close();
  }
}

/** An offer that a server can answer, without a peer behind it. */
export async function makeOffer(codec: 'vp8' | 'h264' = 'vp8'): Promise<string> {
  const connection = newConnection(codec);
  try {
    connection.addTransceiver('audio', { direction: 'recvonly' });
    connection.addTransceiver('video', { direction: 'recvonly' });
    return (await connection.createOffer()).sdp;
  } finally {
    await connection.close();
  }
}

function newConnection(codec: 'vp8' | 'h264'): RTCPeerConnection {
  const rtcpFeedback = [useNACK(), usePLI(), useREMB()];
  const video =
    codec === 'vp8'
      ? useVP8({ payloadType: 96, rtcpFeedback })
      : useH264({ payloadType: 98, rtcpFeedback });
  return new RTCPeerConnection({
    iceServers: [],
    iceUseIpv4: false,
    iceUseIpv6: false,
    iceAdditionalHostAddresses: ['127.0.0.1'],
    iceInterfaceAddresses: { udp4: '127.0.0.1' }, // loopback only
    bundlePolicy: 'max-bundle',
    codecs: {
      video: [
        video,
        new RTCRtpCodecParameters({
          mimeType: 'video/rtx',
          clockRate: 90_000,
          payloadType: video.payloadType + 1,
          parameters: `apt=${video.payloadType}`,
        }),
      ],
      audio: [useOPUS({ payloadType: 111 })],
    },
    headerExtensions: { video: [useSdesMid()], audio: [useSdesMid()] },
  });
}

/** Milliseconds on the sender's clock of an RTP timestamp, by the nearest sender report. @throws Error when there was none. */
export function senderMs({ clock }: ReceivedStream, rtp: number, clockRate: number): number {
  const point = clock.at(-1);
  if (!point) {
    throw new Error('no sender report arrived');
  }
  return point.ntpMs + (((rtp - point.rtp) | 0) * 1000) / clockRate;
}

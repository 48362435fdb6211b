// A client of a whole server on an independent WebRTC stack (werift). It keeps every RTP packet and
// every sender report that it receives.
import { RtcpSrPacket, type RTCPeerConnection, type RtpPacket } from 'werift';
import type { TestServer } from './server.ts';
import { createWeriftConnection } from './werift-connection.ts';
import { WsClient } from './ws-client.ts';

const SETUP_LIMIT_MS = 10_000;

/** The sender's wall clock at an RTP timestamp, from a sender report (RFC 3550 section 6.4.1). */
export interface ClockPoint {
  readonly rtp: number;
  readonly ntpMs: number;
}

/**
 * What arrived of one stream: RTP packets, their arrival times (`performance.now()`), sender
 * reports.
 */
export interface ReceivedStream {
  readonly packets: RtpPacket[];
  readonly arrivalMs: number[];
  readonly clock: ClockPoint[];
}

/** A session's client: its WebSocket and its peer connection. */
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

  /** Opens the WebSocket, sends an offer, and resolves when the server says START. */
  static async connect(
    server: Pick<TestServer, 'url'>,
    token: string,
    codec: 'vp8' | 'h264' = 'vp8',
    kinds: readonly ('audio' | 'video')[] = ['audio', 'video'],
  ): Promise<WeriftPeer> {
    const connection = createWeriftConnection({
      codec,
      video: kinds.includes('video'),
      audio: kinds.includes('audio') ? 'recvonly' : false,
    });
    const peer = new WeriftPeer(await WsClient.open(server, token), connection);
    await peer.#offer((sdp) => sdp);
    await peer.socket.waitFor('START', { limitMs: SETUP_LIMIT_MS });
    return peer;
  }

  /**
   * Opens the WebSocket and sends the offer as `alter` changes it. Does not wait for the
   * connection.
   */
  static async open(
    server: Pick<TestServer, 'url'>,
    token: string,
    alter: (sdp: string) => string,
  ): Promise<WeriftPeer> {
    const peer = new WeriftPeer(await WsClient.open(server, token), createWeriftConnection());
    await peer.#offer(alter);
    return peer;
  }

  async #offer(alter: (sdp: string) => string): Promise<void> {
    const { connection, socket } = this;
    for (const transceiver of connection.getTransceivers()) {
      const stream = transceiver.kind === 'audio' ? this.audio : this.video;
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

/** An SDP offer that the server can answer; there is no client behind it. */
export async function makeOffer(codec: 'vp8' | 'h264' = 'vp8'): Promise<string> {
  const connection = createWeriftConnection({ codec });
  try {
    return (await connection.createOffer()).sdp;
  } finally {
    await connection.close();
  }
}

/**
 * Milliseconds on the sender's wall clock of an RTP timestamp, by the last sender report.
 * @throws Error when no sender report arrived.
 */
export function senderMs({ clock }: ReceivedStream, rtp: number, clockRate: number): number {
  const point = clock.at(-1);
  if (!point) {
    throw new Error('no sender report arrived');
  }
  return point.ntpMs + (((rtp - point.rtp) | 0) * 1000) / clockRate;
}

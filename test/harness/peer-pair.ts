// A server peer and a werift client in one process. The test reads raw RTP and RTCP, and sends
// packets inside and outside the client's SRTP keys.
import assert from 'node:assert/strict';
import type { RTCPeerConnection, RtcpPacket, RtpPacket } from 'werift';
import type { TestContext } from 'vitest';
import { parseOffer } from '../../src/webrtc/sdp/offer.ts';
import { monotonicMs } from '../../src/base/time.ts';
import { createEndpoint, type Endpoint } from '../../src/webrtc/endpoint.ts';
import type { Peer, PeerCloseReason, PeerListener } from '../../src/webrtc/peer.ts';
import { until } from './until.ts';
import { createWeriftConnection, type WeriftOptions } from './werift-connection.ts';

/** Records every event of a server peer. */
export class RecordingListener implements PeerListener {
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

export interface PairOptions extends WeriftOptions {
  /** The client sends to this port instead of the server's: a relay or NAT listens there. */
  readonly relayPort?: number;
  /** Default: a new one. */
  readonly listener?: RecordingListener;
}

/** A server peer and a werift client, connected over loopback. */
export class PeerPair {
  readonly endpoint: Endpoint;
  readonly peer: Peer;
  readonly client: RTCPeerConnection;
  readonly listener: RecordingListener;
  readonly rtp: RtpPacket[] = [];
  readonly rtcp: RtcpPacket[] = [];
  readonly #ownsEndpoint: boolean;
  readonly #polling: NodeJS.Timeout;
  answer = '';

  private constructor(
    endpoint: Endpoint,
    client: RTCPeerConnection,
    ownsEndpoint: boolean,
    listener: RecordingListener,
  ) {
    this.listener = listener;
    this.endpoint = endpoint;
    this.client = client;
    this.#ownsEndpoint = ownsEndpoint;
    this.peer = endpoint.createPeer(PEER_OPTIONS, this.listener);
    this.#polling = setInterval(() => {
      this.peer.poll(monotonicMs());
    }, 50);
  }

  /** Exchanges offer and answer. Does not wait for the connection. */
  static async start(
    t: TestContext,
    options: PairOptions = {},
    shared?: Endpoint,
  ): Promise<PeerPair> {
    const endpoint =
      shared ??
      (await createEndpoint({ bindAddress: '127.0.0.1', port: 0, announcedAddresses: [] }));
    const pair = new PeerPair(
      endpoint,
      createWeriftConnection(options),
      shared === undefined,
      options.listener ?? new RecordingListener(),
    );
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
    const { relayPort } = options;
    const port = relayPort ?? endpoint.port;
    const seen = pair.answer.replaceAll(` ${endpoint.port} `, ` ${port} `);
    await pair.client.setRemoteDescription({ type: 'answer', sdp: seen });
    return pair;
  }

  static async connect(
    t: TestContext,
    options: PairOptions = {},
    shared?: Endpoint,
  ): Promise<PeerPair> {
    const pair = await PeerPair.start(t, options, shared);
    await pair.listener.connected.promise;
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

  /** Sends bytes from the client's validated address, as an attacker could who forges it. */
  sendRaw(data: Buffer): void {
    this.transport.iceTransport.connection.send(data).catch(() => {});
  }

  /** Sends an RTCP packet, encrypted with the client's SRTCP keys. */
  sendRtcp(plain: Buffer): void {
    this.sendRaw(this.transport.srtcp.encrypt(plain));
  }

  packetsOf(ssrc: number): RtpPacket[] {
    return this.rtp.filter(({ header }) => header.ssrc === ssrc);
  }

  /** Stops the timer; from now on the test calls `peer.poll` with its own time. */
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

/** Asserts that a frame sent now arrives. */
export async function assertFlows(pair: PeerPair): Promise<void> {
  const before = pair.rtp.length;
  assert.equal(pair.peer.isConnected, true);
  pair.peer.sendVideo(Buffer.alloc(500, 1), 500, true, monotonicMs(), monotonicMs());
  await until(() => pair.rtp.length > before, 5_000, 'media after the attack');
  assert.equal(pair.listener.isClosed, false);
}

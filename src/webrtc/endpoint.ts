// The UDP socket that all peers of a worker share: routes datagrams to peers, and rejects the
// others.
import type { RemoteInfo, Socket } from 'node:dgram';
import { isIP } from 'node:net';
import { guarded } from '../base/guard.ts';
import { monotonicMs, wallMs } from '../base/time.ts';
import type { Counter } from '../metrics/catalogue.ts';
import type { SharedMetrics } from '../metrics/shared-metrics.ts';
import { type Certificate, createCertificate } from './dtls/certificate.ts';
import type { Peer, PeerListener, PeerOptions } from './peer.ts';
import type { PeerHost, RoutedPeer } from './peer-host.ts';
import { REJECT_REASONS, type RejectReason } from '../base/reject-reasons.ts';
import { RtcPeer } from './rtc-peer.ts';
import type { Candidate } from './sdp/sdp-lines.ts';
import { newStunView, parseStun, transactionId } from './ice/stun.ts';
import { type BindOptions, bindSocket, candidateAddresses } from './udp-socket.ts';

/** Where the endpoint binds, what it announces, and where it reports. */
export interface EndpointOptions extends BindOptions {
  /** Counts datagrams. */
  readonly metrics?: SharedMetrics;
  /**
   * An exception was thrown while a datagram of this session was processed. The session is ended.
   * For the log.
   */
  readonly onPeerError?: (error: unknown, sessionId: string) => void;
}

/**
 * Why a datagram was not sent: the labels of mouthpiece_datagrams_unsent_total.
 * queue_full: too much is queued in the socket.
 * refused: the system did not accept it (EMSGSIZE, ENOBUFS, EPERM, no route).
 * unproven_address: its address is not validated, and has received three times what it sent.
 */
export const UNSENT_REASONS = ['queue_full', 'refused', 'unproven_address'] as const;
/** One of UNSENT_REASONS. */
export type UnsentReason = (typeof UNSENT_REASONS)[number];

/** Numbers of datagrams since the start. */
export interface EndpointStats {
  received: number;
  sent: number;
  readonly unsent: Record<UnsentReason, number>;
  readonly rejected: Record<RejectReason, number>;
}

/** A UDP socket and its peers. */
export interface Endpoint {
  readonly port: number;
  readonly candidates: readonly Candidate[];
  readonly stats: EndpointStats;
  readonly peerCount: number;
  createPeer(options: PeerOptions, listener: PeerListener): Peer;
  /**
   * An endpoint on a port of its own, any free one: for a peer whose other side tells its clients
   * apart by their addresses, as a media server with one port for all does. The caller closes it.
   * @throws Error if the system refuses
   */
  openSibling(): Promise<Endpoint>;
  /** Closes all peers and the socket. Idempotent. */
  close(): Promise<void>;
}

/** Longest datagram that is processed. WebRTC clients stay below 1500 bytes. */
const MAX_DATAGRAM_BYTES = 2_048;
/** Buffers used in turn: libuv keeps a datagram that the kernel does not accept at once. */
const SEND_BUFFERS = 64;
/** Bytes that may wait in libuv. Beyond that, drop: late media is of no use. */
const MAX_QUEUED_BYTES = 1 << 20;

/**
 * Binds the socket.
 * @throws Error if the bind address is not an IP address, no port is free, or the system refuses to
 * bind
 */
export async function createEndpoint(options: EndpointOptions): Promise<Endpoint> {
  return new UdpEndpoint(await bindSocket(options), options, createCertificate(wallMs()));
}

const zeros = <K extends string>(keys: readonly K[]): Record<K, number> =>
  Object.fromEntries(keys.map((key) => [key, 0])) as Record<K, number>;

class UdpEndpoint implements Endpoint, PeerHost {
  readonly certificate: Certificate;
  readonly wallOffsetMs = wallMs() - monotonicMs();
  readonly candidates: readonly Candidate[];
  readonly stats: EndpointStats = {
    received: 0,
    sent: 0,
    unsent: zeros(UNSENT_REASONS),
    rejected: zeros(REJECT_REASONS),
  };
  readonly #options: EndpointOptions;
  readonly #socket: Socket;
  /** An IPv6 socket, which also carries IPv4. */
  readonly #isDualStack: boolean;
  readonly #byUfrag = new Map<string, RoutedPeer>();
  readonly #byAddress = new Map<string, RoutedPeer>();
  /** By the transaction ids of the checks that wait for a response: a few per address of a peer. */
  readonly #byTransaction = new Map<string, RoutedPeer>();
  readonly #view = newStunView();
  readonly #buffers = Array.from({ length: SEND_BUFFERS }, () => Buffer.alloc(MAX_DATAGRAM_BYTES));
  readonly #receivedCounter: Counter | undefined;
  readonly #rejectedCounters: Record<RejectReason, Counter> | undefined;
  readonly #unsentCounters: Record<UnsentReason, Counter> | undefined;
  /** The callback of all datagrams. Without one, node:dgram reports no errors. */
  readonly #onSent = (error: Error | null): void => {
    if (error !== null) {
      this.#countUnsent('refused');
    }
  };
  #nextBuffer = 0;
  #isClosed = false;
  #isSocketClosed = false;

  constructor(socket: Socket, options: EndpointOptions, certificate: Certificate) {
    this.#socket = socket;
    this.#options = options;
    this.certificate = certificate;
    this.#isDualStack = isIP(options.bindAddress) === 6;
    this.candidates = candidateAddresses(options).map((address) => ({
      address,
      port: socket.address().port,
    }));
    const { metrics } = options;
    if (metrics !== undefined) {
      this.#receivedCounter = metrics.counter('mouthpiece_datagrams_received_total');
      this.#unsentCounters = Object.fromEntries(
        UNSENT_REASONS.map((reason) => [
          reason,
          metrics.counter('mouthpiece_datagrams_unsent_total', { reason }),
        ]),
      ) as Record<UnsentReason, Counter>;
      this.#rejectedCounters = Object.fromEntries(
        REJECT_REASONS.map((reason) => [
          reason,
          metrics.counter('mouthpiece_datagrams_rejected_total', { reason }),
        ]),
      ) as Record<RejectReason, Counter>;
    }
    socket.on(
      'message',
      guarded('a datagram', (data: Buffer, { address, port }: RemoteInfo) => {
        this.#onDatagram(data, address, port);
      }),
    );
    // Without a listener an error would end the worker.
    socket.on('error', () => {
      this.#countUnsent('refused');
    });
  }

  get port(): number {
    return this.#socket.address().port;
  }
  get peerCount(): number {
    return this.#byUfrag.size;
  }
  now(): number {
    return monotonicMs();
  }
  onPeerError(error: unknown, sessionId: string): void {
    this.#options.onPeerError?.(error, sessionId);
  }

  createPeer(options: PeerOptions, listener: PeerListener): Peer {
    if (this.#isClosed) {
      throw new Error('The endpoint is closed.');
    }
    const peer = new RtcPeer(this, options, listener);
    this.#byUfrag.set(peer.ufrag, peer);
    return peer;
  }

  async openSibling(): Promise<Endpoint> {
    const options = { ...this.#options, port: 0 };
    return new UdpEndpoint(await bindSocket(options), options, this.certificate);
  }

  async close(): Promise<void> {
    if (this.#isClosed) {
      return;
    }
    this.#isClosed = true;
    await Promise.all([...this.#byUfrag.values()].map((peer) => peer.close()));
    this.#isSocketClosed = true;
    await new Promise<void>((resolve) => {
      this.#socket.close(() => {
        resolve();
      });
    });
  }

  // PeerHost

  nextBuffer(): Buffer {
    this.#nextBuffer = (this.#nextBuffer + 1) % SEND_BUFFERS;
    return this.#buffers[this.#nextBuffer] ?? Buffer.alloc(MAX_DATAGRAM_BYTES);
  }

  send(datagram: Buffer, length: number, address: string, port: number): void {
    if (this.#isSocketClosed) {
      return;
    }
    if (this.#socket.getSendQueueSize() > MAX_QUEUED_BYTES) {
      this.#countUnsent('queue_full');
      return;
    }
    this.stats.sent++;
    this.#socket.send(datagram, 0, length, port, address, this.#onSent);
  }

  #countUnsent(reason: UnsentReason): void {
    this.stats.unsent[reason]++;
    this.#unsentCounters?.[reason].add();
  }

  claimAddress(key: string, peer: RoutedPeer, isValidated: boolean): void {
    // A client may return with a new session from the same port. Before validation, anyone can
    // claim it.
    if (isValidated || !this.#byAddress.has(key)) {
      this.#byAddress.set(key, peer);
    }
  }

  expectResponse(id: string, peer: RoutedPeer): void {
    this.#byTransaction.set(id, peer);
  }
  forgetResponse(id: string): void {
    this.#byTransaction.delete(id);
  }
  onAmplificationLimit(): void {
    this.#countUnsent('unproven_address');
  }
  releaseAddress(key: string, peer: RoutedPeer): void {
    if (this.#byAddress.get(key) === peer) {
      this.#byAddress.delete(key);
    }
  }
  socketAddress(address: string): string | undefined {
    if (isIP(address) === 6) {
      return this.#isDualStack ? address : undefined;
    }
    return this.#isDualStack ? `::ffff:${address}` : address;
  }
  renameUfrag(before: string, peer: RoutedPeer): void {
    this.#byUfrag.delete(before);
    this.#byUfrag.set(peer.ufrag, peer);
  }
  forget(peer: RoutedPeer): void {
    this.#byUfrag.delete(peer.ufrag);
  }
  reject(reason: RejectReason): void {
    this.stats.rejected[reason]++;
    this.#rejectedCounters?.[reason].add();
  }

  /**
   * Demultiplexes by the first byte (RFC 7983). Only an authentic Binding request makes an address
   * known.
   */
  #onDatagram(data: Buffer, address: string, port: number): void {
    this.stats.received++;
    this.#receivedCounter?.add();
    const first = data[0];
    // node:dgram throws if asked to send to port 0, which anyone can forge as source.
    if (port === 0) {
      this.reject('unknown_source');
      return;
    }
    if (first === undefined || data.length > MAX_DATAGRAM_BYTES) {
      this.reject(first === undefined ? 'other' : 'too_large');
      return;
    }
    const nowMs = monotonicMs();
    if (first < 4) {
      this.#onStun(data, address, port, nowMs);
      return;
    }
    const key = `${address}:${port}`;
    const peer = this.#byAddress.get(key);
    if (peer === undefined) {
      this.reject('unknown_source');
      return;
    }
    try {
      if (first >= 20 && first <= 63) {
        peer.onDtls(data, key, nowMs);
      } else if (first < 128 || first > 191 || data.length < 8) {
        this.reject('other');
      }
      // RFC 5761 section 4: packet types 192 to 223 are RTCP.
      else if ((data[1] ?? 0) >= 192 && (data[1] ?? 0) <= 223) {
        peer.onRtcp(data, nowMs);
      } else {
        peer.onRtp(data, nowMs);
      }
    } catch (error) {
      peer.fail(error); // an exception ends this peer only
    }
  }

  #onStun(data: Buffer, address: string, port: number, nowMs: number): void {
    const view = this.#view;
    if (!parseStun(data, view)) {
      this.reject('stun_malformed');
      return;
    }
    // Keeps a NAT binding alive, and gets no answer. It is not authenticated, so it has no effect.
    if (view.kind === 'indication') {
      return;
    }
    if (view.kind === 'request') {
      const peer = this.#byUfrag.get(view.localUfrag);
      if (peer === undefined) {
        this.reject('stun_unknown_user');
      } else {
        try {
          peer.onStunRequest(data, view, address, port, nowMs);
        } catch (error) {
          peer.fail(error);
        }
      }
      return;
    }
    // Route responses by transaction id: ours cannot be guessed, but a source address can be
    // forged.
    const peer = this.#byTransaction.get(transactionId(data).toString('latin1'));
    if (peer === undefined) {
      this.reject(
        this.#byAddress.has(`${address}:${port}`) ? 'stun_unknown_user' : 'unknown_source',
      );
      return;
    }
    try {
      peer.onStunResponse(data, view, address, port, nowMs);
    } catch (error) {
      peer.fail(error);
    }
  }
}

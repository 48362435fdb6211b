// DTLS over the paths of ICE: the handshake, and the keys once there is a path for media.
import type { Certificate } from './dtls/certificate.ts';
import { DtlsServer, type DtlsListener, type DtlsVerdict } from './dtls/dtls-server.ts';
import type { IceTransport } from './ice/ice.ts';
import type { OfferedFingerprint } from './sdp/offer.ts';
import type { SrtpReceiver, SrtpSender } from './srtp/srtp.ts';

/** What the transport tells its peer. */
export interface SecureListener extends Pick<DtlsListener, 'onClosed' | 'onData'> {
  /** The handshake is done and an address is validated. Called once. */
  onReady(sender: SrtpSender, receiver: SrtpReceiver): void;
}

/** Times are `monotonicMs()`. */
export class SecureTransport {
  readonly #paths: IceTransport;
  readonly #now: () => number;
  readonly #listener: SecureListener;
  readonly #dtls: DtlsServer;
  /** Set while the handshake is done and no address is validated. */
  #keys: readonly [SrtpSender, SrtpReceiver] | undefined = undefined;
  /** A handshake flight could not be sent: no address may get it yet. */
  #isFlightHeldBack = false;

  /** @param fingerprints those of the other side's certificate, from its description */
  constructor(
    certificate: Certificate,
    fingerprints: readonly OfferedFingerprint[],
    paths: IceTransport,
    now: () => number,
    listener: SecureListener,
  ) {
    this.#paths = paths;
    this.#now = now;
    this.#listener = listener;
    this.#dtls = new DtlsServer(certificate, fingerprints, {
      send: (datagram) => {
        if (!paths.sendHandshake(datagram, now())) {
          this.#isFlightHeldBack = true;
        }
      },
      onConnected: (sender, receiver) => {
        this.#keys = [sender, receiver];
        this.#reportReady();
      },
      onClosed: (reason, detail) => {
        listener.onClosed(reason, detail);
      },
      onData: (data) => {
        listener.onData(data);
      },
    });
  }

  /** An address is validated: sends what had to wait for it. */
  onSelected(): void {
    if (this.#isFlightHeldBack) {
      this.#dtls.resendFlight(this.#now());
    }
    this.#isFlightHeldBack = false;
    this.#reportReady();
  }

  /** Usually there is an address by the time the handshake is done. */
  #reportReady(): void {
    if (this.#keys === undefined || !this.#paths.isSelected) {
      return;
    }
    const [sender, receiver] = this.#keys;
    this.#keys = undefined;
    this.#listener.onReady(sender, receiver);
  }

  receive(datagram: Buffer, nowMs: number): DtlsVerdict {
    return this.#dtls.receive(datagram, nowMs);
  }

  /** Sends application data. Drops it unless connected. */
  send(data: Buffer): void {
    this.#dtls.send(data);
  }

  /** Retransmits the handshake when it is due. */
  poll(nowMs: number): void {
    this.#dtls.poll(nowMs);
  }

  /** Sends close_notify if connected, and frees the keys. Idempotent. */
  close(): void {
    this.#keys = undefined;
    this.#dtls.close();
  }
}

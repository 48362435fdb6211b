// The DTLS 1.2 server of one peer (RFC 6347, RFC 5764): dispatches records, and ends the
// connection.
import type { SrtpReceiver, SrtpSender } from '../srtp/srtp.ts';
import type { Certificate } from './certificate.ts';
import { FlightSender } from './flight-sender.ts';
import { ALERT, ALERT_LEVEL, asHandshakeFailure, HandshakeFailure } from './handshake-failure.ts';
import { HANDSHAKE, HandshakeAssembler } from './handshake.ts';
import { CONTENT, recordsOf, type DtlsRecord, type RecordCipher } from './records.ts';
import { ServerHandshake, type Fingerprint } from './server-handshake.ts';

/** What the server tells its peer. */
export interface DtlsListener {
  send(datagram: Buffer): void;
  /** The handshake is done. Called once. */
  onConnected(sender: SrtpSender, receiver: SrtpReceiver): void;
  /**
   * Called at most once: the client sent close_notify, or the handshake failed.
   * @param detail what failed; '' if nothing did
   */
  onClosed(reason: 'closed' | 'dtls_failed' | 'not_authentic', detail: string): void;
  /** Application data: an SCTP packet, if a data channel was negotiated. */
  onData(data: Buffer): void;
}

/**
 * After a fatal alert in the clear, the handshake ends unless the client continues it within this
 * time. Clients repeat their messages after 1 s.
 */
const REFUSAL_MS = 2_000;
/** Longest Finished record that is kept until its key is known. */
const MAX_EARLY_BYTES = 1_024;

/**
 * What became of a datagram. accepted: at least one record was of use.
 * repeated: an honest client may send it again, but so may anyone who has seen it. It has no effect
 * on the state, and does not show that the client lives. The others are labels of
 * mouthpiece_datagrams_rejected_total.
 */
export type DtlsVerdict =
  | 'accepted'
  | 'repeated'
  | 'dtls_record'
  | 'dtls_plaintext'
  | 'dtls_renegotiation';

/** Both sides authenticate by the fingerprints in the SDP. Times are `monotonicMs()`. */
export class DtlsServer {
  readonly #listener: DtlsListener;
  readonly #assembler = new HandshakeAssembler();
  readonly #flights: FlightSender;
  readonly #handshake: ServerHandshake;
  #state: 'waiting' | 'handshake' | 'connected' | 'closed' = 'waiting';
  /** The client's Finished, if it arrived before the messages that its key is derived from. */
  #earlyFinished: DtlsRecord | undefined = undefined;
  /** The first fatal alert in the clear that no handshake message has followed. */
  #refusal: { readonly alert: number; readonly atMs: number } | undefined = undefined;
  /** The encrypted record that held the client's Finished. */
  #finishedRecord: Buffer | undefined = undefined;
  #nowMs = 0;

  /** @param fingerprints those of the client's certificate, from its offer */
  constructor(
    certificate: Certificate,
    fingerprints: readonly Fingerprint[],
    listener: DtlsListener,
  ) {
    this.#listener = listener;
    this.#flights = new FlightSender((datagram) => {
      listener.send(datagram);
    });
    this.#handshake = new ServerHandshake(certificate, fingerprints, this.#flights);
  }

  get isConnected(): boolean {
    return this.#state === 'connected';
  }

  get #cipher(): RecordCipher | undefined {
    return this.#handshake.cipher;
  }

  /** Processes one datagram from an address that sent an authentic STUN check. */
  receive(datagram: Buffer, nowMs: number): DtlsVerdict {
    this.#nowMs = nowMs;
    let verdict: DtlsVerdict = 'dtls_record';
    for (const record of recordsOf(datagram)) {
      if (this.#state === 'closed') {
        return verdict;
      }
      try {
        const result = this.#onRecord(record);
        if (verdict !== 'accepted') {
          verdict = result;
        }
      } catch (error) {
        this.#fail(asHandshakeFailure(error));
        return verdict;
      }
    }
    return verdict;
  }

  /**
   * Retransmits the current flight when it is due, and ends a handshake that the client has
   * refused.
   */
  poll(nowMs: number): void {
    this.#nowMs = nowMs;
    const refusal = this.#state === 'connected' ? undefined : this.#refusal;
    if (refusal !== undefined && nowMs - refusal.atMs > REFUSAL_MS) {
      this.#clear();
      this.#listener.onClosed('dtls_failed', `the client sent alert ${refusal.alert}`);
      return;
    }
    if (this.#state === 'handshake') {
      this.#flights.poll(nowMs);
    }
  }

  /** Sends the current flight now: it could not be sent when it was due. */
  resendFlight(nowMs: number): void {
    this.#nowMs = nowMs;
    this.#flights.resend(nowMs);
  }

  /** Sends application data. Drops it unless connected. */
  send(data: Buffer): void {
    if (this.#state === 'connected') {
      this.#sendSealed(CONTENT.data, data);
    }
  }

  /** Sends close_notify if connected, and frees the keys. Idempotent. Does not call `onClosed`. */
  close(): void {
    if (this.#state === 'connected') {
      this.#sendSealed(CONTENT.alert, Buffer.from([ALERT_LEVEL.warning, ALERT.closeNotify]));
    }
    this.#clear();
  }

  #clear(): void {
    this.#state = 'closed';
    this.#handshake.clear();
    this.#flights.clear();
    this.#finishedRecord = undefined;
  }

  #fail(failure: HandshakeFailure): void {
    const alert = Buffer.from([ALERT_LEVEL.fatal, failure.alert]);
    if (this.#state === 'connected') {
      this.#sendSealed(CONTENT.alert, alert);
    } else {
      this.#flights.sendPlain(CONTENT.alert, alert);
    }
    this.#clear();
    this.#listener.onClosed(failure.isForgery ? 'not_authentic' : 'dtls_failed', failure.message);
  }

  #sendSealed(type: number, fragment: Buffer): void {
    const cipher = this.#cipher;
    if (cipher !== undefined) {
      this.#listener.send(cipher.seal(type, fragment));
    }
  }

  #onRecord(record: DtlsRecord): DtlsVerdict {
    switch (record.epoch) {
      case 0:
        return this.#onPlainRecord(record);
      case 1:
        return this.#cipher === undefined
          ? this.#keepEarlyFinished(record)
          : this.#onSealedRecord(record, this.#cipher);
      default:
        return 'dtls_record';
    }
  }

  /**
   * In the clear, accept only handshake messages, and only until the handshake is done: anyone
   * could have sent an alert, data, or a new ClientHello.
   */
  #onPlainRecord({ type, fragment }: DtlsRecord): DtlsVerdict {
    if (type === CONTENT.alert) {
      this.#onPlainAlert(fragment);
    }
    if (type !== CONTENT.handshake && type !== CONTENT.changeCipherSpec) {
      return 'dtls_plaintext';
    }
    if (this.#state === 'connected') {
      return type === CONTENT.handshake ? 'dtls_renegotiation' : 'dtls_plaintext';
    }
    if (type === CONTENT.changeCipherSpec) {
      return 'accepted'; // says no more than the epoch of the next record
    }
    if (!this.#onHandshake(fragment, false)) {
      return 'dtls_record';
    }
    this.#refusal = undefined;
    return 'accepted';
  }

  #keepEarlyFinished(record: DtlsRecord): DtlsVerdict {
    if (
      record.type !== CONTENT.handshake ||
      this.#state !== 'handshake' ||
      record.whole.length > MAX_EARLY_BYTES
    ) {
      return 'dtls_record';
    }
    this.#earlyFinished = {
      ...record,
      fragment: Buffer.from(record.fragment),
      whole: Buffer.from(record.whole),
    };
    return 'accepted';
  }

  #onSealedRecord(record: DtlsRecord, cipher: RecordCipher): DtlsVerdict {
    const plain = cipher.open(record);
    if (plain === undefined) {
      // Some clients (werift) repeat their last flight byte for byte, with the same record numbers:
      // a replay, but an honest one.
      if (this.#finishedRecord?.equals(record.whole) !== true) {
        return 'dtls_record';
      }
      this.#flights.onRepeatedMessage(this.#nowMs);
      return 'repeated';
    }
    switch (record.type) {
      case CONTENT.handshake: {
        const wasConnected = this.#state === 'connected';
        this.#onHandshake(plain, true);
        if (!wasConnected && this.isConnected) {
          this.#finishedRecord = Buffer.from(record.whole);
        }
        return 'accepted';
      }
      case CONTENT.alert:
        this.#onAlert(plain);
        return 'accepted';
      case CONTENT.data:
        if (this.#state !== 'connected') {
          return 'dtls_record';
        }
        this.#listener.onData(plain);
        return 'accepted';
      default:
        return 'dtls_record';
    }
  }

  /** Anyone could have sent it, so it does not end the handshake by itself: see REFUSAL_MS. */
  #onPlainAlert([level, description = 0]: Buffer): void {
    if (this.#state !== 'connected' && level === ALERT_LEVEL.fatal) {
      this.#refusal ??= { alert: description, atMs: this.#nowMs };
    }
  }

  #onAlert(plain: Buffer): void {
    const [level, description] = plain;
    if (level !== ALERT_LEVEL.fatal && description !== ALERT.closeNotify) {
      return;
    }
    const wasConnected = this.#state === 'connected';
    this.close();
    if (wasConnected || description === ALERT.closeNotify) {
      this.#listener.onClosed('closed', '');
    } else {
      this.#listener.onClosed('dtls_failed', `the client sent alert ${description}`);
    }
  }

  /** @returns false if the record is malformed */
  #onHandshake(fragment: Buffer, isSealed: boolean): boolean {
    if (this.#state === 'connected') {
      // The client repeats its last flight if ours was lost. Ignore anything else: no
      // renegotiation.
      if (isSealed && fragment[0] === HANDSHAKE.finished) {
        this.#flights.onRepeatedMessage(this.#nowMs);
      }
      return isSealed;
    }
    const isWellFormed = this.#assembler.add(fragment, (type) => {
      if (type === HANDSHAKE.clientHello) {
        this.#flights.onRepeatedMessage(this.#nowMs);
      }
    });
    if (!isWellFormed) {
      return false;
    }
    for (;;) {
      const message = this.#assembler.take();
      if (message === undefined) {
        return true;
      }
      if ((message.type === HANDSHAKE.finished) !== isSealed) {
        throw new HandshakeFailure(ALERT.handshakeFailure, 'message in the wrong epoch', true);
      }
      this.#handshake.receive(message, this.#nowMs);
      this.#onProgress();
    }
  }

  #onProgress(): void {
    const { srtpKeys } = this.#handshake;
    if (srtpKeys !== undefined) {
      this.#state = 'connected';
      this.#listener.onConnected(srtpKeys.sender, srtpKeys.receiver);
      return;
    }
    if (this.#handshake.isStarted) {
      this.#state = 'handshake';
    }
    const early = this.#earlyFinished;
    if (early !== undefined && this.#cipher !== undefined) {
      this.#earlyFinished = undefined;
      this.#onRecord(early);
    }
  }
}

// The DTLS 1.2 server of one peer (RFC 6347, RFC 5764, RFC 7627): mutual authentication by fingerprint, keys for SRTP.
import {
  constants,
  createECDH,
  createHash,
  createSign,
  createVerify,
  randomBytes,
  timingSafeEqual,
  X509Certificate,
  type ECDH,
} from 'node:crypto';
import { fingerprintOf, keyProblem, type Certificate } from './certificate.ts';
import {
  certificateMessage,
  certificateRequest,
  ecdhParameters,
  ECDHE_ECDSA_AES128_GCM_SHA256,
  HANDSHAKE,
  HandshakeAssembler,
  handshakeMessage,
  readCertificate,
  readClientHello,
  Reader,
  SECP256R1,
  serverHello,
  SIGNATURE_SCHEMES,
  signedBlock,
  type ClientHello,
  type HandshakeMessage,
} from './handshake.ts';
import { CONTENT, plainRecord, prf, recordsOf, RecordCipher, type DtlsRecord } from './records.ts';
import {
  KEY_BYTES,
  saltBytes,
  SRTP_PROFILES,
  SrtpReceiver,
  SrtpSender,
  type SrtpProfile,
} from '../srtp/srtp.ts';

export interface Fingerprint {
  readonly hash: string;
  readonly value: string;
}

export interface DtlsListener {
  send(datagram: Buffer): void;
  onConnected(sender: SrtpSender, receiver: SrtpReceiver): void;
  /** Once: the peer said goodbye, or the handshake failed. `detail`: what failed; '' if nothing. */
  onClosed(reason: 'closed' | 'dtls_failed' | 'not_authentic', detail: string): void;
  /** Application data: SCTP, when a data channel was negotiated. */
  onData(data: Buffer): void;
}

/** Why a handshake ends: the alert that tells the client (RFC 5246 section 7.2) and what to call it here. */
class HandshakeFailure extends Error {
  readonly alert: number;
  readonly isForgery: boolean;
  constructor(alert: number, message: string, isForgery: boolean) {
    super(message);
    this.alert = alert;
    this.isForgery = isForgery;
  }
}

/** What reading hostile messages may throw: overruns (RangeError), and node:crypto over bad keys. Anything else is a defect and goes on up. */
function asFailure(error: unknown): HandshakeFailure {
  if (error instanceof HandshakeFailure) {
    return error;
  }
  const isHostile =
    error instanceof RangeError ||
    (error instanceof Error && 'code' in error && /^ERR_(CRYPTO|OSSL)/.test(String(error.code)));
  if (!isHostile) {
    throw error;
  }
  return new HandshakeFailure(ALERT.decodeError, String(error), false);
}

const ALERT = {
  closeNotify: 0,
  handshakeFailure: 40,
  badCertificate: 42,
  decodeError: 50,
  decryptError: 51,
} as const;
const FIRST_RETRANSMIT_MS = 500;
const LAST_RETRANSMIT_MS = 4_000;
/** After a fatal alert in the clear the handshake ends unless it goes on. Clients repeat theirs after 1 s. */
const REFUSAL_MS = 2_000;
const FLIGHT_BYTES = 1_150;
const MAX_EARLY_BYTES = 1_024;
/** One flight is sent at most so often: six times in 15 s by the clock, else when the client repeats. */
const MAX_FLIGHT_SENDINGS = 20;

/**
 * What became of a datagram: one record of use makes it 'taken', else why none was.
 * repeated: what an honest client may send again, and anybody else who has seen it.
 */
export type DtlsVerdict =
  | 'taken'
  | 'repeated'
  | 'dtls_record'
  | 'dtls_plaintext'
  | 'dtls_renegotiation';

export class DtlsServer {
  readonly #certificate: Certificate;
  readonly #fingerprints: readonly Fingerprint[];
  readonly #listener: DtlsListener;
  readonly #assembler = new HandshakeAssembler();
  #state: 'waiting' | 'handshake' | 'connected' | 'closed' = 'waiting';
  #transcript: Buffer[] = [];
  #plainSequence = 0;
  #sendSequence = 0; // of handshake messages
  #hello: ClientHello | undefined = undefined;
  #serverRandom: Buffer = Buffer.alloc(0);
  #profile: SrtpProfile = SRTP_PROFILES[0];
  #ecdh: ECDH | undefined = undefined;
  #clientCertificate: X509Certificate | undefined = undefined;
  #masterSecret: Buffer = Buffer.alloc(0);
  #isVerified = false;
  #cipher: RecordCipher | undefined = undefined;
  /** The client's Finished when it overtook what its key comes from. */
  #early: DtlsRecord | undefined = undefined;
  /** Messages of our current flight, for retransmission: [content type, plain fragment]. */
  #flight: (readonly [number, Buffer])[] = [];
  #nextRetransmitMs = Number.POSITIVE_INFINITY;
  /** A fatal alert that came in the clear, and since when nothing followed. */
  #refusal: { readonly alert: number; readonly atMs: number } | undefined = undefined;
  /** The sealed record that held the client's Finished. */
  #finishedRecord: Buffer | undefined = undefined;
  #retransmitMs = FIRST_RETRANSMIT_MS;
  #sendings = 0;
  #nowMs = 0;
  #lastReplyMs = Number.NEGATIVE_INFINITY;

  constructor(
    certificate: Certificate,
    fingerprints: readonly Fingerprint[],
    listener: DtlsListener,
  ) {
    this.#certificate = certificate;
    this.#fingerprints = fingerprints;
    this.#listener = listener;
  }

  get isConnected(): boolean {
    return this.#state === 'connected';
  }

  /** Takes one datagram from an address that ICE has validated. */
  receive(datagram: Buffer, nowMs: number): DtlsVerdict {
    this.#nowMs = nowMs;
    let verdict: DtlsVerdict = 'dtls_record';
    for (const record of recordsOf(datagram)) {
      if (this.#state === 'closed') {
        return verdict;
      }
      try {
        const result = this.#record(record);
        if (verdict !== 'taken') {
          verdict = result;
        }
      } catch (error) {
        this.#fail(asFailure(error));
        return verdict;
      }
    }
    return verdict;
  }

  /** Sends the last flight again when its time has come. */
  poll(nowMs: number): void {
    this.#nowMs = nowMs;
    const refusal = this.#state === 'connected' ? undefined : this.#refusal;
    if (refusal !== undefined && nowMs - refusal.atMs > REFUSAL_MS) {
      const detail = `the client sent alert ${refusal.alert}`;
      this.#forget();
      this.#listener.onClosed('dtls_failed', detail);
      return;
    }
    if (nowMs < this.#nextRetransmitMs || this.#state !== 'handshake') {
      return;
    }
    this.#sendFlight();
    this.#retransmitMs = Math.min(this.#retransmitMs * 2, LAST_RETRANSMIT_MS);
    this.#nextRetransmitMs = nowMs + this.#retransmitMs;
  }

  /** Sends the current flight again, out of turn: it could not be sent when its time was. */
  repeatFlight(nowMs: number): void {
    this.#nowMs = nowMs;
    this.#sendFlight();
  }

  /** Sends application data; dropped unless connected. */
  send(data: Buffer): void {
    if (this.#state === 'connected' && this.#cipher !== undefined) {
      this.#listener.send(this.#cipher.seal(CONTENT.data, data));
    }
  }

  /** Says goodbye to the peer. Idempotent; `onClosed` is not called for it. */
  close(): void {
    if (this.#state === 'connected' && this.#cipher !== undefined) {
      this.#listener.send(this.#cipher.seal(CONTENT.alert, Buffer.from([1, ALERT.closeNotify])));
    }
    this.#forget();
  }

  #forget(): void {
    this.#state = 'closed';
    this.#cipher = undefined;
    this.#ecdh = undefined;
    this.#masterSecret.fill(0);
    this.#flight = [];
    this.#transcript = [];
    this.#finishedRecord = undefined;
  }

  #fail(failure: HandshakeFailure): void {
    const alert = Buffer.from([2, failure.alert]);
    this.#listener.send(
      this.#cipher === undefined || this.#state !== 'connected'
        ? plainRecord(CONTENT.alert, this.#plainSequence++, alert)
        : this.#cipher.seal(CONTENT.alert, alert),
    );
    this.#forget();
    this.#listener.onClosed(failure.isForgery ? 'not_authentic' : 'dtls_failed', failure.message);
  }

  #record(record: DtlsRecord): DtlsVerdict {
    const { type } = record;
    if (record.epoch === 0) {
      // In the clear only a handshake is taken, and only until it is done: anybody could have sent an alert, data, or a new ClientHello.
      if (type === CONTENT.alert) {
        this.#onPlainAlert(record.fragment);
      }
      if (type !== CONTENT.handshake && type !== CONTENT.changeCipherSpec) {
        return 'dtls_plaintext';
      }
      if (this.#state === 'connected') {
        return type === CONTENT.handshake ? 'dtls_renegotiation' : 'dtls_plaintext';
      }
      if (type === CONTENT.changeCipherSpec) {
        return 'taken';
      } // the epoch says as much
      if (!this.#handshake(record.fragment, false)) {
        return 'dtls_record';
      }
      this.#refusal = undefined;
      return 'taken';
    }
    if (record.epoch !== 1) {
      return 'dtls_record';
    }
    if (this.#cipher === undefined) {
      if (
        type !== CONTENT.handshake ||
        this.#state !== 'handshake' ||
        record.whole.length > MAX_EARLY_BYTES
      ) {
        return 'dtls_record';
      }
      this.#early = {
        ...record,
        fragment: Buffer.from(record.fragment),
        whole: Buffer.from(record.whole),
      };
      return 'taken';
    }
    const plain = this.#cipher.open(record);
    if (plain === undefined) {
      // Some clients (werift) repeat their last flight byte for byte, without new record numbers: a replay, but an honest one.
      if (this.#finishedRecord?.equals(record.whole) !== true) {
        return 'dtls_record';
      }
      this.#sendFlightAgain();
      return 'repeated';
    }
    if (type === CONTENT.handshake) {
      const wasConnected = this.#state === 'connected';
      this.#handshake(plain, true);
      if (!wasConnected && this.#state === 'connected') {
        this.#finishedRecord = Buffer.from(record.whole);
      }
      return 'taken';
    }
    if (type === CONTENT.alert) {
      this.#alert(plain);
      return 'taken';
    }
    if (type !== CONTENT.data || this.#state !== 'connected') {
      return 'dtls_record';
    }
    this.#listener.onData(plain);
    return 'taken';
  }

  /** Anybody could have sent it, so it ends nothing by itself: see REFUSAL_MS. */
  #onPlainAlert([level, alert = 0]: Buffer): void {
    if (this.#state !== 'connected' && level === 2) {
      this.#refusal ??= { alert, atMs: this.#nowMs };
    }
  }

  #alert(plain: Buffer): void {
    const [level, description] = plain;
    if (level !== 2 && description !== ALERT.closeNotify) {
      return;
    }
    const wasConnected = this.#state === 'connected';
    this.close();
    const isGoodbye = wasConnected || description === ALERT.closeNotify;
    if (isGoodbye) {
      this.#listener.onClosed('closed', '');
    } else {
      this.#listener.onClosed('dtls_failed', `the client sent alert ${description}`);
    }
  }

  #handshake(fragment: Buffer, isSealed: boolean): boolean {
    if (this.#state === 'connected') {
      // The client repeats its last flight when ours got lost; renegotiation is refused by being ignored.
      if (isSealed && fragment[0] === HANDSHAKE.finished) {
        this.#sendFlightAgain();
      }
      return isSealed;
    }
    if (
      !this.#assembler.add(fragment, (type) => {
        if (type === HANDSHAKE.clientHello) {
          this.#sendFlightAgain();
        }
      })
    ) {
      return false;
    }
    for (
      let message = this.#assembler.take();
      message !== undefined;
      message = this.#assembler.take()
    ) {
      if ((message.type === HANDSHAKE.finished) !== isSealed) {
        throw new HandshakeFailure(ALERT.handshakeFailure, 'message in the wrong epoch', true);
      }
      this.#message(message);
    }
    return true;
  }

  /** RFC 5246 section 7.3: each message has its place, so each handler checks what must have come before it. */
  #message(message: HandshakeMessage): void {
    switch (message.type) {
      case HANDSHAKE.clientHello:
        this.#onClientHello(message);
        break;
      case HANDSHAKE.certificate:
        this.#onCertificate(message);
        break;
      case HANDSHAKE.clientKeyExchange:
        this.#onClientKeyExchange(message);
        break;
      case HANDSHAKE.certificateVerify:
        this.#onCertificateVerify(message);
        break;
      case HANDSHAKE.finished:
        this.#onFinished(message);
        break;
      default:
        throw new HandshakeFailure(
          ALERT.handshakeFailure,
          `unexpected handshake message ${message.type}`,
          false,
        );
    }
  }

  #onClientHello(message: HandshakeMessage): void {
    if (this.#hello !== undefined) {
      throw new HandshakeFailure(ALERT.handshakeFailure, 'second ClientHello', false);
    }
    const hello = readClientHello(message.body);
    const profile = SRTP_PROFILES.find((code) => hello.srtpProfiles.includes(code));
    if (profile === undefined) {
      throw new HandshakeFailure(ALERT.handshakeFailure, 'no common SRTP profile', false);
    }
    if (!hello.suites.includes(ECDHE_ECDSA_AES128_GCM_SHA256)) {
      throw new HandshakeFailure(ALERT.handshakeFailure, 'no common cipher suite', false);
    }
    if (hello.groups.length > 0 && !hello.groups.includes(SECP256R1)) {
      throw new HandshakeFailure(ALERT.handshakeFailure, 'no common curve', false);
    }
    this.#hello = hello;
    this.#profile = profile;
    this.#serverRandom = randomBytes(32);
    this.#transcript.push(message.whole);
    const ecdh = (this.#ecdh = createECDH('prime256v1'));
    const parameters = ecdhParameters(ecdh.generateKeys());
    const signature = createSign('sha256')
      .update(hello.random)
      .update(this.#serverRandom)
      .update(parameters)
      .sign(this.#certificate.privateKey);
    this.#state = 'handshake';
    this.#flight = [];
    this.#queue(HANDSHAKE.serverHello, serverHello(this.#serverRandom, hello, profile));
    this.#queue(HANDSHAKE.certificate, certificateMessage(this.#certificate.der));
    this.#queue(
      HANDSHAKE.serverKeyExchange,
      Buffer.concat([parameters, signedBlock(0x0403, signature)]),
    );
    this.#queue(HANDSHAKE.certificateRequest, certificateRequest());
    this.#queue(HANDSHAKE.serverHelloDone, Buffer.alloc(0));
    this.#sendFlight();
    this.#nextRetransmitMs = this.#nowMs + this.#retransmitMs;
  }

  #onCertificate(message: HandshakeMessage): void {
    if (this.#hello === undefined || this.#clientCertificate !== undefined) {
      throw new HandshakeFailure(ALERT.handshakeFailure, 'Certificate out of place', false);
    }
    const der = readCertificate(message.body);
    if (der === undefined) {
      throw new HandshakeFailure(ALERT.badCertificate, 'the peer sent no certificate', true);
    }
    if (!this.#fingerprints.some(({ hash, value }) => fingerprintOf(der, hash) === value)) {
      throw new HandshakeFailure(
        ALERT.badCertificate,
        'the certificate is not the one in the offer',
        true,
      );
    }
    const certificate = new X509Certificate(der);
    const problem = keyProblem(certificate.publicKey);
    if (problem !== undefined) {
      throw new HandshakeFailure(ALERT.badCertificate, problem, false);
    }
    this.#clientCertificate = certificate;
    this.#transcript.push(message.whole);
  }

  #onClientKeyExchange(message: HandshakeMessage): void {
    const hello = this.#hello;
    if (
      hello === undefined ||
      this.#ecdh === undefined ||
      this.#clientCertificate === undefined ||
      this.#masterSecret.length > 0
    ) {
      throw new HandshakeFailure(ALERT.handshakeFailure, 'ClientKeyExchange out of place', false);
    }
    const preMaster = this.#ecdh.computeSecret(new Reader(message.body).vector(1)); // throws unless the point lies on the curve
    this.#ecdh = undefined;
    this.#transcript.push(message.whole);
    this.#masterSecret = hello.hasExtendedMasterSecret
      ? prf(preMaster, 'extended master secret', this.#transcriptHash(), 48)
      : prf(preMaster, 'master secret', Buffer.concat([hello.random, this.#serverRandom]), 48);
  }

  #onCertificateVerify(message: HandshakeMessage): void {
    const certificate = this.#clientCertificate;
    if (certificate === undefined || this.#masterSecret.length === 0 || this.#isVerified) {
      throw new HandshakeFailure(ALERT.handshakeFailure, 'CertificateVerify out of place', false);
    }
    const reader = new Reader(message.body);
    const scheme = SIGNATURE_SCHEMES.get(reader.uint(2));
    const signature = reader.vector(2);
    const { publicKey } = certificate;
    if (scheme === undefined || publicKey.asymmetricKeyType !== scheme.keyType) {
      throw new HandshakeFailure(ALERT.decryptError, 'signature scheme not offered', true);
    }
    const padding = scheme.isPss ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING;
    const verify = createVerify(scheme.hash);
    for (const part of this.#transcript) {
      verify.update(part);
    }
    const key =
      scheme.keyType === 'rsa'
        ? {
            key: publicKey,
            padding,
            ...(scheme.isPss ? { saltLength: constants.RSA_PSS_SALTLEN_DIGEST } : {}),
          }
        : publicKey;
    if (!verify.verify(key, signature)) {
      throw new HandshakeFailure(ALERT.decryptError, 'the peer does not own its certificate', true);
    }
    this.#isVerified = true;
    this.#transcript.push(message.whole);
    this.#cipher = new RecordCipher(
      this.#masterSecret,
      this.#hello?.random ?? Buffer.alloc(0),
      this.#serverRandom,
    );
    const early = this.#early;
    this.#early = undefined;
    if (early !== undefined) {
      this.#record(early);
    }
  }

  #onFinished(message: HandshakeMessage): void {
    if (!this.#isVerified) {
      throw new HandshakeFailure(ALERT.handshakeFailure, 'Finished before CertificateVerify', true);
    }
    const wanted = prf(this.#masterSecret, 'client finished', this.#transcriptHash(), 12);
    if (message.body.length !== 12 || !timingSafeEqual(wanted, message.body)) {
      throw new HandshakeFailure(ALERT.decryptError, 'Finished does not verify', true);
    }
    this.#transcript.push(message.whole);
    const verifyData = prf(this.#masterSecret, 'server finished', this.#transcriptHash(), 12);
    this.#flight = [
      [CONTENT.changeCipherSpec, Buffer.from([1])],
      [CONTENT.handshake, handshakeMessage(HANDSHAKE.finished, this.#sendSequence++, verifyData)],
    ];
    this.#sendings = 0;
    this.#state = 'connected';
    this.#nextRetransmitMs = Number.POSITIVE_INFINITY;
    this.#transcript = [];
    this.#sendFlight();
    const [sender, receiver] = this.#srtp();
    this.#listener.onConnected(sender, receiver);
  }

  /** RFC 5764 section 4.2. */
  #srtp(): readonly [SrtpSender, SrtpReceiver] {
    const profile = this.#profile;
    const salt = saltBytes(profile);
    const seed = Buffer.concat([this.#hello?.random ?? Buffer.alloc(0), this.#serverRandom]);
    const material = prf(this.#masterSecret, 'EXTRACTOR-dtls_srtp', seed, 2 * (KEY_BYTES + salt));
    const key = (index: number): Buffer =>
      material.subarray(index * KEY_BYTES, (index + 1) * KEY_BYTES);
    const saltOf = (index: number): Buffer =>
      material.subarray(2 * KEY_BYTES + index * salt, 2 * KEY_BYTES + (index + 1) * salt);
    return [
      new SrtpSender(profile, key(1), saltOf(1)),
      new SrtpReceiver(profile, key(0), saltOf(0)),
    ];
  }

  #transcriptHash(): Buffer {
    const hash = createHash('sha256');
    for (const part of this.#transcript) {
      hash.update(part);
    }
    return hash.digest();
  }

  #queue(type: number, body: Buffer): void {
    const message = handshakeMessage(type, this.#sendSequence++, body);
    this.#transcript.push(message);
    this.#flight.push([CONTENT.handshake, message]);
  }

  /** Answers a repeated flight of the client's, at most a few times a second whatever is sent to us. */
  #sendFlightAgain(): void {
    if (this.#nowMs - this.#lastReplyMs >= 200) {
      this.#sendFlight();
    }
  }

  /** Every message of ours fits one record, and the first flight (a certificate of 300 bytes) fits one datagram. */
  #sendFlight(): void {
    if (++this.#sendings > MAX_FLIGHT_SENDINGS) {
      return;
    }
    this.#lastReplyMs = this.#nowMs;
    let datagram: Buffer[] = [];
    let bytes = 0;
    for (const [type, fragment] of this.#flight) {
      const isFinished = type === CONTENT.handshake && fragment[0] === HANDSHAKE.finished;
      const record =
        isFinished && this.#cipher !== undefined
          ? this.#cipher.seal(type, fragment)
          : plainRecord(type, this.#plainSequence++, fragment);
      if (bytes + record.length > FLIGHT_BYTES && datagram.length > 0) {
        this.#listener.send(Buffer.concat(datagram));
        datagram = [];
        bytes = 0;
      }
      datagram.push(record);
      bytes += record.length;
    }
    if (datagram.length > 0) {
      this.#listener.send(Buffer.concat(datagram));
    }
  }
}

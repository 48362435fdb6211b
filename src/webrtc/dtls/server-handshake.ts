// The server's side of the DTLS 1.2 handshake: checks each message of the client, derives the keys
// (RFC 5246, RFC 7627).
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
import {
  KEY_BYTES,
  saltBytes,
  SRTP_PROFILES,
  SrtpReceiver,
  SrtpSender,
  type SrtpProfile,
} from '../srtp/srtp.ts';
import { fingerprintOf, keyProblem, type Certificate } from './certificate.ts';
import type { FlightSender } from './flight-sender.ts';
import { ALERT, HandshakeFailure } from './handshake-failure.ts';
import {
  certificateMessage,
  certificateRequest,
  ecdhParameters,
  ECDHE_ECDSA_AES128_GCM_SHA256,
  ECDSA_SECP256R1_SHA256,
  HANDSHAKE,
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
import { prf, RecordCipher } from './records.ts';

/** The digest of a certificate, as the SDP gives it. */
export interface Fingerprint {
  /** As Node names it: sha256, sha384 or sha512. */
  readonly hash: string;
  /** Upper-case hexadecimal, colons between the bytes. */
  readonly value: string;
}

/** The keys for both directions of SRTP. */
export interface SrtpKeys {
  readonly sender: SrtpSender;
  readonly receiver: SrtpReceiver;
}

const MASTER_SECRET_BYTES = 48; // RFC 5246 section 8.1
const VERIFY_DATA_BYTES = 12; // RFC 5246 section 7.4.9

const handshakeFailure = (message: string): HandshakeFailure =>
  new HandshakeFailure(ALERT.handshakeFailure, message, false);

/**
 * Takes the client's messages in order, each once. Each message has its place (RFC 5246 section
 * 7.3): its handler checks what must have come before it.
 */
export class ServerHandshake {
  readonly #certificate: Certificate;
  readonly #fingerprints: readonly Fingerprint[];
  readonly #flights: FlightSender;
  #transcript: Buffer[] = [];
  #nextMessageSequence = 0;
  #hello: ClientHello | undefined = undefined;
  #serverRandom: Buffer = Buffer.alloc(0);
  #profile: SrtpProfile = SRTP_PROFILES[0];
  #ecdh: ECDH | undefined = undefined;
  #clientCertificate: X509Certificate | undefined = undefined;
  #masterSecret: Buffer = Buffer.alloc(0);
  #cipher: RecordCipher | undefined = undefined;
  #srtpKeys: SrtpKeys | undefined = undefined;

  /** @param fingerprints those of the offer: the client's certificate must match one of them */
  constructor(
    certificate: Certificate,
    fingerprints: readonly Fingerprint[],
    flights: FlightSender,
  ) {
    this.#certificate = certificate;
    this.#fingerprints = fingerprints;
    this.#flights = flights;
  }

  /** Whether a ClientHello was accepted. */
  get isStarted(): boolean {
    return this.#hello !== undefined;
  }
  /** The keys of epoch 1, once the client has proven that it owns its certificate. */
  get cipher(): RecordCipher | undefined {
    return this.#cipher;
  }
  /** Set once the client's Finished was correct: the handshake is done. */
  get srtpKeys(): SrtpKeys | undefined {
    return this.#srtpKeys;
  }

  /**
   * Processes one message, and sends the flight that answers it.
   * @throws HandshakeFailure; RangeError or an error of node:crypto for malformed contents
   */
  receive(message: HandshakeMessage, nowMs: number): void {
    switch (message.type) {
      case HANDSHAKE.clientHello:
        this.#onClientHello(message, nowMs);
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
        this.#onFinished(message, nowMs);
        break;
      default:
        throw handshakeFailure(`unexpected handshake message ${message.type}`);
    }
  }

  /** Erases the keys. */
  clear(): void {
    this.#cipher = undefined;
    this.#srtpKeys = undefined;
    this.#ecdh = undefined;
    this.#masterSecret.fill(0);
    this.#transcript = [];
  }

  #onClientHello(message: HandshakeMessage, nowMs: number): void {
    if (this.#hello !== undefined) {
      throw handshakeFailure('second ClientHello');
    }
    const hello = readClientHello(message.body);
    const profile = SRTP_PROFILES.find((code) => hello.srtpProfiles.includes(code));
    if (profile === undefined) {
      throw handshakeFailure('no common SRTP profile');
    }
    if (!hello.suites.includes(ECDHE_ECDSA_AES128_GCM_SHA256)) {
      throw handshakeFailure('no common cipher suite');
    }
    if (hello.groups.length > 0 && !hello.groups.includes(SECP256R1)) {
      throw handshakeFailure('no common curve');
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
    const keyExchange = Buffer.concat([parameters, signedBlock(ECDSA_SECP256R1_SHA256, signature)]);
    const messages = [
      this.#message(HANDSHAKE.serverHello, serverHello(this.#serverRandom, hello, profile)),
      this.#message(HANDSHAKE.certificate, certificateMessage(this.#certificate.der)),
      this.#message(HANDSHAKE.serverKeyExchange, keyExchange),
      this.#message(HANDSHAKE.certificateRequest, certificateRequest()),
      this.#message(HANDSHAKE.serverHelloDone, Buffer.alloc(0)),
    ];
    this.#transcript.push(...messages);
    this.#flights.sendHello(messages, nowMs);
  }

  #onCertificate(message: HandshakeMessage): void {
    if (this.#hello === undefined || this.#clientCertificate !== undefined) {
      throw handshakeFailure('Certificate out of place');
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
      throw handshakeFailure('ClientKeyExchange out of place');
    }
    // Throws unless the point lies on the curve.
    const preMaster = this.#ecdh.computeSecret(new Reader(message.body).vector(1));
    this.#ecdh = undefined;
    this.#transcript.push(message.whole);
    const [label, seed] = hello.hasExtendedMasterSecret
      ? ['extended master secret', this.#transcriptHash()] // RFC 7627 section 4
      : ['master secret', Buffer.concat([hello.random, this.#serverRandom])];
    this.#masterSecret = prf(preMaster, label, seed, MASTER_SECRET_BYTES);
  }

  #onCertificateVerify(message: HandshakeMessage): void {
    const certificate = this.#clientCertificate;
    const hello = this.#hello;
    if (
      hello === undefined ||
      certificate === undefined ||
      this.#masterSecret.length === 0 ||
      this.#cipher !== undefined
    ) {
      throw handshakeFailure('CertificateVerify out of place');
    }
    const reader = new Reader(message.body);
    const scheme = SIGNATURE_SCHEMES.get(reader.uint(2));
    const signature = reader.vector(2);
    const { publicKey } = certificate;
    if (scheme === undefined || publicKey.asymmetricKeyType !== scheme.keyType) {
      throw new HandshakeFailure(ALERT.decryptError, 'signature scheme not offered', true);
    }
    const verify = createVerify(scheme.hash);
    for (const part of this.#transcript) {
      verify.update(part);
    }
    const padding = scheme.isPss ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING;
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
    this.#transcript.push(message.whole);
    this.#cipher = new RecordCipher(this.#masterSecret, hello.random, this.#serverRandom);
  }

  #onFinished(message: HandshakeMessage, nowMs: number): void {
    const cipher = this.#cipher;
    if (cipher === undefined) {
      throw new HandshakeFailure(ALERT.handshakeFailure, 'Finished before CertificateVerify', true);
    }
    const expected = this.#verifyData('client finished');
    if (message.body.length !== VERIFY_DATA_BYTES || !timingSafeEqual(expected, message.body)) {
      throw new HandshakeFailure(ALERT.decryptError, 'Finished does not verify', true);
    }
    this.#transcript.push(message.whole);
    const finished = this.#message(HANDSHAKE.finished, this.#verifyData('server finished'));
    this.#srtpKeys = this.#deriveSrtpKeys();
    this.#transcript = [];
    this.#flights.sendFinished(finished, cipher, nowMs);
  }

  /** RFC 5246 section 7.4.9. */
  #verifyData(label: string): Buffer {
    return prf(this.#masterSecret, label, this.#transcriptHash(), VERIFY_DATA_BYTES);
  }

  /** RFC 5764 section 4.2: client key, server key, client salt, server salt. */
  #deriveSrtpKeys(): SrtpKeys {
    const profile = this.#profile;
    const salt = saltBytes(profile);
    const seed = Buffer.concat([this.#hello?.random ?? Buffer.alloc(0), this.#serverRandom]);
    const material = prf(this.#masterSecret, 'EXTRACTOR-dtls_srtp', seed, 2 * (KEY_BYTES + salt));
    const keyOf = (index: number): Buffer =>
      material.subarray(index * KEY_BYTES, (index + 1) * KEY_BYTES);
    const saltOf = (index: number): Buffer =>
      material.subarray(2 * KEY_BYTES + index * salt, 2 * KEY_BYTES + (index + 1) * salt);
    return {
      sender: new SrtpSender(profile, keyOf(1), saltOf(1)),
      receiver: new SrtpReceiver(profile, keyOf(0), saltOf(0)),
    };
  }

  #transcriptHash(): Buffer {
    const hash = createHash('sha256');
    for (const part of this.#transcript) {
      hash.update(part);
    }
    return hash.digest();
  }

  #message(type: number, body: Buffer): Buffer {
    return handshakeMessage(type, this.#nextMessageSequence++, body);
  }
}

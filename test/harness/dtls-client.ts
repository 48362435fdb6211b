// A DTLS 1.2 client written for lying: it runs the handshake by the book, except where a test tells
// it to deviate.
import {
  constants,
  createCipheriv,
  createECDH,
  createHash,
  createHmac,
  createSign,
  randomBytes,
  type KeyObject,
} from 'node:crypto';

export interface ClientQuirks {
  /** Leave a message out. */
  readonly skip?: 'certificate' | 'certificateVerify' | 'clientKeyExchange';
  /** Send no certificate in the Certificate message. */
  readonly emptyCertificate?: boolean;
  readonly badFinished?: boolean;
  readonly badPoint?: boolean;
  readonly wrongTranscript?: boolean;
  readonly scheme?: number;
  /** Send Finished in the clear. */
  readonly plainFinished?: boolean;
  readonly withoutExtendedMasterSecret?: boolean;
  readonly suites?: readonly number[];
  readonly srtpProfiles?: readonly number[];
  readonly groups?: readonly number[];
  /** Split every message into fragments of this many bytes, in reverse order, each twice. */
  readonly shuffleFragments?: number;
  readonly padding?: number;
  readonly version?: number;
}

export interface ClientIdentity {
  readonly der: Buffer;
  readonly privateKey: KeyObject;
}

const record = (type: number, epoch: number, sequence: number, body: Buffer): Buffer => {
  const head = Buffer.alloc(13);
  head[0] = type;
  head.writeUInt16BE(0xfefd, 1);
  head.writeUInt16BE(epoch, 3);
  head.writeUIntBE(sequence, 5, 6);
  head.writeUInt16BE(body.length, 11);
  return Buffer.concat([head, body]);
};

const message = (type: number, sequence: number, body: Buffer, at = 0, part = body): Buffer => {
  const head = Buffer.alloc(12);
  head[0] = type;
  head.writeUIntBE(body.length, 1, 3);
  head.writeUInt16BE(sequence, 4);
  head.writeUIntBE(at, 6, 3);
  head.writeUIntBE(part.length, 9, 3);
  return Buffer.concat([head, part]);
};

const vector = (lengthBytes: number, body: Buffer): Buffer => {
  const head = Buffer.alloc(lengthBytes);
  head.writeUIntBE(body.length, 0, lengthBytes);
  return Buffer.concat([head, body]);
};

const words = (values: readonly number[]): Buffer =>
  Buffer.from(values.flatMap((value) => [value >> 8, value & 255]));

function prf(secret: Buffer, label: string, seed: Buffer, length: number): Buffer {
  const whole = Buffer.concat([Buffer.from(label), seed]);
  let a = whole;
  let out = Buffer.alloc(0);
  while (out.length < length) {
    a = createHmac('sha256', secret).update(a).digest();
    out = Buffer.concat([
      out,
      createHmac('sha256', secret)
        .update(Buffer.concat([a, whole]))
        .digest(),
    ]);
  }
  return out.subarray(0, length);
}

export class LyingClient {
  readonly #identity: ClientIdentity;
  readonly #quirks: ClientQuirks;
  readonly #random = randomBytes(32);
  readonly #transcript: Buffer[] = [];
  #recordSequence = 0;
  #messageSequence = 0;
  #sealedSequence = 0;
  #writeKey = Buffer.alloc(16);
  #writeSalt = Buffer.alloc(4);

  constructor(identity: ClientIdentity, quirks: ClientQuirks = {}) {
    this.#identity = identity;
    this.#quirks = quirks;
  }

  hello(): Buffer[] {
    const extension = (type: number, data: Buffer): Buffer =>
      Buffer.concat([words([type]), vector(2, data)]);
    const extensions = [
      extension(10, vector(2, words(this.#quirks.groups ?? [29, 23]))),
      extension(
        14,
        Buffer.concat([vector(2, words(this.#quirks.srtpProfiles ?? [7, 1])), Buffer.from([0])]),
      ),
      extension(11, Buffer.from([1, 0])),
      extension(13, vector(2, words([0x0403]))),
      ...(this.#quirks.withoutExtendedMasterSecret === true
        ? []
        : [extension(23, Buffer.alloc(0))]),
      ...(this.#quirks.padding === undefined
        ? []
        : [extension(21, Buffer.alloc(this.#quirks.padding))]),
    ];
    const body = Buffer.concat([
      words([this.#quirks.version ?? 0xfefd]),
      this.#random,
      Buffer.from([0, 0]),
      vector(2, words(this.#quirks.suites ?? [0xc02b])),
      Buffer.from([1, 0]),
      vector(2, Buffer.concat(extensions)),
    ]);
    return this.#send(1, body);
  }

  /** The client's second flight, in answer to the server's, which must have come whole. */
  respond(flight: readonly Buffer[]): Buffer[] {
    const quirks = this.#quirks;
    let serverRandom: Buffer = Buffer.alloc(0);
    let serverKey: Buffer = Buffer.alloc(0);
    for (const datagram of flight) {
      for (let at = 0; at < datagram.length;) {
        const end = at + 13 + datagram.readUInt16BE(at + 11);
        const whole = datagram.subarray(at + 13, end);
        if (datagram[at] === 22) {
          this.#transcript.push(Buffer.from(whole));
          if (whole[0] === 2) {
            serverRandom = whole.subarray(14, 46);
          }
          if (whole[0] === 12) {
            serverKey = whole.subarray(16, 16 + (whole[15] ?? 0));
          }
        }
        at = end;
      }
    }
    const out: Buffer[] = [];
    if (quirks.skip !== 'certificate') {
      out.push(
        ...this.#send(
          11,
          vector(
            3,
            quirks.emptyCertificate === true ? Buffer.alloc(0) : vector(3, this.#identity.der),
          ),
        ),
      );
    }
    const ecdh = createECDH('prime256v1');
    const point = ecdh.generateKeys();
    const preMaster = ecdh.computeSecret(serverKey);
    if (quirks.badPoint === true) {
      point[20] = (point[20] ?? 0) ^ 1;
    }
    if (quirks.skip !== 'clientKeyExchange') {
      out.push(...this.#send(16, vector(1, point)));
    }
    const randoms = Buffer.concat([this.#random, serverRandom]);
    const master =
      quirks.withoutExtendedMasterSecret === true
        ? prf(preMaster, 'master secret', randoms, 48)
        : prf(preMaster, 'extended master secret', this.#hash(), 48);
    const block = prf(master, 'key expansion', Buffer.concat([serverRandom, this.#random]), 40);
    this.#writeKey = Buffer.from(block.subarray(0, 16));
    this.#writeSalt = Buffer.from(block.subarray(32, 36));
    if (quirks.skip !== 'certificateVerify') {
      out.push(...this.#send(15, this.#proof()));
    }
    out.push(record(20, 0, this.#recordSequence++, Buffer.from([1])));
    const verifyData = prf(master, 'client finished', this.#hash(), 12);
    if (quirks.badFinished === true) {
      verifyData[0] = (verifyData[0] ?? 0) ^ 1;
    }
    const finished = message(20, this.#messageSequence++, verifyData);
    out.push(
      quirks.plainFinished === true
        ? record(22, 0, this.#recordSequence++, finished)
        : this.seal(22, finished),
    );
    return out;
  }

  #proof(): Buffer {
    const scheme =
      this.#quirks.scheme ??
      (this.#identity.privateKey.asymmetricKeyType === 'rsa' ? 0x0804 : 0x0403);
    const hash = { 4: 'sha256', 5: 'sha384', 6: 'sha512', 8: 'sha256' }[scheme >> 8] ?? 'sha1';
    const sign = createSign(hash)
      .update(Buffer.concat(this.#transcript))
      .update(this.#quirks.wrongTranscript === true ? 'x' : '');
    const signature = sign.sign(
      scheme >> 8 === 8
        ? {
            key: this.#identity.privateKey,
            padding: constants.RSA_PKCS1_PSS_PADDING,
            saltLength: 32,
          }
        : this.#identity.privateKey,
    );
    return Buffer.concat([words([scheme]), vector(2, signature)]);
  }

  seal(type: number, plain: Buffer): Buffer {
    const sequence = this.#sealedSequence++;
    const explicit = record(type, 1, sequence, Buffer.alloc(0)).subarray(3, 11);
    const cipher = createCipheriv(
      'aes-128-gcm',
      this.#writeKey,
      Buffer.concat([this.#writeSalt, explicit]),
    );
    cipher.setAAD(
      Buffer.concat([
        explicit,
        Buffer.from([type, 0xfe, 0xfd, plain.length >> 8, plain.length & 255]),
      ]),
    );
    return record(
      type,
      1,
      sequence,
      Buffer.concat([explicit, cipher.update(plain), cipher.final(), cipher.getAuthTag()]),
    );
  }

  #hash(): Buffer {
    return createHash('sha256').update(Buffer.concat(this.#transcript)).digest();
  }

  #send(type: number, body: Buffer): Buffer[] {
    const sequence = this.#messageSequence++;
    this.#transcript.push(message(type, sequence, body));
    const size = this.#quirks.shuffleFragments ?? body.length;
    const parts: Buffer[] = [];
    for (let at = 0; at < Math.max(1, body.length); at += size) {
      parts.push(message(type, sequence, body, at, body.subarray(at, at + size)));
    }
    if (this.#quirks.shuffleFragments !== undefined) {
      parts.push(
        ...parts
          .splice(0)
          .toReversed()
          .flatMap((part) => [part, part]),
      );
    }
    return parts.map((part) => record(22, 0, this.#recordSequence++, part));
  }
}

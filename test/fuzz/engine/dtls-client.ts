// A DTLS client for fuzz targets: it follows the protocol wherever it is not told otherwise.
import { createCipheriv, createECDH, createHash, createSign, type ECDH } from 'node:crypto';
import { createCertificate } from '../../../src/webrtc/dtls/certificate.ts';
import { HANDSHAKE, handshakeMessage, signedBlock } from '../../../src/webrtc/dtls/handshake.ts';
import { CONTENT, plainRecord, prf } from '../../../src/webrtc/dtls/records.ts';
import type { Step } from './script.ts';

/** What a step does; without a payload by the book, else with it. Bit 4: in fragments. */
export const OP = {
  raw: 0,
  hello: 1,
  certificate: 2,
  keyExchange: 3,
  verify: 4,
  finished: 5,
  message: 6,
  fragments: 7,
  sealed: 8,
  sealedMessage: 9,
  again: 10,
  poll: 11,
} as const;
const FRAGMENT_BYTES = 40;

export const clientCertificate = createCertificate(Date.UTC(2026, 0, 1));
const RANDOM = Buffer.alloc(32, 7);
/** Curve P-256, both SRTP profiles, extended master secret, uncompressed points. */
const HELLO = Buffer.concat([
  Buffer.from([0xfe, 0xfd]),
  RANDOM,
  Buffer.from(
    '0000 0002c02b 0100 001d 000a000400020017 000e000700040007000100 00170000 000b00020100'.replaceAll(
      ' ',
      '',
    ),
    'hex',
  ),
]);
/** The client's side of the keys. */
export class DtlsClient {
  readonly transcript: Buffer[] = [];
  #serverRandom: Buffer = Buffer.alloc(32);
  #serverKey: Buffer = Buffer.alloc(0);
  #clientRandom: Buffer = RANDOM;
  #ecdh: ECDH | undefined;
  #master: Buffer = Buffer.alloc(48);
  #key: Buffer = Buffer.alloc(16);
  #salt: Buffer = Buffer.alloc(4);
  #sealed = 0;
  #records = 0;
  #messages = 0;

  hear(datagram: Buffer): void {
    for (let at = 0; at + 13 <= datagram.length;) {
      const end = at + 13 + datagram.readUInt16BE(at + 11);
      const body = datagram.subarray(at + 13, end);
      if (datagram[at] === CONTENT.handshake && datagram.readUInt16BE(at + 3) === 0) {
        this.transcript.push(Buffer.from(body));
        if (body[0] === HANDSHAKE.serverHello) {
          this.#serverRandom = Buffer.from(body.subarray(14, 46));
        }
        if (body[0] === HANDSHAKE.serverKeyExchange) {
          this.#serverKey = Buffer.from(body.subarray(16, 16 + (body[15] ?? 0)));
        }
      }
      at = end;
    }
  }

  body({ op, payload }: Step): readonly [type: number, body: Buffer] {
    switch (op & 15) {
      case OP.hello:
        if (payload.length >= 34) {
          this.#clientRandom = Buffer.from(payload.subarray(2, 34));
        }
        return [HANDSHAKE.clientHello, payload.length === 0 ? HELLO : payload];
      case OP.certificate:
        return [
          HANDSHAKE.certificate,
          certificates(payload.length === 0 ? clientCertificate.der : payload),
        ];
      case OP.keyExchange:
        return [HANDSHAKE.clientKeyExchange, payload.length === 0 ? this.#keyExchange() : payload];
      case OP.verify:
        return [HANDSHAKE.certificateVerify, payload.length === 0 ? this.#proof() : payload];
      default:
        return [payload[0] ?? 0, payload.subarray(1)];
    }
  }

  plain(type: number, body: Buffer, isFragmented: boolean): Buffer[] {
    const whole = handshakeMessage(type, this.#messages++, body);
    this.transcript.push(whole);
    const size = isFragmented ? FRAGMENT_BYTES : Math.max(1, body.length);
    const out: Buffer[] = [];
    for (let from = 0; from === 0 || from < body.length; from += size) {
      const part = body.subarray(from, from + size);
      const fragment = Buffer.concat([whole.subarray(0, 12), part]);
      fragment.writeUIntBE(from, 6, 3);
      fragment.writeUIntBE(part.length, 9, 3);
      out.push(plainRecord(CONTENT.handshake, this.#records++, fragment));
    }
    if (type === HANDSHAKE.clientKeyExchange) {
      this.#derive();
    }
    return out;
  }

  fragments(content: Buffer): Buffer {
    return plainRecord(CONTENT.handshake, this.#records++, content);
  }

  finished(verifyData: Buffer): Buffer {
    const right = prf(
      this.#master,
      'client finished',
      createHash('sha256').update(Buffer.concat(this.transcript)).digest(),
      12,
    );
    return this.sealedMessage(HANDSHAKE.finished, verifyData.length === 0 ? right : verifyData);
  }

  sealedMessage(type: number, body: Buffer): Buffer {
    const whole = handshakeMessage(type, this.#messages++, body);
    this.transcript.push(whole);
    return this.seal(CONTENT.handshake, whole);
  }

  seal(type: number, plain: Buffer): Buffer {
    const head = plainRecord(type, this.#sealed++, Buffer.alloc(8 + plain.length + 16));
    head.writeUInt16BE(1, 3);
    const explicit = Buffer.from(head.subarray(3, 11));
    explicit.copy(head, 13);
    const cipher = createCipheriv('aes-128-gcm', this.#key, Buffer.concat([this.#salt, explicit]));
    cipher.setAAD(
      Buffer.concat([
        explicit,
        Buffer.from([type, 0xfe, 0xfd, plain.length >> 8, plain.length & 255]),
      ]),
    );
    cipher.update(plain).copy(head, 21);
    cipher.final();
    cipher.getAuthTag().copy(head, 21 + plain.length);
    return head;
  }

  #keyExchange(): Buffer {
    this.#ecdh ??= createECDH('prime256v1');
    const point = this.#ecdh.generateKeys();
    return Buffer.concat([Buffer.from([point.length]), point]);
  }

  #proof(): Buffer {
    return signedBlock(
      0x0403,
      createSign('sha256')
        .update(Buffer.concat(this.transcript))
        .sign(clientCertificate.privateKey),
    );
  }

  /**
   * With the extended master secret, as HELLO asks for; other hellos end before they get here, or
   * at Finished.
   */
  #derive(): void {
    if (this.#ecdh === undefined || this.#serverKey.length === 0) {
      return;
    }
    const secret = this.#ecdh.computeSecret(this.#serverKey);
    this.#master = prf(
      secret,
      'extended master secret',
      createHash('sha256').update(Buffer.concat(this.transcript)).digest(),
      48,
    );
    const block = prf(
      this.#master,
      'key expansion',
      Buffer.concat([this.#serverRandom, this.#clientRandom]),
      40,
    );
    this.#key = block.subarray(0, 16);
    this.#salt = block.subarray(32, 36);
  }
}

function certificates(der: Buffer): Buffer {
  const out = Buffer.alloc(6 + der.length);
  out.writeUIntBE(der.length + 3, 0, 3);
  out.writeUIntBE(der.length, 3, 3);
  der.copy(out, 6);
  return out;
}

// The DTLS 1.2 record layer (RFC 6347): framing, AES-128-GCM (RFC 5288), replay protection, and the
// PRF.
import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { ReplayWindow } from '../srtp/replay-window.ts';

/** Content types (RFC 5246 section 6.2.1). */
export const CONTENT = { changeCipherSpec: 20, alert: 21, handshake: 22, data: 23 } as const;
const DTLS_1_2 = 0xfefd;
const RECORD_HEADER_BYTES = 13;
const EXPLICIT_NONCE_BYTES = 8;
const TAG_BYTES = 16;

/** One record. `whole` includes the header. */
export interface DtlsRecord {
  readonly type: number;
  readonly epoch: number;
  readonly sequence: number;
  readonly fragment: Buffer;
  readonly whole: Buffer;
}

/** The records of a datagram, up to the first malformed one. They are views into `datagram`. */
export function* recordsOf(datagram: Buffer): Generator<DtlsRecord> {
  let offset = 0;
  while (offset + RECORD_HEADER_BYTES <= datagram.length) {
    const end = offset + RECORD_HEADER_BYTES + datagram.readUInt16BE(offset + 11);
    // Every DTLS version begins with 0xfe. The record of a ClientHello may say DTLS 1.0 (0xfeff).
    if (end > datagram.length || datagram[offset + 1] !== 0xfe) {
      return;
    }
    yield {
      type: datagram[offset] ?? 0,
      epoch: datagram.readUInt16BE(offset + 3),
      sequence: datagram.readUIntBE(offset + 5, 6),
      fragment: datagram.subarray(offset + RECORD_HEADER_BYTES, end),
      whole: datagram.subarray(offset, end),
    };
    offset = end;
  }
}

/** A record of epoch 0, unencrypted. */
export function plainRecord(type: number, sequence: number, fragment: Buffer): Buffer {
  const out = Buffer.alloc(RECORD_HEADER_BYTES + fragment.length);
  writeHeader(out, type, 0, sequence, fragment.length);
  fragment.copy(out, RECORD_HEADER_BYTES);
  return out;
}

function writeHeader(
  out: Buffer,
  type: number,
  epoch: number,
  sequence: number,
  length: number,
): void {
  out[0] = type;
  out.writeUInt16BE(DTLS_1_2, 1);
  out.writeUInt16BE(epoch, 3);
  out.writeUIntBE(sequence, 5, 6);
  out.writeUInt16BE(length, 11);
}

/** Encrypts and decrypts the records of epoch 1, as the server. */
export class RecordCipher {
  readonly #writeKey: Buffer;
  readonly #readKey: Buffer;
  readonly #writeSalt: Buffer;
  readonly #readSalt: Buffer;
  readonly #window = new ReplayWindow();
  #sequence = 0;

  /** Derives the keys (RFC 5246 section 6.3). */
  constructor(masterSecret: Buffer, clientRandom: Buffer, serverRandom: Buffer) {
    const block = prf(
      masterSecret,
      'key expansion',
      Buffer.concat([serverRandom, clientRandom]),
      40,
    );
    this.#readKey = block.subarray(0, 16);
    this.#writeKey = block.subarray(16, 32);
    this.#readSalt = block.subarray(32, 36);
    this.#writeSalt = block.subarray(36, 40);
  }

  /** An encrypted record with the next sequence number. */
  seal(type: number, plain: Buffer): Buffer {
    const sequence = this.#sequence++;
    const out = Buffer.alloc(RECORD_HEADER_BYTES + EXPLICIT_NONCE_BYTES + plain.length + TAG_BYTES);
    writeHeader(out, type, 1, sequence, out.length - RECORD_HEADER_BYTES);
    const explicit = out.subarray(RECORD_HEADER_BYTES, RECORD_HEADER_BYTES + EXPLICIT_NONCE_BYTES);
    out.copy(explicit, 0, 3, 11); // epoch and sequence number: unique for each record of a key
    const cipher = createCipheriv(
      'aes-128-gcm',
      this.#writeKey,
      Buffer.concat([this.#writeSalt, explicit]),
    );
    cipher.setAAD(additionalData(type, explicit, plain.length));
    cipher.update(plain).copy(out, RECORD_HEADER_BYTES + EXPLICIT_NONCE_BYTES);
    cipher.final();
    cipher.getAuthTag().copy(out, out.length - TAG_BYTES);
    return out;
  }

  /** @returns the plain fragment; undefined if the record is not authentic or a replay */
  open(record: DtlsRecord): Buffer | undefined {
    const { fragment } = record;
    if (
      record.epoch !== 1 ||
      fragment.length < EXPLICIT_NONCE_BYTES + TAG_BYTES ||
      !this.#window.isNew(record.sequence)
    ) {
      return undefined;
    }
    const epochAndSequence = record.whole.subarray(3, 11);
    const explicit = fragment.subarray(0, EXPLICIT_NONCE_BYTES);
    const sealed = fragment.subarray(EXPLICIT_NONCE_BYTES, fragment.length - TAG_BYTES);
    const decipher = createDecipheriv(
      'aes-128-gcm',
      this.#readKey,
      Buffer.concat([this.#readSalt, explicit]),
      { authTagLength: TAG_BYTES },
    );
    decipher.setAAD(additionalData(record.type, epochAndSequence, sealed.length));
    decipher.setAuthTag(fragment.subarray(fragment.length - TAG_BYTES));
    const plain = decipher.update(sealed);
    try {
      decipher.final();
    } catch {
      return undefined;
    }
    this.#window.accept(record.sequence);
    return plain;
  }
}

/** RFC 5246 section 6.2.3.3. */
function additionalData(type: number, epochAndSequence: Buffer, length: number): Buffer {
  const out = Buffer.alloc(13);
  epochAndSequence.copy(out, 0);
  out[8] = type;
  out.writeUInt16BE(DTLS_1_2, 9);
  out.writeUInt16BE(length, 11);
  return out;
}

/** The TLS 1.2 pseudorandom function with SHA-256 (RFC 5246 section 5). */
export function prf(secret: Buffer, label: string, seed: Buffer, length: number): Buffer {
  const labelled = Buffer.concat([Buffer.from(label, 'latin1'), seed]);
  const out: Buffer[] = [];
  let chained = labelled;
  for (let bytes = 0; bytes < length; bytes += 32) {
    chained = createHmac('sha256', secret).update(chained).digest();
    out.push(createHmac('sha256', secret).update(chained).update(labelled).digest());
  }
  return Buffer.concat(out).subarray(0, length);
}

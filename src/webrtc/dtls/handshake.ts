// DTLS 1.2 handshake messages (RFC 5246, RFC 6347): reassembles fragments, parses and writes each
// message.

/** Handshake message types. */
export const HANDSHAKE = {
  clientHello: 1,
  serverHello: 2,
  certificate: 11,
  serverKeyExchange: 12,
  certificateRequest: 13,
  serverHelloDone: 14,
  certificateVerify: 15,
  clientKeyExchange: 16,
  finished: 20,
} as const;

/** A whole message of the client. */
export interface HandshakeMessage {
  readonly type: number;
  readonly sequence: number;
  readonly body: Buffer;
  /** The message as one fragment: the form that is hashed (RFC 6347 section 4.2.6). */
  readonly whole: Buffer;
}

const HEADER_BYTES = 12;
/** RFC 6347 allows 2^24 - 1. The longest that a client sends is its Certificate, of a few kB. */
const MAX_MESSAGE_BYTES = 16_384;
/** Messages kept from the next one on. A client's flight has five. */
const MAX_AHEAD = 6;
/** Total size of the messages kept ahead of the next one. A client's flight has about 1.5 kB. */
const MAX_AHEAD_BYTES = 8_192;

/** A message as one fragment, with its header. */
export function handshakeMessage(type: number, sequence: number, body: Buffer): Buffer {
  const out = Buffer.alloc(HEADER_BYTES + body.length);
  out[0] = type;
  out.writeUIntBE(body.length, 1, 3);
  out.writeUInt16BE(sequence, 4);
  out.writeUIntBE(body.length, 9, 3);
  body.copy(out, HEADER_BYTES);
  return out;
}

/**
 * An incomplete message. `have`: one bit for each byte received; `missing`: number of the other
 * bytes.
 */
interface Assembly {
  readonly type: number;
  readonly body: Buffer;
  readonly have: Uint8Array;
  missing: number;
}

/**
 * Gives the messages of one client in order, each once. Fragments may be reordered, repeated or
 * overlap.
 */
export class HandshakeAssembler {
  readonly #pending = new Map<number, Assembly>();
  #next = 0;

  /** Sequence number of the next message that `take` returns. */
  get next(): number {
    return this.#next;
  }

  /**
   * Adds the fragments in one handshake record.
   * @param onRepeated called for a fragment of a message that `take` has returned already
   * @returns false if the record is malformed, or needs more memory than allowed
   */
  add(record: Buffer, onRepeated: (type: number) => void): boolean {
    let offset = 0;
    while (offset < record.length) {
      if (offset + HEADER_BYTES > record.length) {
        return false;
      }
      const type = record[offset] ?? 0;
      const length = record.readUIntBE(offset + 1, 3);
      const sequence = record.readUInt16BE(offset + 4);
      const at = record.readUIntBE(offset + 6, 3);
      const bytes = record.readUIntBE(offset + 9, 3);
      const start = offset + HEADER_BYTES;
      if (length > MAX_MESSAGE_BYTES || at + bytes > length || start + bytes > record.length) {
        return false;
      }
      if (sequence < this.#next) {
        onRepeated(type);
      } else if (
        sequence < this.#next + MAX_AHEAD &&
        !this.#put(type, length, sequence, at, record.subarray(start, start + bytes))
      ) {
        return false;
      }
      offset = start + bytes;
    }
    return true;
  }

  #put(type: number, length: number, sequence: number, at: number, fragment: Buffer): boolean {
    let assembly = this.#pending.get(sequence);
    if (assembly === undefined) {
      if (sequence !== this.#next && this.#aheadBytes() + length > MAX_AHEAD_BYTES) {
        return false;
      }
      const have = new Uint8Array((length + 7) >> 3);
      assembly = { type, body: Buffer.alloc(length), have, missing: length };
      this.#pending.set(sequence, assembly);
    }
    if (assembly.type !== type || assembly.body.length !== length) {
      return false;
    }
    const { have, body } = assembly;
    for (let index = 0; index < fragment.length; index++) {
      const place = at + index;
      const bit = 1 << (place & 7);
      const bits = have[place >> 3] ?? 0;
      if ((bits & bit) !== 0) {
        continue;
      }
      have[place >> 3] = bits | bit;
      body[place] = fragment[index] ?? 0;
      assembly.missing--;
    }
    return true;
  }

  #aheadBytes(): number {
    let bytes = 0;
    for (const [sequence, { body }] of this.#pending) {
      if (sequence !== this.#next) {
        bytes += body.length;
      }
    }
    return bytes;
  }

  /** The next message in order, if it is complete. */
  take(): HandshakeMessage | undefined {
    const assembly = this.#pending.get(this.#next);
    if (assembly === undefined || assembly.missing > 0) {
      return undefined;
    }
    this.#pending.delete(this.#next);
    const sequence = this.#next++;
    return {
      type: assembly.type,
      sequence,
      body: assembly.body,
      whole: handshakeMessage(assembly.type, sequence, assembly.body),
    };
  }
}

/** Reads length-prefixed structures. Every method throws a RangeError at the end of the data. */
export class Reader {
  readonly #data: Buffer;
  #offset = 0;
  constructor(data: Buffer) {
    this.#data = data;
  }
  get left(): number {
    return this.#data.length - this.#offset;
  }
  bytes(length: number): Buffer {
    if (length > this.left) {
      throw new RangeError('the handshake message ends early');
    }
    return this.#data.subarray(this.#offset, (this.#offset += length));
  }
  uint(bytes: 1 | 2 | 3): number {
    return this.bytes(bytes).readUIntBE(0, bytes);
  }
  /** A vector with a length field of `lengthBytes` (RFC 5246 section 4.3). */
  vector(lengthBytes: 1 | 2 | 3): Buffer {
    return this.bytes(this.uint(lengthBytes));
  }
}

const uint16List = (data: Buffer): number[] =>
  Array.from({ length: data.length >> 1 }, (_, index) => data.readUInt16BE(index * 2));

/** Extension types (IANA registry "TLS ExtensionType Values"). */
const EXTENSION = {
  groups: 10,
  pointFormats: 11,
  signatures: 13,
  useSrtp: 14,
  extendedMasterSecret: 23,
  renegotiation: 0xff01,
} as const;
/**
 * The one named curve, cipher suite and server signature scheme that are used: RFC 8827 section 6.5
 * requires them.
 */
export const SECP256R1 = 23;
export const ECDHE_ECDSA_AES128_GCM_SHA256 = 0xc02b;
export const ECDSA_SECP256R1_SHA256 = 0x0403;
/** TLS_EMPTY_RENEGOTIATION_INFO_SCSV (RFC 5746 section 3.3). */
const EMPTY_RENEGOTIATION_INFO_SCSV = 0x00ff;

/** The parts of a ClientHello that are used. Lists are in the client's order. */
export interface ClientHello {
  readonly random: Buffer;
  readonly suites: readonly number[];
  readonly groups: readonly number[];
  readonly srtpProfiles: readonly number[];
  readonly hasExtendedMasterSecret: boolean;
  readonly hasPointFormats: boolean;
  readonly hasRenegotiationInfo: boolean;
}

/** @throws RangeError if the message is malformed, or of another version than DTLS 1.2 or later */
export function readClientHello(body: Buffer): ClientHello {
  const reader = new Reader(body);
  const version = reader.uint(2);
  // DTLS version numbers count down: 1.0 is 0xfeff, 1.2 is 0xfefd.
  if (version >> 8 !== 0xfe || version > 0xfefd) {
    throw new RangeError('the client speaks another protocol, or only DTLS 1.0');
  }
  const random = Buffer.from(reader.bytes(32));
  reader.vector(1); // session id: sessions are not resumed
  reader.vector(1); // cookie: ICE validates the address
  const suites = uint16List(reader.vector(2));
  reader.vector(1); // compression methods
  const extensions = new Map<number, Buffer>();
  if (reader.left > 0) {
    const list = new Reader(reader.vector(2));
    while (list.left > 0) {
      extensions.set(list.uint(2), list.vector(2));
    }
  }
  const listIn = (extension: number): number[] => {
    const data = extensions.get(extension);
    return data === undefined ? [] : uint16List(new Reader(data).vector(2));
  };
  return {
    random,
    suites,
    groups: listIn(EXTENSION.groups),
    srtpProfiles: listIn(EXTENSION.useSrtp),
    hasExtendedMasterSecret: extensions.has(EXTENSION.extendedMasterSecret),
    hasPointFormats: extensions.has(EXTENSION.pointFormats),
    hasRenegotiationInfo:
      extensions.has(EXTENSION.renegotiation) || suites.includes(EMPTY_RENEGOTIATION_INFO_SCSV),
  };
}

/** Selects the one cipher suite, and echoes the extensions that both sides know. */
export function serverHello(random: Buffer, hello: ClientHello, srtpProfile: number): Buffer {
  const extensions: Buffer[] = [];
  const extension = (type: number, data: readonly number[]): void => {
    extensions.push(
      Buffer.from([type >> 8, type & 255, data.length >> 8, data.length & 255, ...data]),
    );
  };
  extension(EXTENSION.useSrtp, [0, 2, srtpProfile >> 8, srtpProfile & 255, 0]);
  if (hello.hasExtendedMasterSecret) {
    extension(EXTENSION.extendedMasterSecret, []);
  }
  if (hello.hasPointFormats) {
    extension(EXTENSION.pointFormats, [1, 0]);
  }
  if (hello.hasRenegotiationInfo) {
    extension(EXTENSION.renegotiation, [0]);
  }
  const list = Buffer.concat(extensions);
  const suite = ECDHE_ECDSA_AES128_GCM_SHA256;
  return Buffer.concat([
    Buffer.from([0xfe, 0xfd]),
    random,
    Buffer.from([0, suite >> 8, suite & 255, 0, list.length >> 8, list.length & 255]),
    list,
  ]);
}

/** A Certificate message with one certificate. */
export function certificateMessage(der: Buffer): Buffer {
  const out = Buffer.alloc(6 + der.length);
  out.writeUIntBE(der.length + 3, 0, 3);
  out.writeUIntBE(der.length, 3, 3);
  der.copy(out, 6);
  return out;
}

/** The end-entity certificate of a Certificate message; undefined if the client sent none. */
export function readCertificate(body: Buffer): Buffer | undefined {
  const list = new Reader(new Reader(body).vector(3));
  return list.left > 0 ? Buffer.from(list.vector(3)) : undefined;
}

/** The signed part of a ServerKeyExchange: named curve and public key (RFC 8422 section 5.4). */
export const ecdhParameters = (publicKey: Buffer): Buffer =>
  Buffer.concat([Buffer.from([3, 0, SECP256R1, publicKey.length]), publicKey]);

/**
 * Signature schemes that a client may use for CertificateVerify: code -> hash, key type, RSA
 * padding.
 */
export const SIGNATURE_SCHEMES = new Map<
  number,
  { readonly hash: string; readonly keyType: 'ec' | 'rsa'; readonly isPss: boolean }
>([
  [ECDSA_SECP256R1_SHA256, { hash: 'sha256', keyType: 'ec', isPss: false }],
  [0x0503, { hash: 'sha384', keyType: 'ec', isPss: false }],
  [0x0603, { hash: 'sha512', keyType: 'ec', isPss: false }],
  [0x0804, { hash: 'sha256', keyType: 'rsa', isPss: true }],
  [0x0401, { hash: 'sha256', keyType: 'rsa', isPss: false }],
  [0x0501, { hash: 'sha384', keyType: 'rsa', isPss: false }],
  [0x0601, { hash: 'sha512', keyType: 'rsa', isPss: false }],
]);

/** Requests a certificate of any authority, with an ECDSA or RSA key. */
export function certificateRequest(): Buffer {
  const schemes = [...SIGNATURE_SCHEMES.keys()].flatMap((code) => [code >> 8, code & 255]);
  // Two types, ecdsa_sign (64) and rsa_sign (1); the schemes; no authorities.
  return Buffer.from([2, 64, 1, schemes.length >> 8, schemes.length & 255, ...schemes, 0, 0]);
}

/** A digitally-signed struct (RFC 5246 section 4.7). */
export const signedBlock = (scheme: number, signature: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from([scheme >> 8, scheme & 255, signature.length >> 8, signature.length & 255]),
    signature,
  ]);

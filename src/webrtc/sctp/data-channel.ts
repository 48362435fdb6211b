// The least of SCTP (RFC 9260) and DCEP (RFC 8832) by which a client's data channel opens: what it sends is acknowledged and not used.
import { randomBytes, timingSafeEqual } from 'node:crypto';

const CHUNK = {
  data: 0,
  init: 1,
  initAck: 2,
  sack: 3,
  heartbeat: 4,
  heartbeatAck: 5,
  abort: 6,
  shutdown: 7,
  shutdownAck: 8,
  error: 9,
  cookieEcho: 10,
  cookieAck: 11,
  shutdownComplete: 14,
} as const;
const STATE_COOKIE = 7;
const DCEP_PROTOCOL = 50; // payload protocol identifier (RFC 8831 section 8)
const DCEP_OPEN = 3;
const DCEP_ACK = 2;
const HEADER_BYTES = 12;
const PORT = 5000;
const RECEIVE_WINDOW = 128 * 1024;
const MAX_UNACKNOWLEDGED = 16;
/** Chunks of a packet that are not data: each may want an answer. Clients bundle two or three. */
const MAX_CONTROL_CHUNKS = 8;
const RETRANSMIT_MS = 1_000;

interface Outstanding {
  readonly tsn: number;
  readonly chunk: Buffer;
}

export class DataChannelResponder {
  readonly #send: (packet: Buffer) => void;
  readonly #ownTag = randomBytes(4).readUInt32BE(0) || 1;
  readonly #cookie = randomBytes(16);
  #remoteTag = 0;
  #remotePort = PORT;
  #isOpen = false;
  #lastTsn = 0; // highest in unbroken order that came
  #nextTsn = randomBytes(4).readUInt32BE(0);
  #outstanding: Outstanding[] = [];
  #retransmitMs = 0;

  constructor(send: (packet: Buffer) => void) {
    this.#send = send;
  }

  /** Takes one SCTP packet. @returns false when it is malformed or not for this association; it is then without effect. */
  receive(packet: Buffer): boolean {
    if (!isWellFormed(packet)) {
      return false;
    }
    const tag = packet.readUInt32BE(4);
    const isInit = packet[HEADER_BYTES] === CHUNK.init;
    if (tag !== (isInit ? 0 : this.#ownTag)) {
      return false;
    }
    let needsSack = false;
    for (let offset = HEADER_BYTES; offset < packet.length;) {
      const length = packet.readUInt16BE(offset + 2);
      const chunk = packet.subarray(offset, offset + length);
      if (chunk[0] === CHUNK.data) {
        if (!this.#isOpen) {
          return false;
        }
        this.#onData(chunk);
        needsSack = true;
      } else if (!this.#onControl(chunk, packet)) {
        return false;
      }
      offset += length + ((4 - (length % 4)) % 4);
    }
    if (needsSack) {
      this.#sendSack();
    }
    return true;
  }

  /** Repeats what was not acknowledged. */
  poll(nowMs: number): void {
    if (this.#outstanding.length === 0 || nowMs < this.#retransmitMs) {
      return;
    }
    this.#retransmitMs = nowMs + RETRANSMIT_MS;
    for (const { chunk } of this.#outstanding) {
      this.#sendChunk(chunk);
    }
  }

  #onControl(chunk: Buffer, packet: Buffer): boolean {
    switch (chunk[0]) {
      case CHUNK.init:
        return this.#onInit(chunk, packet);
      case CHUNK.cookieEcho:
        if (
          chunk.length !== 4 + this.#cookie.length ||
          !timingSafeEqual(chunk.subarray(4), this.#cookie)
        ) {
          return false;
        }
        this.#isOpen = true;
        this.#sendChunk(chunkOf(CHUNK.cookieAck, Buffer.alloc(0)));
        return true;
      case CHUNK.sack: {
        if (chunk.length < 16) {
          return false;
        }
        const acknowledged = chunk.readUInt32BE(4);
        this.#outstanding = this.#outstanding.filter(({ tsn }) => ((tsn - acknowledged) | 0) > 0);
        return true;
      }
      case CHUNK.heartbeat:
        this.#sendChunk(chunkOf(CHUNK.heartbeatAck, chunk.subarray(4)));
        return true;
      case CHUNK.shutdown:
        this.#close();
        this.#sendChunk(chunkOf(CHUNK.shutdownAck, Buffer.alloc(0)));
        return true;
      case CHUNK.abort:
      case CHUNK.shutdownComplete:
        this.#close();
        return true;
      default:
        return true; // extensions that we did not say we have
    }
  }

  #close(): void {
    this.#isOpen = false;
    this.#outstanding = [];
  }

  #onInit(chunk: Buffer, packet: Buffer): boolean {
    if (
      chunk.length < 20 ||
      HEADER_BYTES + chunk.length < packet.length - 3 ||
      chunk.readUInt32BE(4) === 0
    ) {
      return false;
    }
    this.#close();
    this.#remotePort = packet.readUInt16BE(0);
    this.#remoteTag = chunk.readUInt32BE(4);
    this.#lastTsn = (chunk.readUInt32BE(16) - 1) >>> 0;
    const body = Buffer.alloc(16 + 4 + this.#cookie.length);
    body.writeUInt32BE(this.#ownTag, 0);
    body.writeUInt32BE(RECEIVE_WINDOW, 4);
    body.writeUInt16BE(0xffff, 8);
    body.writeUInt16BE(0xffff, 10);
    body.writeUInt32BE(this.#nextTsn, 12);
    body.writeUInt16BE(STATE_COOKIE, 16);
    body.writeUInt16BE(4 + this.#cookie.length, 18);
    this.#cookie.copy(body, 20);
    this.#sendChunk(chunkOf(CHUNK.initAck, body));
    return true;
  }

  /** Takes chunks in order only; the client repeats what came out of order. */
  #onData(chunk: Buffer): void {
    if (chunk.length < 17) {
      return;
    }
    const tsn = chunk.readUInt32BE(4);
    if (tsn !== (this.#lastTsn + 1) >>> 0) {
      return;
    }
    this.#lastTsn = tsn;
    const isWhole = ((chunk[1] ?? 0) & 3) === 3;
    if (isWhole && chunk.readUInt32BE(12) === DCEP_PROTOCOL && chunk[16] === DCEP_OPEN) {
      this.#acknowledgeChannel(chunk.readUInt16BE(8));
    }
  }

  #acknowledgeChannel(stream: number): void {
    if (this.#outstanding.length >= MAX_UNACKNOWLEDGED) {
      return;
    }
    const tsn = this.#nextTsn;
    this.#nextTsn = (tsn + 1) >>> 0;
    const body = Buffer.alloc(13);
    body.writeUInt32BE(tsn, 0);
    body.writeUInt16BE(stream, 4);
    body.writeUInt32BE(DCEP_PROTOCOL, 8);
    body[12] = DCEP_ACK;
    const chunk = chunkOf(CHUNK.data, body, 3);
    this.#outstanding.push({ tsn, chunk });
    this.#sendChunk(chunk);
  }

  #sendSack(): void {
    const body = Buffer.alloc(12);
    body.writeUInt32BE(this.#lastTsn, 0);
    body.writeUInt32BE(RECEIVE_WINDOW, 4);
    this.#sendChunk(chunkOf(CHUNK.sack, body));
  }

  #sendChunk(chunk: Buffer): void {
    const packet = Buffer.alloc(HEADER_BYTES + Math.ceil(chunk.length / 4) * 4);
    packet.writeUInt16BE(PORT, 0);
    packet.writeUInt16BE(this.#remotePort, 2);
    packet.writeUInt32BE(this.#remoteTag, 4);
    chunk.copy(packet, HEADER_BYTES);
    packet.writeUInt32LE(crc32c(packet), 8);
    this.#send(packet);
  }
}

function chunkOf(type: number, body: Buffer, flags = 0): Buffer {
  const out = Buffer.alloc(4 + body.length);
  out[0] = type;
  out[1] = flags;
  out.writeUInt16BE(out.length, 2);
  body.copy(out, 4);
  return out;
}

/** Checksum, chunk lengths that add up, few control chunks: nothing behind this needs to ask again. */
function isWellFormed(packet: Buffer): boolean {
  if (packet.length < HEADER_BYTES + 4) {
    return false;
  }
  const copy = Buffer.from(packet);
  copy.writeUInt32LE(0, 8);
  if (crc32c(copy) !== packet.readUInt32LE(8)) {
    return false;
  }
  let controls = 0;
  for (let offset = HEADER_BYTES; offset < packet.length;) {
    if (offset + 4 > packet.length) {
      return false;
    }
    if (packet[offset] !== CHUNK.data && ++controls > MAX_CONTROL_CHUNKS) {
      return false;
    }
    const length = packet.readUInt16BE(offset + 2);
    if (length < 4 || offset + length > packet.length) {
      return false;
    }
    offset += length + ((4 - (length % 4)) % 4);
  }
  return true;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) {
    value = (value & 1) === 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  }
  return value;
});

/** CRC-32C (RFC 9260 appendix A); `packet` must have zeros where the checksum goes. */
export function crc32c(packet: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of packet) {
    value = (CRC_TABLE[(value ^ byte) & 255] ?? 0) ^ (value >>> 8);
  }
  return (value ^ 0xffffffff) >>> 0;
}

// Opens a client's data channels with a minimal SCTP (RFC 9260) and DCEP (RFC 8832). Acknowledges
// their messages and ignores them.
import { randomBytes, timingSafeEqual } from 'node:crypto';

/** Chunk types (RFC 9260 section 3.2). */
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
const CHUNK_HEADER_BYTES = 4;
/** Parameter type of the State Cookie in INIT ACK (RFC 9260 section 3.3.3.1). */
const STATE_COOKIE = 7;
/** Flags of an unfragmented DATA chunk: B and E (RFC 9260 section 3.3.1). */
const UNFRAGMENTED = 3;
/**
 * Payload protocol identifier of DCEP (RFC 8831 section 8), and its message types (RFC 8832 section
 * 8.2.1).
 */
const DCEP_PROTOCOL = 50;
const DCEP_OPEN = 3;
const DCEP_ACK = 2;
/** Common header: ports, verification tag, checksum. */
const HEADER_BYTES = 12;
/** As in the `a=sctp-port` of the answer. */
const PORT = 5000;
/** Advertised in INIT ACK and SACK. Nothing is kept, so it never fills. */
const RECEIVE_WINDOW = 128 * 1024;
const STREAMS_PER_DIRECTION = 0xffff;
/** Chunks of ours that may wait for an acknowledgement. Further channels stay closed. */
const MAX_UNACKNOWLEDGED = 16;
/** Chunks of a packet other than DATA: each may cause an answer. Clients bundle two or three. */
const MAX_CONTROL_CHUNKS = 8;
const RETRANSMIT_MS = 1_000;

/** A DATA chunk that is not acknowledged yet. */
interface OutstandingChunk {
  readonly tsn: number;
  readonly chunk: Buffer;
}

/** The passive side of one SCTP association over DTLS. */
export class DataChannelResponder {
  readonly #send: (packet: Buffer) => void;
  readonly #localTag = randomBytes(4).readUInt32BE(0) || 1;
  readonly #cookie = randomBytes(16);
  #remoteTag = 0;
  #remotePort = PORT;
  #isOpen = false;
  /** Cumulative TSN: all DATA chunks up to this one have arrived. */
  #cumulativeTsn = 0;
  #nextTsn = randomBytes(4).readUInt32BE(0);
  #outstanding: OutstandingChunk[] = [];
  /** When to send the outstanding chunks again. */
  #retransmitMs = 0;

  constructor(send: (packet: Buffer) => void) {
    this.#send = send;
  }

  /**
   * Processes one SCTP packet.
   * @returns false if it is malformed, or does not belong to this association. The chunks before
   * the offending one have been processed.
   */
  receive(packet: Buffer): boolean {
    if (!isWellFormed(packet)) {
      return false;
    }
    const tag = packet.readUInt32BE(4);
    const isInit = packet[HEADER_BYTES] === CHUNK.init;
    if (tag !== (isInit ? 0 : this.#localTag)) {
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
      offset += padded(length);
    }
    if (needsSack) {
      this.#sendSack();
    }
    return true;
  }

  /** Retransmits the outstanding chunks when they are due. */
  poll(nowMs: number): void {
    if (this.#outstanding.length === 0 || nowMs < this.#retransmitMs) {
      return;
    }
    this.#retransmitMs = nowMs + RETRANSMIT_MS;
    for (const { chunk } of this.#outstanding) {
      this.#sendChunk(chunk);
    }
  }

  /** @returns false if the chunk is malformed */
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
        return true; // extensions, which our INIT ACK did not offer
    }
  }

  #close(): void {
    this.#isOpen = false;
    this.#outstanding = [];
  }

  /** Answers INIT, also a repeated one: the association starts over. */
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
    this.#cumulativeTsn = (chunk.readUInt32BE(16) - 1) >>> 0;
    const body = Buffer.alloc(16 + 4 + this.#cookie.length);
    body.writeUInt32BE(this.#localTag, 0);
    body.writeUInt32BE(RECEIVE_WINDOW, 4);
    body.writeUInt16BE(STREAMS_PER_DIRECTION, 8);
    body.writeUInt16BE(STREAMS_PER_DIRECTION, 10);
    body.writeUInt32BE(this.#nextTsn, 12);
    body.writeUInt16BE(STATE_COOKIE, 16);
    body.writeUInt16BE(4 + this.#cookie.length, 18);
    this.#cookie.copy(body, 20);
    this.#sendChunk(chunkOf(CHUNK.initAck, body));
    return true;
  }

  /** Accepts DATA chunks in order only. The client retransmits the others. */
  #onData(chunk: Buffer): void {
    if (chunk.length < 17) {
      return;
    }
    const tsn = chunk.readUInt32BE(4);
    if (tsn !== (this.#cumulativeTsn + 1) >>> 0) {
      return;
    }
    this.#cumulativeTsn = tsn;
    const isUnfragmented = ((chunk[1] ?? 0) & UNFRAGMENTED) === UNFRAGMENTED;
    if (isUnfragmented && chunk.readUInt32BE(12) === DCEP_PROTOCOL && chunk[16] === DCEP_OPEN) {
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
    const chunk = chunkOf(CHUNK.data, body, UNFRAGMENTED);
    this.#outstanding.push({ tsn, chunk });
    this.#sendChunk(chunk);
  }

  #sendSack(): void {
    const body = Buffer.alloc(12);
    body.writeUInt32BE(this.#cumulativeTsn, 0);
    body.writeUInt32BE(RECEIVE_WINDOW, 4);
    this.#sendChunk(chunkOf(CHUNK.sack, body));
  }

  #sendChunk(chunk: Buffer): void {
    const packet = Buffer.alloc(HEADER_BYTES + padded(chunk.length));
    packet.writeUInt16BE(PORT, 0);
    packet.writeUInt16BE(this.#remotePort, 2);
    packet.writeUInt32BE(this.#remoteTag, 4);
    chunk.copy(packet, HEADER_BYTES);
    packet.writeUInt32LE(crc32c(packet), 8);
    this.#send(packet);
  }
}

/** Chunks are padded to a multiple of four bytes (RFC 9260 section 3.2). */
const padded = (bytes: number): number => Math.ceil(bytes / 4) * 4;

function chunkOf(type: number, body: Buffer, flags = 0): Buffer {
  const out = Buffer.alloc(CHUNK_HEADER_BYTES + body.length);
  out[0] = type;
  out[1] = flags;
  out.writeUInt16BE(out.length, 2);
  body.copy(out, CHUNK_HEADER_BYTES);
  return out;
}

/** Checks the checksum, the chunk lengths and the number of control chunks. */
function isWellFormed(packet: Buffer): boolean {
  if (packet.length < HEADER_BYTES + CHUNK_HEADER_BYTES) {
    return false;
  }
  const copy = Buffer.from(packet);
  copy.writeUInt32LE(0, 8);
  if (crc32c(copy) !== packet.readUInt32LE(8)) {
    return false;
  }
  let controls = 0;
  for (let offset = HEADER_BYTES; offset < packet.length;) {
    if (offset + CHUNK_HEADER_BYTES > packet.length) {
      return false;
    }
    if (packet[offset] !== CHUNK.data && ++controls > MAX_CONTROL_CHUNKS) {
      return false;
    }
    const length = packet.readUInt16BE(offset + 2);
    if (length < CHUNK_HEADER_BYTES || offset + length > packet.length) {
      return false;
    }
    offset += padded(length);
  }
  return true;
}

/** For the reflected polynomial 0x82f63b78. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) {
    value = (value & 1) === 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  }
  return value;
});

/** CRC-32C (RFC 9260 appendix A). The checksum field of `packet` must be 0. */
export function crc32c(packet: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of packet) {
    value = (CRC_TABLE[(value ^ byte) & 255] ?? 0) ^ (value >>> 8);
  }
  return (value ^ 0xffffffff) >>> 0;
}

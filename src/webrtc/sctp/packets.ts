// SCTP packets and chunks (RFC 9260 section 3): parses and writes them.
import { crc32c } from './crc32c.ts';

/** Chunk types (RFC 9260 section 3.2, RFC 3758). */
export const CHUNK = {
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
  forwardTsn: 192,
} as const;

/** Flags of a DATA chunk (RFC 9260 section 3.3.1). */
export const DATA_FLAG = { ends: 1, begins: 2, unordered: 4 } as const;

/** Parameter types of INIT and INIT ACK. */
const PARAMETER = { stateCookie: 7, forwardTsnSupported: 0xc000 } as const;

/** Common header: ports, verification tag, checksum. */
export const HEADER_BYTES = 12;
const CHUNK_HEADER_BYTES = 4;
/** Before the payload of a DATA chunk: TSN, stream, sequence number, protocol. */
export const DATA_HEADER_BYTES = 12;
const INIT_BYTES = 16;
/** Chunks of a packet other than DATA: each may cause an answer. Stacks bundle two or three. */
const MAX_CONTROL_CHUNKS = 8;

/** One chunk; `body` is a view into the packet, without header and padding. */
export interface Chunk {
  readonly type: number;
  readonly flags: number;
  readonly body: Buffer;
}

/** Chunks are padded to a multiple of four bytes (RFC 9260 section 3.2). */
export const padded = (bytes: number): number => Math.ceil(bytes / 4) * 4;

/** Whether TSN `one` comes after `other` (serial arithmetic, RFC 1982). */
export const isAfter = (one: number, other: number): boolean => ((one - other) | 0) > 0;

/** The TSN that is `count` after `tsn`. */
export const tsnPlus = (tsn: number, count: number): number => (tsn + count) >>> 0;

/** The chunks of a packet; undefined if its checksum or a length is wrong. */
export function chunksOf(packet: Buffer): Chunk[] | undefined {
  if (
    packet.length < HEADER_BYTES + CHUNK_HEADER_BYTES ||
    crc32c(packet) !== packet.readUInt32LE(8)
  ) {
    return undefined;
  }
  const chunks: Chunk[] = [];
  let controls = 0;
  for (let offset = HEADER_BYTES; offset < packet.length;) {
    if (offset + CHUNK_HEADER_BYTES > packet.length) {
      return undefined;
    }
    const type = packet[offset] ?? 0;
    const length = packet.readUInt16BE(offset + 2);
    const isTooMuch = type !== CHUNK.data && ++controls > MAX_CONTROL_CHUNKS;
    if (isTooMuch || length < CHUNK_HEADER_BYTES || offset + length > packet.length) {
      return undefined;
    }
    const body = packet.subarray(offset + CHUNK_HEADER_BYTES, offset + length);
    chunks.push({ type, flags: packet[offset + 1] ?? 0, body });
    offset += padded(length);
  }
  return chunks;
}

/** A chunk with its header and padding. */
export function chunkOf(type: number, body: Buffer, flags = 0): Buffer {
  const length = CHUNK_HEADER_BYTES + body.length;
  const out = Buffer.alloc(padded(length));
  out[0] = type;
  out[1] = flags;
  out.writeUInt16BE(length, 2);
  body.copy(out, CHUNK_HEADER_BYTES);
  return out;
}

/** Ports and verification tag of a packet. */
export interface PacketAddress {
  readonly localPort: number;
  readonly remotePort: number;
  readonly tag: number;
}

/** A packet with these chunks. */
export function packetOf(address: PacketAddress, chunks: readonly Buffer[]): Buffer {
  const packet = Buffer.concat([Buffer.alloc(HEADER_BYTES), ...chunks]);
  packet.writeUInt16BE(address.localPort, 0);
  packet.writeUInt16BE(address.remotePort, 2);
  packet.writeUInt32BE(address.tag, 4);
  packet.writeUInt32LE(crc32c(packet), 8);
  return packet;
}

/** What INIT and INIT ACK say (RFC 9260 section 3.3.2). */
export interface Init {
  readonly tag: number;
  readonly window: number;
  readonly outboundStreams: number;
  readonly inboundStreams: number;
  readonly tsn: number;
  readonly hasForwardTsn: boolean;
  /** Of INIT ACK. */
  readonly cookie: Buffer | undefined;
}

/** Parses the body of INIT or INIT ACK; undefined if it is malformed. Unknown parameters are skipped. */
export function parseInit(body: Buffer): Init | undefined {
  if (body.length < INIT_BYTES) {
    return undefined;
  }
  let cookie: Buffer | undefined;
  let hasForwardTsn = false;
  for (let offset = INIT_BYTES; offset + 4 <= body.length;) {
    const type = body.readUInt16BE(offset);
    const length = body.readUInt16BE(offset + 2);
    if (length < 4 || offset + length > body.length) {
      return undefined;
    }
    if (type === PARAMETER.stateCookie) {
      cookie = Buffer.from(body.subarray(offset + 4, offset + length));
    }
    hasForwardTsn ||= type === PARAMETER.forwardTsnSupported;
    offset += padded(length);
  }
  const init: Init = {
    tag: body.readUInt32BE(0),
    window: body.readUInt32BE(4),
    outboundStreams: body.readUInt16BE(8),
    inboundStreams: body.readUInt16BE(10),
    tsn: body.readUInt32BE(12),
    hasForwardTsn,
    cookie,
  };
  return init.tag === 0 || init.outboundStreams === 0 || init.inboundStreams === 0
    ? undefined
    : init;
}

/** The body of INIT, or with a cookie of INIT ACK. Both say that FORWARD TSN is supported. */
export function initBody(init: Omit<Init, 'hasForwardTsn'>): Buffer {
  const head = Buffer.alloc(INIT_BYTES);
  head.writeUInt32BE(init.tag, 0);
  head.writeUInt32BE(init.window, 4);
  head.writeUInt16BE(init.outboundStreams, 8);
  head.writeUInt16BE(init.inboundStreams, 10);
  head.writeUInt32BE(init.tsn, 12);
  const parameter = (type: number, value: Buffer): Buffer => {
    const out = Buffer.alloc(padded(4 + value.length));
    out.writeUInt16BE(type, 0);
    out.writeUInt16BE(4 + value.length, 2);
    value.copy(out, 4);
    return out;
  };
  return Buffer.concat([
    head,
    ...(init.cookie === undefined ? [] : [parameter(PARAMETER.stateCookie, init.cookie)]),
    parameter(PARAMETER.forwardTsnSupported, Buffer.alloc(0)),
  ]);
}

// STUN (RFC 8489) as far as ICE-lite needs it: checking a Binding request, answering it, and asking one of our own.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';

const MAGIC = 0x2112a442;
const BINDING_REQUEST = 0x0001;
const BINDING_INDICATION = 0x0011;
const BINDING_SUCCESS = 0x0101;
const BINDING_ERROR = 0x0111;
const ATTRIBUTE = {
  username: 0x0006,
  integrity: 0x0008,
  xorMappedAddress: 0x0020,
  priority: 0x0024,
  useCandidate: 0x0025,
  fingerprint: 0x8028,
  iceControlled: 0x8029,
};
const HEADER_BYTES = 20;
const FINGERPRINT_XOR = 0x5354554e;

export type StunKind = 'request' | 'indication' | 'success' | 'error';

const KINDS = new Map<number, StunKind>([
  [BINDING_REQUEST, 'request'],
  [BINDING_INDICATION, 'indication'],
  [BINDING_SUCCESS, 'success'],
  [BINDING_ERROR, 'error'],
]);

/** Where the parts of one STUN message lie. Refilled by each `parseStun`, so that junk costs no allocation. */
export interface StunView {
  kind: StunKind | undefined;
  /** The part of USERNAME before the colon: the ufrag of whoever receives the request. '' when there is none. */
  localUfrag: string;
  hasUseCandidate: boolean;
  /** Offset of the MESSAGE-INTEGRITY attribute, -1 when absent. */
  integrityOffset: number;
}

export const newStunView = (): StunView => ({
  kind: undefined,
  localUfrag: '',
  hasUseCandidate: false,
  integrityOffset: -1,
});

/** Reads one datagram. @returns false for anything that is not a well-formed Binding message. */
export function parseStun(data: Buffer, view: StunView): boolean {
  view.kind = undefined;
  view.localUfrag = '';
  view.hasUseCandidate = false;
  view.integrityOffset = -1;
  if (
    data.length < HEADER_BYTES ||
    data.readUInt32BE(4) !== MAGIC ||
    data.readUInt16BE(2) !== data.length - HEADER_BYTES
  ) {
    return false;
  }
  view.kind = KINDS.get(data.readUInt16BE(0)) ?? undefined;
  if (view.kind === undefined) {
    return false;
  }
  let offset = HEADER_BYTES;
  while (offset < data.length) {
    if (offset + 4 > data.length) {
      return false;
    }
    const attribute = data.readUInt16BE(offset);
    const length = data.readUInt16BE(offset + 2);
    if (offset + 4 + length > data.length) {
      return false;
    }
    // RFC 8489 section 14.5: what follows MESSAGE-INTEGRITY is not covered by it, so only FINGERPRINT may.
    if (view.integrityOffset >= 0) {
      if (attribute === ATTRIBUTE.fingerprint && !fingerprintMatches(data, offset, length)) {
        return false;
      }
    } else if (attribute === ATTRIBUTE.username) {
      const name = data.toString('latin1', offset + 4, offset + 4 + Math.min(length, 513));
      const colon = name.indexOf(':');
      view.localUfrag = colon < 0 ? name : name.slice(0, colon);
    } else if (attribute === ATTRIBUTE.useCandidate) {
      view.hasUseCandidate = true;
    } else if (attribute === ATTRIBUTE.integrity) {
      if (length !== 20) {
        return false;
      }
      view.integrityOffset = offset;
    }
    offset += 4 + length + ((4 - (length % 4)) % 4);
  }
  return true;
}

function fingerprintMatches(data: Buffer, offset: number, length: number): boolean {
  if (length !== 4 || offset + 8 !== data.length) {
    return false;
  }
  return (
    data.readUInt32BE(offset + 4) === (crc32(data.subarray(0, offset)) ^ FINGERPRINT_XOR) >>> 0
  );
}

/** Whether the message parsed into `view` carries a MESSAGE-INTEGRITY made with `password` (RFC 8489 section 14.5). */
export function isAuthentic(data: Buffer, view: StunView, password: string): boolean {
  const at = view.integrityOffset;
  if (at < 0) {
    return false;
  }
  // The HMAC covers the header with a length that ends right after the integrity attribute.
  const covered = Buffer.from(data.subarray(0, at));
  covered.writeUInt16BE(at + 24 - HEADER_BYTES, 2);
  const wanted = createHmac('sha1', password).update(covered).digest();
  return timingSafeEqual(wanted, data.subarray(at + 4, at + 24));
}

/** The 12-byte transaction id of a parsed message, in place. */
export const transactionId = (data: Buffer): Buffer => data.subarray(8, HEADER_BYTES);

/** The success response to `request`, telling the sender the address it was seen from. */
export function bindingSuccess(
  request: Buffer,
  address: string,
  port: number,
  password: string,
): Buffer {
  const ip = addressBytes(address);
  const value = Buffer.alloc(4 + ip.length);
  value[1] = ip.length === 4 ? 1 : 2;
  value.writeUInt16BE(port ^ (MAGIC >>> 16), 2);
  // XOR with the magic cookie followed by the transaction id, which is how they lie in the header.
  for (let index = 0; index < ip.length; index++) {
    value[4 + index] = (ip[index] ?? 0) ^ (request[4 + index] ?? 0);
  }
  return message(
    BINDING_SUCCESS,
    transactionId(request),
    [[ATTRIBUTE.xorMappedAddress, value]],
    password,
  );
}

/** A Binding request of ours: asks a silent peer whether it still consents to hearing from us (RFC 7675). */
export function bindingRequest(
  id: Buffer,
  username: string,
  password: string,
  tieBreaker: Buffer,
): Buffer {
  const priority = Buffer.alloc(4);
  priority.writeUInt32BE(0x6e0000ff, 0);
  return message(
    BINDING_REQUEST,
    id,
    [
      [ATTRIBUTE.username, Buffer.from(username, 'latin1')],
      [ATTRIBUTE.priority, priority],
      [ATTRIBUTE.iceControlled, tieBreaker],
    ],
    password,
  );
}

function message(
  type: number,
  id: Buffer,
  attributes: readonly (readonly [number, Buffer])[],
  password: string,
): Buffer {
  const bodyBytes = attributes.reduce(
    (sum, [, value]) => sum + 4 + value.length + ((4 - (value.length % 4)) % 4),
    0,
  );
  const out = Buffer.alloc(HEADER_BYTES + bodyBytes + 24 + 8);
  out.writeUInt16BE(type, 0);
  out.writeUInt32BE(MAGIC, 4);
  id.copy(out, 8);
  let offset = HEADER_BYTES;
  for (const [attribute, value] of attributes) {
    out.writeUInt16BE(attribute, offset);
    out.writeUInt16BE(value.length, offset + 2);
    value.copy(out, offset + 4);
    offset += 4 + value.length + ((4 - (value.length % 4)) % 4);
  }
  out.writeUInt16BE(offset + 24 - HEADER_BYTES, 2);
  out.writeUInt16BE(ATTRIBUTE.integrity, offset);
  out.writeUInt16BE(20, offset + 2);
  createHmac('sha1', password)
    .update(out.subarray(0, offset))
    .digest()
    .copy(out, offset + 4);
  offset += 24;
  out.writeUInt16BE(out.length - HEADER_BYTES, 2);
  out.writeUInt16BE(ATTRIBUTE.fingerprint, offset);
  out.writeUInt16BE(4, offset + 2);
  out.writeUInt32BE((crc32(out.subarray(0, offset)) ^ FINGERPRINT_XOR) >>> 0, offset + 4);
  return out;
}

/** Network-order bytes of a textual IPv4 or IPv6 address, as the socket reports it. An IPv4 one in IPv6's clothes gives its four bytes. */
export function addressBytes(address: string): Buffer {
  if (address.startsWith('::ffff:') && address.includes('.')) {
    return addressBytes(address.slice(7));
  }
  if (!address.includes(':')) {
    return Buffer.from(address.split('.').map(Number));
  }
  const text = address.split('%', 1)[0] ?? '';
  const [head = '', tail = ''] = text.split('::');
  const groups = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => parseInt(group, 16));
  const left = groups(head);
  const right = text.includes('::') ? groups(tail) : [];
  const all = [
    ...left,
    ...Array.from({ length: 8 - left.length - right.length }, () => 0),
    ...right,
  ];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 255]));
}

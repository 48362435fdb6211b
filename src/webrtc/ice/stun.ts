// STUN messages (RFC 8489) as ICE needs them: parses, authenticates and writes Binding
// messages.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { MAGIC_COOKIE, unmapped, xorMappedAddress } from './mapped-address.ts';

/** Message types: method Binding with each class (RFC 8489 section 5). */
export const BINDING_REQUEST = 0x0001;
const BINDING_INDICATION = 0x0011;
export const BINDING_SUCCESS = 0x0101;
const BINDING_ERROR = 0x0111;
/** Attribute types (RFC 8489 section 18.3, RFC 8445 section 16.1). */
export const ATTRIBUTE = {
  username: 0x0006,
  integrity: 0x0008,
  xorMappedAddress: 0x0020,
  priority: 0x0024,
  useCandidate: 0x0025,
  errorCode: 0x0009,
  fingerprint: 0x8028,
  iceControlled: 0x8029,
  iceControlling: 0x802a,
};
/** Message header: type, length, cookie, transaction id. */
export const HEADER_BYTES = 20;
const ATTRIBUTE_HEADER_BYTES = 4;
/** MESSAGE-INTEGRITY: HMAC-SHA1. */
const INTEGRITY_BYTES = 20;
const FINGERPRINT_BYTES = 4;
/** Bytes of a USERNAME that are read: RFC 5389 section 15.3 allows fewer, RFC 8489 up to 508. */
const USERNAME_BYTES = 513;
/** RFC 8489 section 14.7. */
const FINGERPRINT_XOR = 0x5354554e;

/** Which side nominates (RFC 8445 section 6.1.1). */
export type IceRole = 'controlling' | 'controlled';

/** The class of a Binding message. */
export type StunKind = 'request' | 'indication' | 'success' | 'error';

/**
 * PRIORITY of our checks: type preference 110, as for peer-reflexive candidates (RFC 8445 sections
 * 5.1.2 and 7.1.1).
 */
const PEER_REFLEXIVE_PRIORITY = 0x6e0000ff;

const KINDS = new Map<number, StunKind>([
  [BINDING_REQUEST, 'request'],
  [BINDING_INDICATION, 'indication'],
  [BINDING_SUCCESS, 'success'],
  [BINDING_ERROR, 'error'],
]);

/** What was parsed of a message. `parseStun` refills it, so that junk costs no allocation. */
export interface StunView {
  kind: StunKind | undefined;
  /** USERNAME up to the colon: the ufrag of the receiver of the request. '' if there is none. */
  localUfrag: string;
  hasUseCandidate: boolean;
  /** Role of the sender; undefined: not said. */
  role: IceRole | undefined;
  /** Offset of the 8-byte tie-breaker of the role; -1 if there is none. */
  tieBreakerOffset: number;
  /** PRIORITY; 0 if there is none. */
  priority: number;
  /** ERROR-CODE; 0 if there is none. */
  errorCode: number;
  /** Offset of the MESSAGE-INTEGRITY attribute; -1 if there is none. */
  integrityOffset: number;
}

/** An empty view, for `parseStun`. */
export const newStunView = (): StunView => ({
  kind: undefined,
  localUfrag: '',
  hasUseCandidate: false,
  role: undefined,
  tieBreakerOffset: -1,
  priority: 0,
  errorCode: 0,
  integrityOffset: -1,
});

/** Attributes are padded to a multiple of four bytes (RFC 8489 section 14). */
const padded = (bytes: number): number => Math.ceil(bytes / 4) * 4;

/** Parses one datagram. @returns false if it is not a well-formed Binding message */
export function parseStun(data: Buffer, view: StunView): boolean {
  view.kind = undefined;
  view.localUfrag = '';
  view.hasUseCandidate = false;
  view.role = undefined;
  view.tieBreakerOffset = -1;
  view.priority = 0;
  view.errorCode = 0;
  view.integrityOffset = -1;
  if (
    data.length < HEADER_BYTES ||
    data.readUInt32BE(4) !== MAGIC_COOKIE ||
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
    if (offset + ATTRIBUTE_HEADER_BYTES > data.length) {
      return false;
    }
    const attribute = data.readUInt16BE(offset);
    const length = data.readUInt16BE(offset + 2);
    if (offset + 4 + length > data.length) {
      return false;
    }
    // Ignore attributes after MESSAGE-INTEGRITY, which does not cover them, except FINGERPRINT
    // (RFC 8489 section 14.5).
    if (view.integrityOffset >= 0) {
      if (attribute === ATTRIBUTE.fingerprint && !fingerprintMatches(data, offset, length)) {
        return false;
      }
    } else if (attribute === ATTRIBUTE.username) {
      const name = data.toString(
        'latin1',
        offset + 4,
        offset + 4 + Math.min(length, USERNAME_BYTES),
      );
      const colon = name.indexOf(':');
      view.localUfrag = colon < 0 ? name : name.slice(0, colon);
    } else if (attribute === ATTRIBUTE.useCandidate) {
      view.hasUseCandidate = true;
    } else if (attribute === ATTRIBUTE.integrity) {
      if (length !== INTEGRITY_BYTES) {
        return false;
      }
      view.integrityOffset = offset;
    } else {
      readIceAttribute(data, attribute, offset + ATTRIBUTE_HEADER_BYTES, length, view);
    }
    offset += ATTRIBUTE_HEADER_BYTES + padded(length);
  }
  return true;
}

/** Attributes of a wrong length are ignored, as unknown ones are. */
function readIceAttribute(
  data: Buffer,
  attribute: number,
  at: number,
  length: number,
  view: StunView,
): void {
  const isControlling = attribute === ATTRIBUTE.iceControlling;
  if ((isControlling || attribute === ATTRIBUTE.iceControlled) && length === 8) {
    view.role = isControlling ? 'controlling' : 'controlled';
    view.tieBreakerOffset = at;
  } else if (attribute === ATTRIBUTE.priority && length === 4) {
    view.priority = data.readUInt32BE(at);
  } else if (attribute === ATTRIBUTE.errorCode && length >= 4) {
    // RFC 8489 section 14.8: class and number.
    view.errorCode = ((data[at + 2] ?? 0) & 7) * 100 + (data[at + 3] ?? 0);
  }
}

/** RFC 8489 section 14.7: FINGERPRINT must be the last attribute. */
function fingerprintMatches(data: Buffer, offset: number, length: number): boolean {
  if (
    length !== FINGERPRINT_BYTES ||
    offset + ATTRIBUTE_HEADER_BYTES + FINGERPRINT_BYTES !== data.length
  ) {
    return false;
  }
  return (
    data.readUInt32BE(offset + 4) === (crc32(data.subarray(0, offset)) ^ FINGERPRINT_XOR) >>> 0
  );
}

/**
 * Whether the message of `view` has a MESSAGE-INTEGRITY made with `password` (RFC 8489 section
 * 14.5).
 */
export function isAuthentic(data: Buffer, view: StunView, password: string): boolean {
  const at = view.integrityOffset;
  if (at < 0) {
    return false;
  }
  // The HMAC covers the header with the length up to the end of MESSAGE-INTEGRITY.
  const covered = Buffer.from(data.subarray(0, at));
  covered.writeUInt16BE(at + ATTRIBUTE_HEADER_BYTES + INTEGRITY_BYTES - HEADER_BYTES, 2);
  const expected = createHmac('sha1', password).update(covered).digest();
  return timingSafeEqual(expected, data.subarray(at + 4, at + 24));
}

/** The 12-byte transaction id of a parsed message: a view into `data`. */
export const transactionId = (data: Buffer): Buffer => data.subarray(8, HEADER_BYTES);

/**
 * The success response to `request`, with the address that it came from. IPv4 clients of a
 * dual-stack socket get an IPv4 address.
 */
export function bindingSuccess(
  request: Buffer,
  address: string,
  port: number,
  password: string,
): Buffer {
  const value = xorMappedAddress(request, unmapped(address), port);
  return message(
    BINDING_SUCCESS,
    transactionId(request),
    [[ATTRIBUTE.xorMappedAddress, value]],
    password,
  );
}

/** RFC 8445 section 7.3.1.1: both sides have the same role. */
export const ROLE_CONFLICT = 487;

/** The error response to `request` if both sides have the same role. */
export function roleConflict(request: Buffer, password: string): Buffer {
  const value = Buffer.concat([Buffer.from([0, 0, 4, 87]), Buffer.from('Role Conflict')]);
  const attributes = [[ATTRIBUTE.errorCode, value]] as const;
  return message(BINDING_ERROR, transactionId(request), attributes, password);
}

/** What a check of ours says besides its credentials. */
export interface CheckOptions {
  /** Default: controlled, as ICE-lite is. */
  readonly role?: IceRole;
  readonly nominates?: boolean;
}

/** A Binding request of ours: a connectivity check, or a consent check (RFC 7675). */
export function bindingRequest(
  id: Buffer,
  username: string,
  password: string,
  tieBreaker: Buffer,
  { role = 'controlled', nominates = false }: CheckOptions = {},
): Buffer {
  const priority = Buffer.alloc(4);
  priority.writeUInt32BE(PEER_REFLEXIVE_PRIORITY, 0);
  const attributes: [number, Buffer][] = [
    [ATTRIBUTE.username, Buffer.from(username, 'latin1')],
    [ATTRIBUTE.priority, priority],
    [role === 'controlled' ? ATTRIBUTE.iceControlled : ATTRIBUTE.iceControlling, tieBreaker],
  ];
  if (nominates) {
    attributes.push([ATTRIBUTE.useCandidate, Buffer.alloc(0)]);
  }
  return message(BINDING_REQUEST, id, attributes, password);
}

/** A message with these attributes, then MESSAGE-INTEGRITY and FINGERPRINT. */
function message(
  type: number,
  id: Buffer,
  attributes: readonly (readonly [number, Buffer])[],
  password: string,
): Buffer {
  const bodyBytes = attributes.reduce(
    (sum, [, value]) => sum + ATTRIBUTE_HEADER_BYTES + padded(value.length),
    0,
  );
  const integrityEnd = HEADER_BYTES + bodyBytes + ATTRIBUTE_HEADER_BYTES + INTEGRITY_BYTES;
  const out = Buffer.alloc(integrityEnd + ATTRIBUTE_HEADER_BYTES + FINGERPRINT_BYTES);
  out.writeUInt16BE(type, 0);
  out.writeUInt32BE(MAGIC_COOKIE, 4);
  id.copy(out, 8);
  let offset = HEADER_BYTES;
  for (const [attribute, value] of attributes) {
    out.writeUInt16BE(attribute, offset);
    out.writeUInt16BE(value.length, offset + 2);
    value.copy(out, offset + 4);
    offset += ATTRIBUTE_HEADER_BYTES + padded(value.length);
  }
  out.writeUInt16BE(integrityEnd - HEADER_BYTES, 2);
  out.writeUInt16BE(ATTRIBUTE.integrity, offset);
  out.writeUInt16BE(INTEGRITY_BYTES, offset + 2);
  createHmac('sha1', password)
    .update(out.subarray(0, offset))
    .digest()
    .copy(out, offset + 4);
  offset = integrityEnd;
  out.writeUInt16BE(out.length - HEADER_BYTES, 2);
  out.writeUInt16BE(ATTRIBUTE.fingerprint, offset);
  out.writeUInt16BE(FINGERPRINT_BYTES, offset + 2);
  out.writeUInt32BE((crc32(out.subarray(0, offset)) ^ FINGERPRINT_XOR) >>> 0, offset + 4);
  return out;
}

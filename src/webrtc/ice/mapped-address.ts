// Writes transport addresses as STUN carries them (RFC 8489 section 14.2).
import { isIPv4 } from 'node:net';

/** The fixed value in the header of each STUN message (RFC 8489 section 5). */
export const MAGIC_COOKIE = 0x2112a442;
const FAMILY = { ipv4: 1, ipv6: 2 } as const;
const IPV4_MAPPED_PREFIX = '::ffff:';
const IPV6_GROUPS = 8;

/**
 * An IPv4-mapped IPv6 address, as a dual-stack socket reports IPv4 clients, without its prefix;
 * others unchanged.
 */
export const unmapped = (address: string): string =>
  address.startsWith(IPV4_MAPPED_PREFIX) && address.includes('.')
    ? address.slice(IPV4_MAPPED_PREFIX.length)
    : address;

/**
 * A textual IPv4 (4 bytes) or IPv6 address (16 bytes) in network order. A zone id (`%eth0`) is
 * ignored.
 */
export function ipBytes(address: string): Buffer {
  if (isIPv4(address)) {
    return ipv4Bytes(address);
  }
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::');
  const left = groupsOf(head);
  const right = groupsOf(tail ?? '');
  const missing = tail === undefined ? 0 : IPV6_GROUPS - left.length - right.length;
  const groups = [...left, ...Array.from({ length: missing }, () => 0), ...right];
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 255]));
}

const ipv4Bytes = (address: string): Buffer => Buffer.from(address.split('.').map(Number));

/**
 * The 16-bit groups of one side of `::`. The last one may be a dotted IPv4 address, which gives two
 * groups.
 */
const groupsOf = (part: string): number[] =>
  part === ''
    ? []
    : part.split(':').flatMap((group) => {
        if (!group.includes('.')) {
          return [Number.parseInt(group, 16)];
        }
        const bytes = ipv4Bytes(group);
        return [bytes.readUInt16BE(0), bytes.readUInt16BE(2)];
      });

/**
 * The value of XOR-MAPPED-ADDRESS.
 * @param request the message that is answered: its cookie and transaction id mask the address
 */
export function xorMappedAddress(request: Buffer, address: string, port: number): Buffer {
  const ip = ipBytes(address);
  const value = Buffer.alloc(4 + ip.length);
  value[1] = ip.length === 4 ? FAMILY.ipv4 : FAMILY.ipv6;
  value.writeUInt16BE(port ^ (MAGIC_COOKIE >>> 16), 2);
  for (const [index, byte] of ip.entries()) {
    value[4 + index] = byte ^ (request[4 + index] ?? 0);
  }
  return value;
}

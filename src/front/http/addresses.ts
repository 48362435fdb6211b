// The address of a client: the remote address of the connection, or the address that a trusted
// proxy reports.
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import type { HttpResponse } from 'uWebSockets.js';

/** The remote address of a connection, as text. Copied, since uWebSockets.js reuses its buffer. */
export const peerOf = (res: HttpResponse): string =>
  Buffer.from(res.getRemoteAddressAsText()).toString();

/** Whether `text` is `address` or `address/bits`, the notation of TRUSTED_PROXIES. */
export const isNetwork = (text: string): boolean => {
  const [address = '', bits, ...rest] = text.split('/');
  const most = isIP(address) === 4 ? 32 : 128;
  return (
    isIP(address) !== 0 &&
    rest.length === 0 &&
    (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most))
  );
};

/** @throws Error when `isNetwork` is false for a text */
function networksOf(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [address = '', bits] = text.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    list.addSubnet(address, Number(bits ?? (family === 'ipv4' ? 32 : 128)), family);
  }
  return list;
}

/** Finds the client behind trusted proxies. */
export class Addresses {
  readonly #trusted: BlockList;

  /** @param trustedProxies addresses and networks whose X-Forwarded-For header is used */
  constructor(trustedProxies: readonly string[]) {
    this.#trusted = networksOf(trustedProxies);
  }

  isTrusted(address: string): boolean {
    return isIP(address) !== 0 && this.#trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  }

  /**
   * Each proxy appends the address that it got the request from. So the last entry that is not a
   * trusted proxy is the client (RFC 7239 section 5.2 says this for the Forwarded header).
   * @param peer the remote address of the connection
   * @returns undefined when there is no such entry: a trusted host made the request itself
   */
  clientOf(peer: string, forwardedFor: string): string | undefined {
    const own = plain(peer);
    if (!this.isTrusted(own)) {
      return own;
    }
    for (const entry of forwardedFor.split(',').toReversed()) {
      const address = plain(entry.trim());
      if (address === '') {
        return undefined;
      }
      if (!this.isTrusted(address)) {
        return address;
      }
    }
    return undefined;
  }
}

/**
 * The address without a port. An IPv4-mapped IPv6 address becomes IPv4; IPv6 is written without
 * `::`. Other text is cut to 64 characters.
 */
function plain(text: string): string {
  const bare =
    /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  if (!isIPv6(bare)) {
    return bare.slice(0, 64);
  }
  const groups = groupsOf(bare);
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    const [high, low] = [groups[6]!, groups[7]!];
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
  }
  return groups.map((group) => group.toString(16)).join(':');
}

/** The eight groups of a valid IPv6 address (RFC 4291 section 2.2). */
function groupsOf(address: string): number[] {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address.split('%')[0]!);
  const text =
    dotted === null
      ? address.split('%')[0]!
      : dotted[1]! +
        (Number(dotted[2]) * 256 + Number(dotted[3])).toString(16) +
        ':' +
        (Number(dotted[4]) * 256 + Number(dotted[5])).toString(16);
  const [head = '', tail] = text.split('::');
  const parse = (part: string | undefined): number[] =>
    part ? part.split(':').map((group) => Number.parseInt(group, 16)) : [];
  const [front, back] = [parse(head), parse(tail)];
  return [
    ...front,
    ...Array.from({ length: Math.max(0, 8 - front.length - back.length) }, () => 0),
    ...back,
  ];
}

/**
 * The key of a limit: an IPv4 address, or the /64 network of an IPv6 address (one subscriber's).
 */
export const limitKeyOf = (address: string): string =>
  isIPv6(address) ? `${groupsOf(address).slice(0, 4).join(':')}::/64` : address;

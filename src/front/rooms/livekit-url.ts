// Which LiveKit servers a caller may send us to, and at which addresses they are reached. The caller
// has no API key, so that without a policy it could use this server to reach others.
import { lookup as resolve } from 'node:dns/promises';
import { BlockList, isIP, isIPv6 } from 'node:net';
import { ServiceError } from '../../base/errors.ts';
import { isListedHost } from '../../base/hosts.ts';

/** An address that a host name resolved to. */
export interface HostAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** A LiveKit server that may be connected to. */
export interface LiveKitServer {
  /** ws: or wss:, without a slash at the end. */
  readonly url: string;
  /**
   * The addresses that were checked: the connection is made to one of them. Undefined: what the name
   * resolves to, for a server of the operator.
   */
  readonly addresses: readonly HostAddress[] | undefined;
  /** Whether candidates of its media may lie on networks that are not public. */
  readonly isTrusted: boolean;
}

const RESOLVE_TIMEOUT_MS = 3000;
const MAX_ADDRESSES = 8;

type Network = readonly [string, number];

function networks(family: 'ipv4' | 'ipv6', list: readonly Network[]): BlockList {
  const found = new BlockList();
  for (const [network, prefix] of list) {
    found.addSubnet(network, prefix, family);
  }
  return found;
}

// Two lists: one of both would take each IPv4 address for its form in IPv6.
/** IPv4 that is not on the public internet (IANA special-purpose address registry). */
const NOT_PUBLIC_4 = networks('ipv4', [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
]);
/** All of IPv6 that is not global unicast, and the ranges inside it that embed IPv4 addresses. */
const NOT_PUBLIC_6 = networks('ipv6', [
  ['::', 3],
  ['4000::', 2],
  ['8000::', 1],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
]);

/** Whether an IP address is on the public internet. */
export function isPublicAddress(address: string): boolean {
  if (isIPv6(address)) {
    return !NOT_PUBLIC_6.check(address, 'ipv6');
  }
  return isIP(address) === 4 && !NOT_PUBLIC_4.check(address);
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;
/** This machine. An IPv4 address may come in its form in IPv6. */
const LOOPBACK_ADDRESSES = new BlockList();
LOOPBACK_ADDRESSES.addSubnet('127.0.0.0', 8);
LOOPBACK_ADDRESSES.addAddress('::1', 'ipv6');

const isOnThisMachine = (address: string): boolean =>
  LOOPBACK_ADDRESSES.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');

const refused = (reason: string): ServiceError =>
  new ServiceError('LIVEKIT_URL_REFUSED', `livekit_url is refused: ${reason}`);

/**
 * Checks a URL of a caller. Public addresses over wss may be reached, and all else only where the
 * operator lists the host. Callers on this machine may name loopback, over ws too: they reach it
 * anyway.
 * @param hosts names or addresses of hosts, with a port or without (LIVEKIT_HOSTS)
 * @param caller address of the caller
 * @throws ServiceError LIVEKIT_URL_REFUSED that says why
 */
export async function checkLiveKitUrl(
  text: string,
  hosts: readonly string[],
  caller: string,
): Promise<LiveKitServer> {
  const url = URL.parse(text.replace(/^http/i, 'ws'));
  if (url === null || !/^wss?:$/.test(url.protocol)) {
    throw refused('it must begin with wss:// or ws://.');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw refused('it must have no user, query or fragment.');
  }
  const isListed = isListedHost(hosts, url);
  const isLoopback = LOOPBACK.test(url.hostname) && isOnThisMachine(caller);
  if (!isListed && !isLoopback && url.protocol !== 'wss:') {
    throw refused('use wss://. The operator can list hosts in LIVEKIT_HOSTS.');
  }
  const addresses = await addressesOf(url.hostname.replace(/^\[|\]$/g, ''));
  const isTrusted = isListed || isLoopback;
  if (!isTrusted && !addresses.every(({ address }) => isPublicAddress(address))) {
    throw refused('its host is not public. The operator can list it in LIVEKIT_HOSTS.');
  }
  return { url: url.href.replace(/\/$/, ''), addresses, isTrusted };
}

async function addressesOf(host: string): Promise<readonly HostAddress[]> {
  const family = isIP(host);
  if (family !== 0) {
    return [{ address: host, family: family as 4 | 6 }];
  }
  const timeout = AbortSignal.timeout(RESOLVE_TIMEOUT_MS);
  const found = await Promise.race([
    resolve(host, { all: true }).catch(() => []),
    new Promise<[]>((settle) => {
      timeout.addEventListener('abort', () => {
        settle([]);
      });
    }),
  ]);
  if (found.length === 0) {
    throw refused(`its host ${host.slice(0, 100)} has no address.`);
  }
  return found
    .slice(0, MAX_ADDRESSES)
    .map(({ address, family: version }) => ({ address, family: version === 6 ? 6 : 4 }));
}

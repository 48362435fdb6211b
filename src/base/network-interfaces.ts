// The IP addresses of this machine.
import { networkInterfaces } from 'node:os';

/** Addresses of this machine, in the order of the system. */
export interface OwnAddresses {
  readonly external: readonly string[];
  readonly loopback: readonly string[];
}

const isLinkLocal = (address: string): boolean => address.startsWith('fe80:');

/**
 * The addresses at which a socket receives that is bound to any address: IPv4 for 0.0.0.0, IPv4 and
 * IPv6 for `::`. IPv6 link-local addresses are left out: others need a zone id to use them.
 */
export function ownAddresses(boundTo: '0.0.0.0' | '::'): OwnAddresses {
  const usable = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(
      ({ family, address }) => (family === 'IPv4' || boundTo === '::') && !isLinkLocal(address),
    );
  const select = (isLoopback: boolean): string[] =>
    usable.filter(({ internal }) => internal === isLoopback).map(({ address }) => address);
  return { external: select(false), loopback: select(true) };
}

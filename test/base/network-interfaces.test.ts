// The addresses of this machine, compared with what the system reports.
import assert from 'node:assert/strict';
import { isIPv4 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { test } from 'vitest';
import { ownAddresses } from '../../src/base/network-interfaces.ts';

const system = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);

test('a socket bound to 0.0.0.0 is reached at the IPv4 addresses', () => {
  const { external, loopback } = ownAddresses('0.0.0.0');
  assert.ok(loopback.includes('127.0.0.1'));
  assert.ok([...external, ...loopback].every((address) => isIPv4(address)));
  assert.deepEqual(
    [...external, ...loopback].toSorted(),
    system
      .filter(({ family }) => family === 'IPv4')
      .map(({ address }) => address)
      .toSorted(),
  );
});

test('a socket bound to :: is reached at the IPv6 addresses too, except link-local ones', () => {
  const { external, loopback } = ownAddresses('::');
  assert.deepEqual(
    [...external, ...loopback].toSorted(),
    system
      .filter(({ family, scopeid }) => family === 'IPv4' || scopeid === 0)
      .map(({ address }) => address)
      .toSorted(),
  );
  const internal = new Set(system.filter((one) => one.internal).map(({ address }) => address));
  assert.ok(external.every((address) => !internal.has(address)));
});

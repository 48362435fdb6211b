// Full ICE against itself and against ICE-lite, over a network in memory that loses datagrams.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { IceAgent } from '../../../src/webrtc/ice/ice-agent.ts';
import { IcePaths } from '../../../src/webrtc/ice/ice-paths.ts';
import type { IceHost, IceTransport } from '../../../src/webrtc/ice/ice.ts';
import { newStunView, parseStun } from '../../../src/webrtc/ice/stun.ts';

const TICK_MS = 10;

interface Side {
  readonly ice: IceTransport;
  readonly address: string;
  readonly expected: Set<string>;
  readonly claimed: Set<string>;
  selections: number;
  sent: number;
}

/** Datagrams arrive one tick later, unless `isLost` says otherwise. */
class Network {
  nowMs = 1_000;
  isLost: (from: string, to: string) => boolean = () => false;
  readonly sides = new Map<string, Side>();
  readonly #view = newStunView();
  #queue: { readonly data: Buffer; readonly from: string; readonly to: string }[] = [];

  add(address: string, create: (host: IceHost, onSelected: () => void) => IceTransport): Side {
    const expected = new Set<string>();
    const claimed = new Set<string>();
    const host: IceHost = {
      send: (datagram, length, to) => {
        side.sent++;
        if (!this.isLost(address, to)) {
          this.#queue.push({ data: Buffer.from(datagram.subarray(0, length)), from: address, to });
        }
      },
      claimAddress: (key) => claimed.add(key),
      releaseAddress: (key) => claimed.delete(key),
      expectResponse: (id) => expected.add(id),
      forgetResponse: (id) => expected.delete(id),
      onAmplificationLimit: () => {},
    };
    const side: Side = {
      ice: create(host, () => {
        side.selections++;
      }),
      address,
      expected,
      claimed,
      selections: 0,
      sent: 0,
    };
    this.sides.set(address, side);
    return side;
  }

  run(forMs: number): void {
    for (const end = this.nowMs + forMs; this.nowMs < end; this.nowMs += TICK_MS) {
      const arriving = this.#queue;
      this.#queue = [];
      for (const { data, from, to } of arriving) {
        const side = this.sides.get(to);
        if (side === undefined || !parseStun(data, this.#view)) {
          continue;
        }
        if (this.#view.kind === 'request') {
          side.ice.onRequest(data, this.#view, from, 1, this.nowMs);
        } else {
          side.ice.onResponse(data, this.#view, from, 1, this.nowMs);
        }
      }
      for (const { ice } of this.sides.values()) {
        ice.poll(this.nowMs);
      }
    }
  }
}

const [A, B] = ['192.0.2.1', '192.0.2.2'];
const candidate = (
  address: string,
  priority = 100,
): { address: string; port: number; priority: number } => ({
  address,
  port: 1,
  priority,
});
const meet = (one: Side, other: Side): void => {
  one.ice.setRemote(other.ice.local);
  other.ice.setRemote(one.ice.local);
};
const agent = (host: IceHost, onSelected: () => void): IceAgent => new IceAgent(host, onSelected);

function twoAgents(): { net: Network; a: Side; b: Side } {
  const net = new Network();
  const a = net.add(A, agent);
  const b = net.add(B, agent);
  return { net, a, b };
}

test('two full agents select each other, whoever knows whose address', () => {
  for (const knows of ['both', 'a', 'b']) {
    const { net, a, b } = twoAgents();
    (b.ice as IceAgent).becomeControlled();
    meet(a, b);
    if (knows !== 'b') {
      a.ice.addCandidate(candidate(B), net.nowMs);
    }
    if (knows !== 'a') {
      b.ice.addCandidate(candidate(A), net.nowMs);
    }
    net.run(400);
    assert.equal((a.ice as IceAgent).selectedKey, `${B}:1`);
    assert.equal((b.ice as IceAgent).selectedKey, `${A}:1`);
    assert.deepEqual([a.selections, b.selections], [1, 1]);
    assert.ok(a.sent + b.sent < 16, `${a.sent} and ${b.sent} datagrams`);
  }
});

test('two controlling agents, or two controlled ones, agree on their roles', () => {
  for (const areControlled of [false, true]) {
    const { net, a, b } = twoAgents();
    if (areControlled) {
      (a.ice as IceAgent).becomeControlled();
      (b.ice as IceAgent).becomeControlled();
    }
    meet(a, b);
    a.ice.addCandidate(candidate(B), net.nowMs);
    b.ice.addCandidate(candidate(A), net.nowMs);
    net.run(1_500);
    assert.notEqual((a.ice as IceAgent).role, (b.ice as IceAgent).role);
    assert.ok(a.ice.isSelected && b.ice.isSelected);
  }
});

test('a full agent connects to ICE-lite', () => {
  const net = new Network();
  const a = net.add(A, agent);
  const b = net.add(B, (host, onSelected) => new IcePaths(host, onSelected));
  meet(a, b);
  a.ice.addCandidate(candidate(B), net.nowMs);
  net.run(400);
  assert.ok(a.ice.isSelected && b.ice.isSelected);
});

test('two fifths of the datagrams lost: still connected, and the consent lasts', () => {
  let seed = 7;
  const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  const { net, a, b } = twoAgents();
  (b.ice as IceAgent).becomeControlled();
  net.isLost = () => random() < 0.4;
  meet(a, b);
  a.ice.addCandidate(candidate(B), net.nowMs);
  net.run(15_000);
  assert.ok(a.ice.isSelected && b.ice.isSelected);
  for (let round = 0; round < 12; round++) {
    net.run(10_000);
    assert.ok(a.ice.hasConsent(net.nowMs) && b.ice.hasConsent(net.nowMs));
  }
});

test('the better of two candidates is nominated; a dead one does not stop the other', () => {
  const { net, a, b } = twoAgents();
  (b.ice as IceAgent).becomeControlled();
  meet(a, b);
  a.ice.addCandidate(candidate('192.0.2.99', 500), net.nowMs);
  a.ice.addCandidate(candidate(B, 100), net.nowMs);
  net.run(600);
  assert.equal((a.ice as IceAgent).selectedKey, `${B}:1`);
  const sent = a.sent;
  net.run(3_000);
  assert.ok(a.sent - sent <= 2, 'nobody else is checked once a pair is nominated');
});

test('without an answer consent ends after 30 s', () => {
  const { net, a, b } = twoAgents();
  (b.ice as IceAgent).becomeControlled();
  meet(a, b);
  a.ice.addCandidate(candidate(B), net.nowMs);
  net.run(500);
  net.isLost = () => true;
  net.run(24_000);
  assert.ok(a.ice.hasConsent(net.nowMs));
  net.run(13_000);
  assert.ok(!a.ice.hasConsent(net.nowMs) && !b.ice.hasConsent(net.nowMs));
});

test('a restart keeps the path until the new credentials have found one', () => {
  const { net, a, b } = twoAgents();
  (b.ice as IceAgent).becomeControlled();
  meet(a, b);
  a.ice.addCandidate(candidate(B), net.nowMs);
  net.run(500);
  const before = a.ice.local;
  a.ice.restart();
  assert.notDeepEqual(a.ice.local, before);
  assert.ok(a.ice.isSelected);
  b.ice.restart();
  const C = '192.0.2.3';
  net.sides.set(C, b);
  net.sides.delete(B);
  meet(a, b);
  a.ice.addCandidate(candidate(C), net.nowMs);
  net.run(3_000);
  assert.ok(a.ice.hasConsent(net.nowMs));
  assert.ok(a.ice.isSelected && b.ice.isSelected);
});

test('many candidates and forged checks: few datagrams, bounded state, all freed at the end', () => {
  const { net, a, b } = twoAgents();
  meet(a, b);
  let used = 0;
  for (let n = 0; n < 100_000; n++) {
    used += a.ice.addCandidate(candidate(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`), net.nowMs)
      ? 1
      : 0;
  }
  assert.equal(used, 32);
  net.run(60_000);
  assert.ok(a.sent <= 32 * 7, `${a.sent} datagrams`);
  assert.ok(a.expected.size <= 32 * 4);
  a.ice.close();
  assert.equal(a.expected.size, 0);
  assert.equal(a.claimed.size, 0);
});

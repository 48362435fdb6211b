// The addresses of a client: validation before media, consent, replays, roaming, and the
// amplification limit.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'vitest';
import { IcePaths } from '../../../src/webrtc/ice/ice-paths.ts';
import { CONSENT_MS } from '../../../src/webrtc/ice/path.ts';
import {
  bindingSuccess,
  newStunView,
  parseStun,
  transactionId,
} from '../../../src/webrtc/ice/stun.ts';
import { stunRequest } from '../../harness/attacker.ts';

const CLIENT = { ufrag: 'clnt', password: 'the password of the client' };
const SERVER_PORT = 40_000;

interface Sent {
  readonly to: string;
  readonly data: Buffer;
}

/** The IcePaths of one client, and a network that records what they send. */
class Network {
  readonly sent: Sent[] = [];
  readonly expected = new Set<string>();
  readonly claimed = new Map<string, boolean>();
  heldBack = 0;
  selections = 0;
  readonly paths = new IcePaths(
    {
      send: (datagram, length, address, port) => {
        this.sent.push({
          to: `${address}:${port}`,
          data: Buffer.from(datagram.subarray(0, length)),
        });
      },
      claimAddress: (key, isProven) => {
        this.claimed.set(key, isProven);
      },
      releaseAddress: (key) => {
        this.claimed.delete(key);
      },
      expectResponse: (id) => {
        this.expected.add(id);
      },
      forgetResponse: (id) => {
        this.expected.delete(id);
      },
      onAmplificationLimit: () => {
        this.heldBack++;
      },
    },
    () => {
      this.selections++;
    },
  );

  constructor() {
    this.paths.setRemote(CLIENT);
  }

  request(nominate = true): Buffer {
    return stunRequest(
      `${this.paths.local.ufrag}:${CLIENT.ufrag}`,
      this.paths.local.password,
      nominate,
    );
  }

  /** Delivers a Binding request as if from `from`. */
  check(from: string, nowMs: number, data = this.request()): string {
    const view = newStunView();
    assert.ok(parseStun(data, view));
    const [address = '', port] = from.split(':');
    return this.paths.onRequest(data, view, address, Number(port), nowMs);
  }

  /** Our checks to an address since the last call. */
  takeChecks(to: string): Buffer[] {
    const checks = this.sent.filter((each) => each.to === to && each.data.readUInt16BE(0) === 1);
    for (const each of checks) {
      this.sent.splice(this.sent.indexOf(each), 1);
    }
    return checks.map(({ data }) => data);
  }

  /** Delivers the client's response to a check of ours, as if from `from`. */
  answer(check: Buffer, from: string, nowMs: number, password = CLIENT.password): string {
    const response = bindingSuccess(check, '192.0.2.99', SERVER_PORT, password);
    const view = newStunView();
    assert.ok(parseStun(response, view));
    const [address = '', port] = from.split(':');
    return this.paths.onResponse(response, view, address, Number(port), nowMs);
  }

  /** Answers all checks to an address: the client is there. */
  answerAll(at: string, nowMs: number): void {
    for (const check of this.takeChecks(at)) {
      this.answer(check, at, nowMs);
    }
  }

  media(): string[] {
    this.sent.length = 0;
    this.paths.sendMedia(Buffer.alloc(1_200), 1_200);
    return this.sent.splice(0).map(({ to }) => to);
  }

  bytesTo(address: string): number {
    return this.sent
      .filter(({ to }) => to === address)
      .reduce((sum, { data }) => sum + data.length, 0);
  }
}

const HOME = '192.0.2.1:5000';
const MOBILE = '198.51.100.7:6000';
const EVIL = '203.0.113.66:7000';

function connected(nowMs = 0): Network {
  const network = new Network();
  assert.equal(network.check(HOME, nowMs), 'accepted');
  network.answerAll(HOME, nowMs + 10);
  assert.equal(network.paths.selectedKey, HOME);
  return network;
}

test('the first check is answered, and followed by a check of ours; media waits for its response', () => {
  const network = new Network();
  assert.deepEqual(network.media(), []);
  network.check(HOME, 0);
  assert.deepEqual(
    network.sent.map(({ data }) => data.readUInt16BE(0)),
    [0x0101, 0x0001],
  );
  const [check] = network.takeChecks(HOME);
  assert.deepEqual(network.media(), []);
  assert.equal(network.answer(check!, EVIL, 20), 'unknown_source');
  assert.equal(network.answer(check!, HOME, 20, 'another password'), 'stun_integrity');
  assert.deepEqual(network.media(), []);
  assert.equal(network.answer(check!, HOME, 20), 'accepted');
  assert.deepEqual(network.media(), [HOME]);
  assert.equal(network.answer(check!, HOME, 21), 'stun_unknown_user', 'each response counts once');
  assert.deepEqual([...network.claimed], [[HOME, true]]);
});

test('a check that is replayed from another address is rejected', () => {
  const network = new Network();
  const captured = network.request();
  network.check(HOME, 0, captured);
  network.answerAll(HOME, 10);
  network.sent.length = 0;
  assert.equal(network.check(EVIL, 20, captured), 'stun_replayed');
  assert.equal(network.sent.length, 0);
  assert.equal(network.check(HOME, 30, captured), 'repeated', 'a retransmission is answered');
  assert.equal(network.sent.length, 1);
});

test('a check that is repeated endlessly from its own address is answered a few times', () => {
  const network = connected();
  const captured = network.request();
  for (let nowMs = 100; nowMs < 10_000; nowMs++) {
    network.check(HOME, nowMs, captured);
  }
  const answers = network.sent.filter(({ data }) => data.readUInt16BE(0) === 0x0101).length;
  assert.ok(answers >= 8 && answers <= 20, `${answers} answers`);
  assert.equal(network.check(HOME, 10_000, captured), 'rate_limited');
  assert.equal(network.check(HOME, 10_001), 'accepted', 'the next check is accepted');
});

test('a captured check that is sent from elsewhere does not move the media, and gets few bytes', () => {
  const network = connected();
  const captured = network.request();
  assert.equal(network.check(EVIL, 100, captured), 'accepted');
  for (let nowMs = 100; nowMs < 20_000; nowMs += 50) {
    network.paths.poll(nowMs);
    network.answerAll(HOME, nowMs);
    network.paths.sendHandshake(Buffer.alloc(900), nowMs);
  }
  assert.ok(
    network.bytesTo(EVIL) <= 3 * captured.length,
    `${network.bytesTo(EVIL)} bytes for ${captured.length}`,
  );
  assert.deepEqual(network.media(), [HOME]);
});

test('a copy that overtakes the original does not lock the client out', () => {
  const network = new Network();
  const captured = network.request();
  network.check(EVIL, 0, captured);
  assert.equal(network.check(HOME, 1, captured), 'repeated');
  network.answerAll(HOME, 20);
  assert.deepEqual(network.media(), [HOME]);
  assert.equal(network.check('203.0.113.67:7000', 30, captured), 'stun_replayed');
});

test('an address that is not validated gets at most three times what it sent', () => {
  const network = new Network();
  let received = 0;
  for (let nowMs = 0; nowMs < 10_000; nowMs += 20) {
    if (nowMs % 400 === 0) {
      const data = network.request();
      received += data.length;
      network.check(EVIL, nowMs, data);
    }
    if (nowMs % 1_000 === 0) {
      received += 200;
      network.paths.onHandshake(EVIL, 200);
    }
    network.paths.sendHandshake(Buffer.alloc(900), nowMs);
    network.paths.poll(nowMs);
    assert.ok(
      network.bytesTo(EVIL) <= 3 * received,
      `${network.bytesTo(EVIL)} bytes for ${received} after ${nowMs} ms`,
    );
  }
  assert.ok(network.heldBack > 0);
  assert.deepEqual(network.media(), []);
});

test('the handshake starts within that limit before the address is validated', () => {
  const network = new Network();
  network.check(HOME, 0);
  network.paths.onHandshake(HOME, 250);
  assert.equal(network.paths.sendHandshake(Buffer.alloc(700), 1), true);
  assert.equal(network.paths.sendHandshake(Buffer.alloc(700), 1), false);
  network.answerAll(HOME, 20);
  assert.equal(network.selections, 1, 'now the peer can send what was held back');
  assert.equal(network.paths.sendHandshake(Buffer.alloc(7_000), 21), true);
});

test('media follows a roaming client once its new address is validated', () => {
  const network = connected();
  network.check(MOBILE, 5_000);
  assert.deepEqual(network.media(), [HOME], 'not validated yet');
  network.check(MOBILE, 5_300);
  network.answerAll(MOBILE, 5_350);
  assert.deepEqual(network.media(), [MOBILE]);
  network.check(HOME, 9_000); // and back
  assert.deepEqual(network.media(), [MOBILE]);
  network.check(HOME, 9_300);
  network.answerAll(HOME, 9_340);
  assert.deepEqual(network.media(), [HOME]);
});

test('a response to a check from before a nomination does not complete that nomination', () => {
  const network = connected();
  network.check(MOBILE, 1_000);
  const [early] = network.takeChecks(MOBILE);
  network.check(HOME, 1_010); // the client changed its mind
  network.check(MOBILE, 1_020); // and again
  const [late] = network.takeChecks(MOBILE);
  network.answer(early!, MOBILE, 1_030);
  assert.deepEqual(network.media(), [HOME]);
  network.answer(late!, MOBILE, 1_040);
  assert.deepEqual(network.media(), [MOBILE]);
});

test('media follows a NAT rebinding without a nomination, but not an attacker', () => {
  const network = connected();
  const captured = network.request();
  let movedMs = 0;
  for (let nowMs = 100; nowMs < 20_000 && movedMs === 0; nowMs += 100) {
    if (nowMs === 1_000) {
      network.check(EVIL, nowMs, captured);
    }
    if (nowMs % 2_500 === 0) {
      network.check(MOBILE, nowMs, network.request(false));
    }
    network.paths.poll(nowMs);
    network.takeChecks(HOME); // the old address no longer answers
    network.answerAll(MOBILE, nowMs + 50);
    if (network.paths.selectedKey === MOBILE) {
      movedMs = nowMs;
    }
  }
  assert.ok(movedMs > 0 && movedMs <= 5_200, `moved after ${movedMs} ms`);
  assert.deepEqual(network.media(), [MOBILE]);
});

test('a second address without a nomination gets no checks while the first one responds', () => {
  const network = connected();
  for (let nowMs = 100; nowMs < 30_000; nowMs += 100) {
    if (nowMs % 1_000 === 0) {
      network.check(MOBILE, nowMs, network.request(false));
    }
    network.paths.poll(nowMs);
    network.answerAll(HOME, nowMs + 20);
    assert.equal(network.takeChecks(MOBILE).length, 0);
  }
  assert.deepEqual(network.media(), [HOME]);
});

test('consent is checked every four to six seconds, and expires 30 s after the last response', () => {
  const network = connected();
  const asked: number[] = [];
  for (let nowMs = 50; nowMs < 60_000; nowMs += 50) {
    network.paths.poll(nowMs);
    for (const check of network.takeChecks(HOME)) {
      asked.push(nowMs);
      network.answer(check, HOME, nowMs);
    }
    assert.ok(network.paths.hasConsent(nowMs));
  }
  const gaps = asked.slice(1).map((at, index) => at - asked[index]!);
  assert.ok(gaps.length >= 9, `${gaps.length} checks in a minute`);
  assert.ok(
    gaps.every((gap) => gap >= 4_000 && gap <= 6_050),
    gaps.join(' '),
  );
  assert.ok(new Set(gaps).size > 1, 'the intervals are random');
  const lastMs = asked.at(-1)!;
  for (let nowMs = 60_000; nowMs < lastMs + CONSENT_MS; nowMs += 50) {
    network.paths.poll(nowMs);
    network.check(HOME, nowMs); // a check of the client is not consent
    assert.ok(network.paths.hasConsent(nowMs));
  }
  assert.equal(network.paths.hasConsent(lastMs + CONSENT_MS + 1), false);
});

test('an error response does not validate an address', () => {
  const network = new Network();
  network.check(HOME, 0);
  const [check] = network.takeChecks(HOME);
  const response = bindingSuccess(check!, '192.0.2.99', SERVER_PORT, CLIENT.password);
  const view = newStunView();
  assert.ok(parseStun(response, view));
  assert.equal(
    network.paths.onResponse(response, { ...view, kind: 'error' }, '192.0.2.1', 5_000, 1),
    'other',
  );
  assert.deepEqual(network.media(), []);
});

test('the state per client is bounded, and the selected address is never evicted', () => {
  const network = connected();
  for (let index = 0; index < 2_000; index++) {
    network.check(`203.0.113.5:${1_000 + index}`, 100 + index);
  }
  assert.ok(network.claimed.size <= 8, `${network.claimed.size} addresses`);
  assert.ok(network.claimed.has(HOME));
  assert.ok(network.expected.size <= 8 * 4, `${network.expected.size} checks`);
  assert.deepEqual(network.media(), [HOME]);
  network.paths.close();
  assert.deepEqual([network.claimed.size, network.expected.size], [0, 0]);
  assert.deepEqual(network.media(), []);
});

test('each check has its own transaction id, and a forged response has no effect', () => {
  const network = connected();
  network.paths.poll(7_000);
  const [check] = network.takeChecks(HOME);
  const forged = Buffer.from(check!);
  randomBytes(12).copy(forged, 8);
  assert.notDeepEqual(transactionId(check!), transactionId(forged));
  assert.equal(network.answer(forged, HOME, 7_001), 'stun_unknown_user');
  assert.equal(network.answer(check!, HOME, 7_002), 'accepted');
});

// Which address of a client gets what: proof before media, consent, replays, roaming, and how little a forger gets sent.
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

/** One client's addresses, and the datagrams that went out. The network is this class; everything else is the real thing. */
class Net {
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
    this.paths.setRemote(CLIENT.ufrag, CLIENT.password);
  }

  request(nominate = true): Buffer {
    return stunRequest(`${this.paths.ufrag}:${CLIENT.ufrag}`, this.paths.password, nominate);
  }

  /** Gives a Binding request as if it came from `from`. */
  check(from: string, nowMs: number, data = this.request()): string {
    const view = newStunView();
    assert.ok(parseStun(data, view));
    const [address = '', port] = from.split(':');
    return this.paths.onRequest(data, view, address, Number(port), nowMs);
  }

  /** The checks of ours to an address that were not taken yet. */
  takeChecks(to: string): Buffer[] {
    const checks = this.sent.filter((each) => each.to === to && each.data.readUInt16BE(0) === 1);
    for (const each of checks) {
      this.sent.splice(this.sent.indexOf(each), 1);
    }
    return checks.map(({ data }) => data);
  }

  /** The client answers a check of ours, from `from`. */
  answer(check: Buffer, from: string, nowMs: number, password = CLIENT.password): string {
    const response = bindingSuccess(check, '192.0.2.99', SERVER_PORT, password);
    const view = newStunView();
    assert.ok(parseStun(response, view));
    const [address = '', port] = from.split(':');
    return this.paths.onResponse(response, view, address, Number(port), nowMs);
  }

  /** A client that is really there: it answers whatever is asked. */
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

function connected(nowMs = 0): Net {
  const net = new Net();
  assert.equal(net.check(HOME, nowMs), 'accepted');
  net.answerAll(HOME, nowMs + 10);
  assert.equal(net.paths.selectedKey, HOME);
  return net;
}

test('the first check is answered and asked back at once; media waits for the answer, from that address', () => {
  const net = new Net();
  assert.deepEqual(net.media(), []);
  net.check(HOME, 0);
  assert.deepEqual(
    net.sent.map(({ data }) => data.readUInt16BE(0)),
    [0x0101, 0x0001],
  );
  const [check] = net.takeChecks(HOME);
  assert.deepEqual(net.media(), []);
  assert.equal(net.answer(check!, EVIL, 20), 'unknown_source');
  assert.equal(net.answer(check!, HOME, 20, 'another password'), 'stun_integrity');
  assert.deepEqual(net.media(), []);
  assert.equal(net.answer(check!, HOME, 20), 'accepted');
  assert.deepEqual(net.media(), [HOME]);
  assert.equal(net.answer(check!, HOME, 21), 'stun_unknown_user', 'each answer counts once');
  assert.deepEqual([...net.claimed], [[HOME, true]]);
});

test('a check that is replayed from another address is refused, asked or not', () => {
  const net = new Net();
  const captured = net.request();
  net.check(HOME, 0, captured);
  net.answerAll(HOME, 10);
  net.sent.length = 0;
  assert.equal(net.check(EVIL, 20, captured), 'stun_replayed');
  assert.equal(net.sent.length, 0);
  assert.equal(net.check(HOME, 30, captured), 'repeated', 'its own retransmission is answered');
  assert.equal(net.sent.length, 1);
});

test('a check that is repeated without end, from the address it came from, is answered a few times', () => {
  const net = connected();
  const captured = net.request();
  for (let nowMs = 100; nowMs < 10_000; nowMs++) {
    net.check(HOME, nowMs, captured);
  }
  const answers = net.sent.filter(({ data }) => data.readUInt16BE(0) === 0x0101).length;
  assert.ok(answers >= 8 && answers <= 20, `${answers} answers`);
  assert.equal(net.check(HOME, 10_000, captured), 'rate_limited');
  assert.equal(net.check(HOME, 10_001), 'accepted', 'its own next check is taken as ever');
});

test('a captured check that never arrived moves nothing, and gets its sender little', () => {
  const net = connected();
  const captured = net.request();
  assert.equal(net.check(EVIL, 100, captured), 'accepted');
  for (let nowMs = 100; nowMs < 20_000; nowMs += 50) {
    net.paths.poll(nowMs);
    net.answerAll(HOME, nowMs);
    net.paths.sendHandshake(Buffer.alloc(900), nowMs);
  }
  assert.ok(
    net.bytesTo(EVIL) <= 3 * captured.length,
    `${net.bytesTo(EVIL)} bytes for ${captured.length}`,
  );
  assert.deepEqual(net.media(), [HOME]);
});

test('a copy that overtakes the original keeps the client out of nothing', () => {
  const net = new Net();
  const captured = net.request();
  net.check(EVIL, 0, captured);
  assert.equal(net.check(HOME, 1, captured), 'repeated');
  net.answerAll(HOME, 20);
  assert.deepEqual(net.media(), [HOME]);
  assert.equal(net.check('203.0.113.67:7000', 30, captured), 'stun_replayed');
});

test('no more than three times what came goes to an address that has not answered', () => {
  const net = new Net();
  let received = 0;
  for (let nowMs = 0; nowMs < 10_000; nowMs += 20) {
    if (nowMs % 400 === 0) {
      const data = net.request();
      received += data.length;
      net.check(EVIL, nowMs, data);
    }
    if (nowMs % 1_000 === 0) {
      received += 200;
      net.paths.onHandshake(EVIL, 200);
    }
    net.paths.sendHandshake(Buffer.alloc(900), nowMs);
    net.paths.poll(nowMs);
    assert.ok(
      net.bytesTo(EVIL) <= 3 * received,
      `${net.bytesTo(EVIL)} bytes for ${received} after ${nowMs} ms`,
    );
  }
  assert.ok(net.heldBack > 0);
  assert.deepEqual(net.media(), []);
});

test('a handshake goes ahead within that bound before the address has answered, so that nothing takes longer', () => {
  const net = new Net();
  net.check(HOME, 0);
  net.paths.onHandshake(HOME, 250);
  assert.equal(net.paths.sendHandshake(Buffer.alloc(700), 1), true);
  assert.equal(net.paths.sendHandshake(Buffer.alloc(700), 1), false);
  net.answerAll(HOME, 20);
  assert.equal(net.selections, 1, 'which is when what was held back is sent');
  assert.equal(net.paths.sendHandshake(Buffer.alloc(7_000), 21), true);
});

test('a client that roams takes its media along once its new address has answered', () => {
  const net = connected();
  net.check(MOBILE, 5_000);
  assert.deepEqual(net.media(), [HOME], 'not before');
  net.check(MOBILE, 5_300);
  net.answerAll(MOBILE, 5_350);
  assert.deepEqual(net.media(), [MOBILE]);
  net.check(HOME, 9_000); // and back
  assert.deepEqual(net.media(), [MOBILE]);
  net.check(HOME, 9_300);
  net.answerAll(HOME, 9_340);
  assert.deepEqual(net.media(), [HOME]);
});

test('an answer from before a nomination does not count for it', () => {
  const net = connected();
  net.check(MOBILE, 1_000);
  const [early] = net.takeChecks(MOBILE);
  net.check(HOME, 1_010); // the client changed its mind
  net.check(MOBILE, 1_020); // and again
  const [late] = net.takeChecks(MOBILE);
  net.answer(early!, MOBILE, 1_030);
  assert.deepEqual(net.media(), [HOME]);
  net.answer(late!, MOBILE, 1_040);
  assert.deepEqual(net.media(), [MOBILE]);
});

test('a NAT that changes the address is followed though nobody nominates it, and an attacker beside it is not', () => {
  const net = connected();
  const captured = net.request();
  let movedMs = 0;
  for (let nowMs = 100; nowMs < 20_000 && movedMs === 0; nowMs += 100) {
    if (nowMs === 1_000) {
      net.check(EVIL, nowMs, captured);
    }
    if (nowMs % 2_500 === 0) {
      net.check(MOBILE, nowMs, net.request(false));
    }
    net.paths.poll(nowMs);
    net.takeChecks(HOME); // nobody is there any more
    net.answerAll(MOBILE, nowMs + 50);
    if (net.paths.selectedKey === MOBILE) {
      movedMs = nowMs;
    }
  }
  assert.ok(movedMs > 0 && movedMs <= 5_200, `moved after ${movedMs} ms`);
  assert.deepEqual(net.media(), [MOBILE]);
});

test('a second address that nobody nominates is left alone while the first one answers', () => {
  const net = connected();
  for (let nowMs = 100; nowMs < 30_000; nowMs += 100) {
    if (nowMs % 1_000 === 0) {
      net.check(MOBILE, nowMs, net.request(false));
    }
    net.paths.poll(nowMs);
    net.answerAll(HOME, nowMs + 20);
    assert.equal(net.takeChecks(MOBILE).length, 0);
  }
  assert.deepEqual(net.media(), [HOME]);
});

test('consent is asked for every four to six seconds, and ends 30 s after the last answer whatever else arrives', () => {
  const net = connected();
  const asked: number[] = [];
  for (let nowMs = 50; nowMs < 60_000; nowMs += 50) {
    net.paths.poll(nowMs);
    for (const check of net.takeChecks(HOME)) {
      asked.push(nowMs);
      net.answer(check, HOME, nowMs);
    }
    assert.ok(net.paths.hasConsent(nowMs));
  }
  const gaps = asked.slice(1).map((at, index) => at - asked[index]!);
  assert.ok(gaps.length >= 9, `${gaps.length} checks in a minute`);
  assert.ok(
    gaps.every((gap) => gap >= 4_000 && gap <= 6_050),
    gaps.join(' '),
  );
  assert.ok(new Set(gaps).size > 1, 'not all at the same distance');
  const lastMs = asked.at(-1)!;
  for (let nowMs = 60_000; nowMs < lastMs + CONSENT_MS; nowMs += 50) {
    net.paths.poll(nowMs);
    net.check(HOME, nowMs); // checks of the client's are no answers
    assert.ok(net.paths.hasConsent(nowMs));
  }
  assert.equal(net.paths.hasConsent(lastMs + CONSENT_MS + 1), false);
});

test('an answer that says error proves nothing', () => {
  const net = new Net();
  net.check(HOME, 0);
  const [check] = net.takeChecks(HOME);
  const response = bindingSuccess(check!, '192.0.2.99', SERVER_PORT, CLIENT.password);
  const view = newStunView();
  assert.ok(parseStun(response, view));
  assert.equal(
    net.paths.onResponse(response, { ...view, kind: 'error' }, '192.0.2.1', 5_000, 1),
    'other',
  );
  assert.deepEqual(net.media(), []);
});

test('what is kept of a client is bounded, and the address in use is not pushed out', () => {
  const net = connected();
  for (let index = 0; index < 2_000; index++) {
    net.check(`203.0.113.5:${1_000 + index}`, 100 + index);
  }
  assert.ok(net.claimed.size <= 8, `${net.claimed.size} addresses`);
  assert.ok(net.claimed.has(HOME));
  assert.ok(net.expected.size <= 8 * 4, `${net.expected.size} checks`);
  assert.deepEqual(net.media(), [HOME]);
  net.paths.close();
  assert.deepEqual([net.claimed.size, net.expected.size], [0, 0]);
  assert.deepEqual(net.media(), []);
});

test('each check has an id of its own, and a forged answer changes nothing', () => {
  const net = connected();
  net.paths.poll(7_000);
  const [check] = net.takeChecks(HOME);
  const forged = Buffer.from(check!);
  randomBytes(12).copy(forged, 8);
  assert.notDeepEqual(transactionId(check!), transactionId(forged));
  assert.equal(net.answer(forged, HOME, 7_001), 'stun_unknown_user');
  assert.equal(net.answer(check!, HOME, 7_002), 'accepted');
});

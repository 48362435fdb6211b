// The message budgets of one socket and of all sockets; well-behaved clients do not notice them.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  MessageBudget,
  SharedBudget,
  type Verdict,
  costOf,
} from '../../../src/front/sessions/message-budget.ts';

interface Sender {
  readonly budget: MessageBudget;
  taken: number;
  dropped: number;
  spent: number;
  end: Verdict | undefined;
}

const join = (shared: SharedBudget, nowMs = 0): Sender => ({
  budget: new MessageBudget(shared, nowMs),
  taken: 0,
  dropped: 0,
  spent: 0,
  end: undefined,
});

/** Sends `count` messages at once, until the socket would be closed. */
function send(sender: Sender, count: number, bytes: number, nowMs: number, isBinary = true): void {
  const cost = costOf(bytes, isBinary);
  for (let i = 0; i < count && sender.end === undefined; i++) {
    const verdict = sender.budget.take(cost, nowMs);
    sender.spent += cost;
    if (verdict === 'taken') {
      sender.taken++;
    } else if (verdict === 'exhausted') {
      sender.end = verdict;
      sender.budget.close();
    } else {
      sender.dropped++;
    }
  }
}

for (const [what, bytes, everyMs, count] of [
  ['pieces of 20 ms', 640, 20, 1],
  ['pieces of 1 ms', 32, 1, 1],
  ['pieces of 1 ms in clumps of half a second', 32, 500, 500],
  ['pieces of 20 ms, four times as fast as real time', 640, 5, 1],
] as const) {
  test(`${what}: ten minutes of them are taken`, () => {
    const sender = join(new SharedBudget(0));
    for (let nowMs = 0; nowMs < 600_000; nowMs += everyMs) {
      send(sender, count, bytes, nowMs);
    }
    assert.deepEqual([sender.dropped, sender.end], [0, undefined]);
  });
}

for (const [what, bytes, count] of [
  ['ten minutes in pieces of 6000 bytes', 6000, 3200],
  ['ten minutes in pieces of 128,014 bytes', 128_014, 150],
  ['ten minutes in pieces of 1 MiB', 1 << 20, 19],
  ['five minutes in pieces of 20 ms', 640, 15_000],
  ['twenty seconds in pieces of 1 ms', 32, 20_000],
] as const) {
  test(`${what}, all at once, are taken`, () => {
    const sender = join(new SharedBudget(0));
    send(sender, count, bytes, 0);
    assert.deepEqual([sender.taken, sender.end], [count, undefined]);
  });
}

test('twenty sessions that each get half a minute of speech at once, every half minute, lose nothing', () => {
  const shared = new SharedBudget(0);
  const senders = Array.from({ length: 20 }, () => join(shared));
  for (let nowMs = 0; nowMs < 300_000; nowMs += 30_000) {
    for (const sender of senders) {
      send(sender, 160, 6000, nowMs);
    }
  }
  for (const { dropped, end } of senders) {
    assert.deepEqual([dropped, end], [0, undefined]);
  }
});

test('of a million tiny messages, one burst is taken and one dropped; then the socket must be closed', () => {
  const sender = join(new SharedBudget(0));
  send(sender, 1_000_000, 2, 0);
  assert.equal(sender.end, 'exhausted');
  assert.ok(
    sender.taken > 20_000 && sender.taken + sender.dropped < 50_000,
    `${sender.taken} taken, ${sender.dropped} dropped`,
  );
});

test('text costs by its length: a flood of long JSON ends soon', () => {
  const sender = join(new SharedBudget(0));
  send(sender, 1000, 100_000, 0, false);
  assert.equal(sender.end, 'exhausted');
  assert.ok(sender.taken < 5, `${sender.taken} taken`);
});

test('an offer of any length reaches the parser, which rejects a long one', () => {
  for (const bytes of [10_000, 131_072, 131_073, 1 << 20]) {
    const sender = join(new SharedBudget(0));
    send(sender, 2, bytes, 0, false);
    assert.equal(sender.taken, 2, `${bytes} bytes`);
  }
});

test('a socket slightly above its rate loses the excess and stays open', () => {
  const sender = join(new SharedBudget(0));
  for (let nowMs = 0; nowMs < 60_000; nowMs += 10) {
    send(sender, 45, 2, nowMs);
  }
  assert.equal(sender.end, undefined);
  assert.ok(sender.dropped > 0 && sender.dropped < 40_000, `${sender.dropped} dropped`);
});

test('a hundred sockets that flood at once are closed after 0.3 s of the thread in all', () => {
  const shared = new SharedBudget(0);
  const senders = Array.from({ length: 100 }, () => join(shared));
  for (const sender of senders) {
    send(sender, 100_000, 2, 0);
  }
  assert.ok(senders.every(({ end }) => end === 'exhausted'));
  const spent = senders.reduce((sum, sender) => sum + sender.spent, 0);
  assert.ok(spent < 300_000, `${spent} units`);
  assert.equal(shared.members, 0);
});

test('amid a flood of others, a socket that exceeds its share by little stays open', () => {
  const shared = new SharedBudget(0);
  const modest = join(shared);
  for (const hog of Array.from({ length: 20 }, () => join(shared))) {
    send(hog, 100_000, 2, 0);
  }
  send(modest, 1800, 2, 0);
  assert.equal(modest.end, undefined);
  assert.ok(modest.taken >= 950 && modest.dropped >= 500, `${modest.taken} taken`);
});

test('200 sockets near their limit leave the thread time; one that sends little loses nothing', () => {
  const shared = new SharedBudget(0);
  const hogs = Array.from({ length: 200 }, () => join(shared));
  const quiet = join(shared);
  const quick = join(shared);
  const [seconds, lastFrom] = [20, 15];
  const handled = (): number => hogs.reduce((sum, { taken, dropped }) => sum + taken + dropped, 0);
  let before = 0;
  for (let nowMs = 0; nowMs < seconds * 1000; nowMs += 10) {
    if (nowMs === lastFrom * 1000) {
      before = handled();
    }
    for (const hog of hogs) {
      send(hog, 39, 2, nowMs);
    }
    if (nowMs % 20 === 0) {
      send(quiet, 1, 640, nowMs);
    }
    send(quick, 10, 32, nowMs);
  }
  const rate = (handled() - before) / (seconds - lastFrom);
  assert.ok(rate < 550_000, `${rate} messages a second reach us at last`);
  assert.ok(
    hogs.some(({ end }) => end === 'exhausted'),
    'what is dropped costs too, so some are closed',
  );
  for (const { dropped, end } of [quiet, quick]) {
    assert.deepEqual([dropped, end], [0, undefined]);
  }
});

test('a closed socket no longer has a fair share', () => {
  const shared = new SharedBudget(0);
  const { budget } = join(shared);
  budget.close();
  budget.close();
  assert.equal(shared.members, 0);
});

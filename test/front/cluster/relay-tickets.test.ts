// Tickets between servers: each is good once, for one request to one server, for a minute.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { RelayTickets } from '../../../src/front/cluster/relay-tickets.ts';

const KEY = Buffer.alloc(32, 1);
const NOW_MS = 1_700_000_000_000;
const TARGET = '/compose/webrtc/p2p?session_token=x';

test('a ticket is good once, for the server and the request that it was made for', () => {
  const here = new RelayTickets(KEY, 'here');
  const there = new RelayTickets(KEY, 'there');
  const ticket = here.issue('there', TARGET, NOW_MS);
  assert.equal(here.redeem(ticket, TARGET, NOW_MS), false, 'another server');
  assert.equal(there.redeem(ticket, `${TARGET}y`, NOW_MS), false, 'another request');
  assert.equal(there.redeem(`${ticket.slice(0, -1)}!`, TARGET, NOW_MS), false, 'changed');
  assert.equal(there.redeem(ticket, TARGET, NOW_MS + 61_000), false, 'too late');
  assert.equal(there.redeem(ticket, TARGET, NOW_MS - 61_000), false, 'from the future');
  assert.equal(there.redeem(ticket, TARGET, NOW_MS + 1000), true);
  assert.equal(there.redeem(ticket, TARGET, NOW_MS + 1000), false, 'again');
  const another = new RelayTickets(Buffer.alloc(32, 2), 'here').issue('there', TARGET, NOW_MS);
  assert.equal(there.redeem(another, TARGET, NOW_MS), false, 'another key');
  for (const text of ['', 'x', '1.2.3', '.'.repeat(100)]) {
    assert.equal(there.redeem(text, TARGET, NOW_MS), false);
  }
});

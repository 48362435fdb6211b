// STUN messages: the test vectors of RFC 5769, and messages with small faults.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  bindingRequest,
  bindingSuccess,
  isAuthentic,
  newStunView,
  parseStun,
} from '../../../src/webrtc/ice/stun.ts';
import { ipBytes, unmapped } from '../../../src/webrtc/ice/mapped-address.ts';

const PASSWORD = 'VOkJxbRl1RmTxUk/WvJxBt';
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');

/** RFC 5769 section 2.1. */
const REQUEST =
  hex(`000100582112a442b7e7a701bc34d686fa87dfae 802200105354554e207465737420636c69656e74 002400046e0001ff 80290008932ff9b151263b36
  00060009 6576746a3a683676592020 20 00080014 9aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a2 80280004e57a3bcf`);

test('the request of RFC 5769 is parsed and authentic', () => {
  const view = newStunView();
  assert.equal(parseStun(REQUEST, view), true);
  assert.deepEqual([view.kind, view.localUfrag, view.hasUseCandidate], ['request', 'evtj', false]);
  assert.equal(isAuthentic(REQUEST, view, PASSWORD), true);
  assert.equal(isAuthentic(REQUEST, view, `${PASSWORD}x`), false);
});

test('a change of any byte is detected', () => {
  const view = newStunView();
  for (let at = 0; at < REQUEST.length; at++) {
    // The type of FINGERPRINT: changed, it is an unknown attribute, which is ignored.
    if (at === 100 || at === 101) {
      continue;
    }
    const changed = Buffer.from(REQUEST);
    changed[at]! ^= 0x40;
    assert.equal(
      parseStun(changed, view) && isAuthentic(changed, view, PASSWORD),
      false,
      `byte ${at}`,
    );
  }
  for (let length = 0; length < REQUEST.length; length++) {
    assert.equal(parseStun(REQUEST.subarray(0, length), view), false);
  }
});

test('attributes after MESSAGE-INTEGRITY have no effect', () => {
  const view = newStunView();
  const base = REQUEST.subarray(0, REQUEST.length - 8);
  const withNomination = Buffer.concat([base, hex('00250000')]);
  withNomination.writeUInt16BE(withNomination.length - 20, 2);
  assert.equal(parseStun(withNomination, view), true);
  assert.equal(view.hasUseCandidate, false);
});

test('our response has the mapped address of RFC 5769, IPv4 and IPv6; our request is authentic', () => {
  const view = newStunView();
  const four = bindingSuccess(REQUEST, '192.0.2.1', 32_853, PASSWORD);
  assert.ok(four.includes(hex('002000080001a147e112a643')), 'section 2.2');
  assert.ok(parseStun(four, view) && view.kind === 'success' && isAuthentic(four, view, PASSWORD));
  const six = bindingSuccess(REQUEST, '2001:db8:1234:5678:11:2233:4455:6677', 32_853, PASSWORD);
  assert.ok(six.includes(hex('002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9')), 'section 2.3');
  const asked = newStunView();
  const ours = bindingRequest(Buffer.alloc(12, 3), 'them:us', PASSWORD, Buffer.alloc(8));
  assert.ok(
    parseStun(ours, asked) &&
      asked.kind === 'request' &&
      asked.localUfrag === 'them' &&
      isAuthentic(ours, asked, PASSWORD),
  );
});

test('addresses are parsed in each notation', () => {
  assert.equal(ipBytes('10.1.2.3').toString('hex'), '0a010203');
  assert.equal(ipBytes('::1').toString('hex'), '00000000000000000000000000000001');
  assert.equal(ipBytes('fe80::1%eth0').toString('hex'), 'fe800000000000000000000000000001');
  assert.equal(ipBytes(unmapped('::ffff:10.1.2.3')).toString('hex'), '0a010203');
  assert.equal(ipBytes('2001:db8::').toString('hex'), '20010db8000000000000000000000000');
});

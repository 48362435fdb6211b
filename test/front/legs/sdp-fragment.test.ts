// Fragments of SDP in WHEP: what is read of a client's, what ours hold, and the offer after a restart.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  fragmentOf,
  parseFragment,
  ufragOf,
  withCredentialsOf,
} from '../../../src/front/legs/sdp-fragment.ts';
import { parseOffer } from '../../../src/webrtc/sdp/offer.ts';
import { chromium } from '../../webrtc/sdp/offers.ts';

const PASSWORD = 'P2uYro0UCOQ4zxjKXaWCBui1';

test('credentials and candidates are read; what cannot be used is skipped', () => {
  const lines = [
    'a=ice-ufrag:EsAw',
    `a=ice-pwd:${PASSWORD}`,
    'm=audio 9 UDP/TLS/RTP/SAVPF 0',
    'a=mid:0',
    'a=candidate:1 1 udp 2130706431 192.0.2.1 61764 typ host',
    'a=candidate:2 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active',
    'a=candidate:3 1 udp 2130706431 1234.local 61764 typ host',
    'a=end-of-candidates',
  ];
  for (const lineEnd of ['\r\n', '\n']) {
    assert.deepEqual(parseFragment(lines.join(lineEnd)), {
      ufrag: 'EsAw',
      password: PASSWORD,
      candidates: [{ address: '192.0.2.1', port: 61_764, priority: 2_130_706_431 }],
    });
  }
  const none = { ufrag: undefined, password: undefined, candidates: [] };
  assert.deepEqual(parseFragment('a=ice-ufrag:x y\r\na=ice-pwd:short\r\n'), none);
  const many = 'a=candidate:1 1 udp 2130706431 192.0.2.1 61764 typ host\r\n'.repeat(1000);
  assert.equal(parseFragment(many).candidates.length, 64);
});

test('the offer after a restart differs in nothing but its credentials and candidates', () => {
  const restarted = withCredentialsOf(chromium, 'EsAw', PASSWORD);
  assert.equal(ufragOf(restarted), 'EsAw');
  const [before, after] = [parseOffer(chromium), parseOffer(restarted)];
  assert.deepEqual(
    after.sections.map(({ transport: _transport, ...section }) => section),
    before.sections.map(({ transport: _transport, ...section }) => section),
  );
  assert.ok(after.sections.every(({ transport }) => transport.ufrag === 'EsAw'));
});

test('our fragment has the credentials, and the candidates once', () => {
  const section = (mid: string): string[] => [
    `m=audio 9 UDP/TLS/RTP/SAVPF 111`,
    'c=IN IP4 0.0.0.0',
    'a=ice-ufrag:abcd',
    `a=ice-pwd:${PASSWORD}`,
    `a=mid:${mid}`,
    'a=candidate:1 1 udp 2130706431 192.0.2.1 61764 typ host',
    'a=end-of-candidates',
  ];
  const answer = ['v=0', 'a=ice-lite', ...section('0'), ...section('1'), ''].join('\r\n');
  assert.deepEqual(fragmentOf(answer).split('\r\n'), [
    'a=ice-ufrag:abcd',
    `a=ice-pwd:${PASSWORD}`,
    'm=audio 9 UDP/TLS/RTP/SAVPF 111',
    'a=mid:0',
    'a=candidate:1 1 udp 2130706431 192.0.2.1 61764 typ host',
    'a=end-of-candidates',
    '',
  ]);
});

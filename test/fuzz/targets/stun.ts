// STUN: what anyone can send to the media port and to the STUN server.
import assert from 'node:assert/strict';
import { bindingResponse } from '../../../src/webrtc/ice/stun-server.ts';
import {
  bindingSuccess,
  isAuthentic,
  newStunView,
  parseStun,
} from '../../../src/webrtc/ice/stun.ts';
import type { FuzzTarget } from '../engine/target.ts';

const PASSWORD = 'a-password-of-enough-letters';
const view = newStunView();
const answer = newStunView();

export const target: FuzzTarget = {
  maxBytes: 2048, // MAX_DATAGRAM_BYTES of the endpoint
  words: ['ufrag:remote'],
  run(data) {
    const before = Buffer.from(data);
    const address = data.length % 2 === 0 ? '192.0.2.7' : '2001:db8::7';
    const open = bindingResponse(data, address, 40_000);
    if (open !== undefined) {
      assert.ok(
        open.length <= 44 && parseStun(open, answer) && answer.kind === 'success',
        'the answer of the STUN server is malformed',
      );
    }
    if (!parseStun(data, view)) {
      return;
    }
    assert.ok(view.localUfrag.length <= 513);
    if (view.integrityOffset >= 0) {
      assert.ok(view.integrityOffset + 24 <= data.length);
    }
    isAuthentic(data, view, PASSWORD);
    assert.ok(before.equals(data), 'parsing changed the message');
    const success = bindingSuccess(data, address, 40_000, PASSWORD);
    assert.ok(
      parseStun(success, answer) &&
        answer.kind === 'success' &&
        isAuthentic(success, answer, PASSWORD),
      'our response is malformed',
    );
  },
};

// LiveKit's protocol buffers: requests to join, and the signal messages of a viewer, as far as what
// the room makes of them.
import assert from 'node:assert/strict';
import { createLogger } from '../../../src/base/log.ts';
import { readJoinRequest } from '../../../src/front/rooms/join-request.ts';
import { OwnRoom } from '../../../src/front/rooms/own-room.ts';
import { readScript } from '../engine/script.ts';
import { linkedSession } from '../../harness/linked-session.ts';
import type { FuzzTarget } from '../engine/target.ts';

const log = createLogger('silent');
const meter = { joined() {}, failed() {}, dropped() {} };
/** A step with this bit is a request to join; others are signal messages. */
const JOIN = 1;
const MAX_OFFERS = 40;

export const target: FuzzTarget = {
  // A request inflates to 256 KiB at most.
  budget: { leastMs: 6, per64KiBMs: 20 },
  run(data) {
    let offers = 0;
    const room = new OwnRoom({
      name: 'room',
      url: 'ws://x',
      token: 't',
      destination: 'd',
      iceServers: () => [],
      meter,
      log,
      onClosed: () => {},
    });
    room.open(
      linkedSession({
        offer: (sdp) => {
          assert.equal(typeof sdp, 'string');
          offers++;
        },
      }),
    );
    const socket = { send: () => true, end() {} };
    room.join(socket, { resumedSid: undefined, offer: undefined, client: '' });
    for (const { op, payload } of readScript(data)) {
      if ((op & JOIN) === 0) {
        room.message(socket, new Uint8Array(payload).buffer);
        continue;
      }
      const join = readJoinRequest(Buffer.from(payload).toString('base64url'));
      if (join !== undefined) {
        room.join(socket, join);
      }
    }
    assert.ok(offers <= MAX_OFFERS, `${offers} offers`);
    room.close('done');
  },
};

// Signal messages of a LiveKit server that may be a stranger's: read as the library for LiveKit's
// protocol reads them, and what the session makes of them.
import assert from 'node:assert/strict';
import { SignalResponse, type JoinResponse } from '@livekit/protocol';
import { ServiceError } from '../../../src/base/errors.ts';
import { createLogger } from '../../../src/base/log.ts';
import { AgentRole } from '../../../src/front/rooms/agent-role.ts';
import { isFinal } from '../../../src/front/rooms/reconnection.ts';
import { RemoteCandidates } from '../../../src/front/rooms/remote-candidates.ts';
import { readServerSignal, type ServerSignal } from '../../../src/front/rooms/server-signals.ts';
import { isPublicAddress } from '../../../src/front/rooms/livekit-url.ts';
import { parseAnswer } from '../../../src/webrtc/sdp/offer.ts';
import { readScript } from '../engine/script.ts';
import { linkedSession } from '../../harness/linked-session.ts';
import type { FuzzTarget } from '../engine/target.ts';

const log = createLogger('silent');
const meter = { joined() {}, failed() {}, dropped() {} };
const MAX_CHECKED = 32;

/** What the library makes of a message; undefined: it refuses it. */
function byLibrary(message: Buffer): SignalResponse | undefined {
  try {
    return SignalResponse.fromBinary(new Uint8Array(message), { readUnknownFields: false });
  } catch {
    return undefined;
  }
}

const joinOf = ({ participant, otherParticipants, room, serverInfo }: JoinResponse): unknown => [
  participant?.sid,
  Object.entries(participant?.attributes ?? {}),
  otherParticipants.map(({ identity, state }) => [identity, state]),
  room?.name,
  serverInfo?.version,
];

/** The library writes a message again as servers write it: we read it as it does. */
function checkReading({ message }: SignalResponse): void {
  const signal = readServerSignal(new SignalResponse({ message }).toBinary());
  if (signal?.case === 'join') {
    assert.deepEqual(joinOf(signal.value as JoinResponse), joinOf(message.value as JoinResponse));
  } else if (signal?.case === 'answer') {
    assert.ok(message.case === 'answer');
    const { sdp, id } = message.value;
    assert.deepEqual(signal.value, { sdp, id });
  } else if (signal?.case === 'leave') {
    assert.ok(message.case === 'leave');
    const { canReconnect } = message.value;
    assert.equal(signal.value.canReconnect, canReconnect);
  } else if (signal?.case === 'subscribedQualityUpdate') {
    assert.ok(message.case === 'subscribedQualityUpdate');
    const { trackSid, subscribedQualities, subscribedCodecs } = message.value;
    const all = [subscribedQualities, ...subscribedCodecs.map(({ qualities }) => qualities)].flat();
    const isWatched = all.some(({ enabled }) => enabled);
    assert.deepEqual(signal.value, { trackSid, isWatched });
  }
}

function apply(signal: ServerSignal, role: AgentRole, candidates: RemoteCandidates): number {
  try {
    switch (signal.case) {
      case 'join':
        role.joined(signal.value);
        return 0;
      case 'answer':
        parseAnswer(signal.value.sdp);
        return 0;
      case 'update':
        role.changed(signal.value);
        return 0;
      case 'leave':
        isFinal(signal.value);
        return 0;
      case 'trickle': {
        const candidate = candidates.trickled(signal.value.candidateInit);
        assert.ok(candidate === undefined || isPublicAddress(candidate.address));
        return candidate === undefined ? 0 : 1;
      }
      default:
        return 0;
    }
  } catch (error) {
    if (error instanceof ServiceError) {
      return 0;
    }
    throw error;
  }
}

export const target: FuzzTarget = {
  // The library's decoder, which we do not use, takes most of it: 47 ms for 64 KiB of empty messages.
  budget: { leastMs: 10, per64KiBMs: 150 },
  words: ['lk.publish_on_behalf', 'candidate:1 1 udp 1 1.1.1.1 9 typ host', '{"candidate":"'],
  run(data) {
    const role = new AgentRole(meter, log);
    role.opened(linkedSession());
    const candidates = new RemoteCandidates(false);
    let checked = 0;
    try {
      for (const { payload } of readScript(data)) {
        const signal = readServerSignal(payload);
        if (signal !== undefined) {
          checked += apply(signal, role, candidates);
        }
        const message = byLibrary(payload);
        if (message !== undefined) {
          checkReading(message);
        }
      }
    } finally {
      role.closed();
    }
    assert.ok(checked <= MAX_CHECKED, `${checked} candidates`);
  },
};

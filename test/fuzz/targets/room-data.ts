// Data messages of a LiveKit room: which of them are passed on, and what an agent's avatar makes of
// them.
import assert from 'node:assert/strict';
import {
  DataPacket,
  JoinResponse,
  ParticipantInfo,
  ParticipantInfo_State,
} from '@livekit/protocol';
import { createLogger } from '../../../src/base/log.ts';
import { AgentRole } from '../../../src/front/rooms/agent-role.ts';
import { readDataPacket } from '../../../src/front/rooms/data-packets.ts';
import { RoomMessages, senderOf } from '../../../src/worker/room-messages.ts';
import { readScript } from '../engine/script.ts';
import type { FuzzTarget } from '../engine/target.ts';

const log = createLogger('silent');
const AGENT = 'agent';
const meter = { joined() {}, failed() {}, dropped() {} };
/** Samples of one input: an input of 64 KiB at 8 kHz becomes four times as many bytes. */
const MAX_BYTES = 512 * 1024;
/** Each message is answered by two at most. */
const MAX_ANSWERS = 2 * 64;

export const target: FuzzTarget = {
  // Resampling and decoding.
  budget: { leastMs: 6, per64KiBMs: 30 },
  words: ['lk.audio_stream', 'lk.clear_buffer', 'sample_rate', 'num_channels', AGENT],
  run(data) {
    let [bytes, answers] = [0, 0];
    const role = new AgentRole(meter, log);
    role.opened({
      id: 's',
      send() {},
      offer() {},
      dropPeer() {},
      end() {},
      makeOffer() {},
      tell: (message) => {
        answers += message.type === 'data' ? 1 : 0;
      },
      speech: {
        push: (pcm) => {
          bytes += pcm.length;
          return true;
        },
        flush() {},
        writtenPosition: 0,
        heardPosition: 0,
      },
    });
    const agent = new ParticipantInfo({ identity: AGENT, state: ParticipantInfo_State.ACTIVE });
    const participant = new ParticipantInfo({ attributes: { 'lk.publish_on_behalf': AGENT } });
    role.joined(new JoinResponse({ participant, otherParticipants: [agent] }));
    const messages = new RoomMessages(0);
    messages.heed(AGENT);
    for (const { payload } of readScript(data)) {
      messages.judge(payload, 0);
      const packet = readDataPacket(payload);
      if (packet !== undefined) {
        // As a server writes it: the library ignores wrong wire types, which our reader does not.
        const { sender: participantIdentity, value } = packet;
        const written = Buffer.from(new DataPacket({ participantIdentity, value }).toBinary());
        assert.equal(senderOf(written)?.toString() ?? '', participantIdentity);
      }
      role.data(payload);
    }
    role.closed();
    assert.ok(bytes <= MAX_BYTES, `${bytes} bytes of speech`);
    assert.ok(answers <= MAX_ANSWERS, `${answers} answers`);
  },
};

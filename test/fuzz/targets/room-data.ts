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
import { NO_SPEECH, linkedSession } from '../../harness/linked-session.ts';
import type { FuzzTarget } from '../engine/target.ts';

const log = createLogger('silent');
const AGENT = 'agent';
const meter = { joined() {}, failed() {}, dropped() {} };
/** Samples of one input: an input of 64 KiB at 8 kHz becomes four times as many bytes. */
const MAX_BYTES = 512 * 1024;
/** Each message is answered by two at most. */
const MAX_ANSWERS = 2 * 64;

/** The library writes a message again as servers write it: we read it as it does. */
function checkReading(payload: Buffer): void {
  let packet: DataPacket;
  try {
    packet = DataPacket.fromBinary(new Uint8Array(payload), { readUnknownFields: false });
  } catch {
    return;
  }
  const { participantIdentity, value } = packet;
  const written = Buffer.from(new DataPacket({ participantIdentity, value }).toBinary());
  const read = readDataPacket(written);
  assert.equal(read?.sender, participantIdentity);
  assert.equal(String(senderOf(written) ?? ''), participantIdentity);
  if (read.data.case === 'streamHeader') {
    assert.ok(value.case === 'streamHeader');
    const { streamId, topic, attributes } = value.value;
    assert.deepEqual([read.data.streamId, read.data.topic], [streamId, topic]);
    assert.deepEqual({ ...read.data.attributes }, { ...attributes });
  } else if (read.data.case === 'streamChunk') {
    assert.ok(value.case === 'streamChunk');
    assert.equal(Buffer.compare(read.data.content, value.value.content), 0);
  } else if (read.data.case === 'rpcRequest') {
    assert.ok(value.case === 'rpcRequest');
    assert.deepEqual([read.data.id, read.data.method], [value.value.id, value.value.method]);
  } else if (read.data.case === 'rpcResponse') {
    assert.ok(value.case === 'rpcResponse');
    assert.equal(read.data.isError, value.value.value.case === 'error');
  }
}

export const target: FuzzTarget = {
  // Resampling and decoding.
  budget: { leastMs: 6, per64KiBMs: 30 },
  words: ['lk.audio_stream', 'lk.clear_buffer', 'sample_rate', 'num_channels', AGENT],
  run(data) {
    let [bytes, answers] = [0, 0];
    const role = new AgentRole(meter, log);
    role.opened(
      linkedSession({
        tell: (message) => {
          answers += message.type === 'data' ? 1 : 0;
        },
        speech: {
          ...NO_SPEECH,
          push: (pcm) => {
            bytes += pcm.length;
            return true;
          },
        },
      }),
    );
    const agent = new ParticipantInfo({ identity: AGENT, state: ParticipantInfo_State.ACTIVE });
    const participant = new ParticipantInfo({ attributes: { 'lk.publish_on_behalf': AGENT } });
    role.joined(new JoinResponse({ participant, otherParticipants: [agent] }));
    const messages = new RoomMessages(0);
    messages.heed(AGENT);
    for (const { payload } of readScript(data)) {
      messages.judge(payload, 0);
      checkReading(payload);
      role.data(payload);
    }
    role.closed();
    assert.ok(bytes <= MAX_BYTES, `${bytes} bytes of speech`);
    assert.ok(answers <= MAX_ANSWERS, `${answers} answers`);
  },
};

// What an avatar makes of the messages in its agent's room: segments in turn, interruptions at any
// place, strangers, noise.
import assert from 'node:assert/strict';
import {
  DataPacket,
  DataStream_ByteHeader,
  DataStream_Chunk,
  DataStream_Header,
  DataStream_Trailer,
  JoinResponse,
  ParticipantInfo,
  ParticipantInfo_State,
  RpcError,
  RpcRequest,
  RpcResponse,
} from '@livekit/protocol';
import { test } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import { AgentRole } from '../../../src/front/rooms/agent-role.ts';
import { linkedSession } from '../../harness/linked-session.ts';
import { until } from '../../harness/until.ts';

const AGENT = 'agent';

/** An avatar whose listener hears as far as the test says. */
class Avatar {
  readonly role = new AgentRole({ joined() {}, failed() {}, dropped() {} }, createLogger('silent'));
  /** Whether the agent answers by itself. */
  answers: 'at once' | 'never' = 'at once';
  readonly ends: string[] = [];
  readonly sent: DataPacket[] = [];
  readonly speech = {
    writtenPosition: -1000, // positions wrap at 2^32
    heardPosition: -1000,
    flushes: 0,
    push(bytes: Uint8Array): boolean {
      this.writtenPosition += bytes.length / 2;
      return true;
    },
    flush(): void {
      this.flushes++;
      this.heardPosition = this.writtenPosition;
    },
  };

  constructor(attributes: Record<string, string> = { 'lk.publish_on_behalf': AGENT }) {
    const session = linkedSession({
      speech: this.speech,
      tell: (message) => {
        if (message.type === 'data') {
          const packet = DataPacket.fromBinary(message.data);
          this.sent.push(packet);
          if (this.answers === 'at once' && packet.value.case === 'rpcRequest') {
            const { id, method } = packet.value.value;
            queueMicrotask(() => {
              this.answer(id, method === 'lk.playback_started' ? 1400 : undefined);
            });
          }
        }
      },
      end: (reason) => {
        this.ends.push(reason);
      },
    });
    this.role.opened(session);
    const participant = new ParticipantInfo({ identity: 'avatar', attributes });
    const agent = new ParticipantInfo({ identity: AGENT, state: ParticipantInfo_State.ACTIVE });
    this.role.joined(new JoinResponse({ participant, otherParticipants: [agent] }));
  }

  /** The agent answers a call. @param code of an error; undefined: `ok` */
  answer(requestId: string, code?: number): void {
    const value = new RpcResponse({
      requestId,
      value:
        code === undefined
          ? { case: 'payload', value: 'ok' }
          : { case: 'error', value: new RpcError({ code }) },
    });
    this.receive({ case: 'rpcResponse', value });
  }
  /** The calls of one method, in order. */
  calls(method: string): readonly RpcRequest[] {
    return this.sent.flatMap(({ value }) =>
      value.case === 'rpcRequest' && value.value.method === method ? [value.value] : [],
    );
  }
  receive(value: DataPacket['value'], participantIdentity = AGENT): void {
    this.role.data(new DataPacket({ participantIdentity, value }).toBinary());
  }
  begin(streamId: string, rate = 16_000, channels = 1, topic = 'lk.audio_stream'): void {
    const value = new DataStream_Header({
      streamId,
      topic,
      attributes: { sample_rate: String(rate), num_channels: String(channels) },
      contentHeader: { case: 'byteHeader', value: new DataStream_ByteHeader() },
    });
    this.receive({ case: 'streamHeader', value });
  }
  chunk(streamId: string, samples: number, sender = AGENT): void {
    const value = new DataStream_Chunk({ streamId, content: new Uint8Array(samples * 2) });
    this.receive({ case: 'streamChunk', value }, sender);
  }
  trailer(streamId: string): void {
    this.receive({ case: 'streamTrailer', value: new DataStream_Trailer({ streamId }) });
  }
  call(method: string, sender = AGENT): void {
    this.receive({ case: 'rpcRequest', value: new RpcRequest({ id: 'r', method }) }, sender);
  }
  /** What the agent was told: position and whether it was an interruption. */
  get finished(): readonly (readonly [number, boolean])[] {
    return this.calls('lk.playback_finished').map(({ payload }) => {
      const { playback_position: position, interrupted, ...rest } = JSON.parse(payload);
      assert.deepEqual(rest, { synchronized_transcript: null });
      return [position, interrupted] as const;
    });
  }
  /** What the avatar answered to calls. */
  get answered(): readonly unknown[] {
    return this.sent.flatMap(({ value }) => {
      if (value.case !== 'rpcResponse') {
        return [];
      }
      const { value: answer } = value.value;
      return [answer.case === 'error' ? answer.value.code : answer.value];
    });
  }
}

test('segments are told of once each, in turn, when they have been heard', async () => {
  const avatar = new Avatar();
  avatar.begin('a');
  avatar.chunk('a', 8000);
  avatar.chunk('a', 8000);
  avatar.trailer('a');
  avatar.begin('b', 48_000, 2);
  avatar.chunk('b', 2 * 24_000);
  avatar.trailer('b');
  avatar.begin('empty');
  avatar.trailer('empty');
  assert.deepEqual(avatar.finished, []);
  avatar.speech.heardPosition += 16_000;
  await until(() => avatar.finished.length === 1);
  avatar.speech.heardPosition += 8000;
  await until(() => avatar.finished.length === 2);
  assert.deepEqual(avatar.finished, [
    [1, false],
    [0.5, false],
  ]);
  avatar.role.closed();
});

test('calls wait for the answer to the one before: they are handled in order', async () => {
  const avatar = new Avatar();
  avatar.answers = 'never';
  avatar.begin('a');
  avatar.chunk('a', 16_000);
  avatar.begin('b');
  avatar.chunk('b', 1600);
  avatar.speech.heardPosition += 4000;
  avatar.call('lk.clear_buffer');
  assert.deepEqual(avatar.finished, [[0.25, true]]);
  avatar.answer('another call');
  assert.equal(avatar.finished.length, 1);
  avatar.answer(avatar.calls('lk.playback_finished')[0]!.id);
  assert.equal(avatar.finished.length, 2);
  avatar.begin('c', 1); // an agent that answers nothing is told of the next all the same
  await until(() => avatar.finished.length === 3);
  avatar.role.closed();
});

test('the start of a segment is told, unless the agent has no method for it', async () => {
  const avatar = new Avatar();
  avatar.answers = 'never';
  avatar.begin('a');
  avatar.chunk('a', 1600);
  avatar.trailer('a');
  avatar.speech.heardPosition += 10;
  await until(() => avatar.calls('lk.playback_started').length === 1);
  avatar.answers = 'at once';
  avatar.answer(avatar.calls('lk.playback_started')[0]!.id, 1400);
  avatar.begin('b');
  avatar.chunk('b', 1600);
  avatar.trailer('b');
  avatar.speech.heardPosition += 3190;
  await until(() => avatar.finished.length === 2);
  assert.equal(avatar.calls('lk.playback_started').length, 1);
  avatar.role.closed();
});

test('an interruption is told at once: what was heard of the first, nothing of the others', async () => {
  const avatar = new Avatar();
  avatar.begin('a');
  avatar.chunk('a', 16_000);
  avatar.trailer('a');
  avatar.begin('b');
  avatar.chunk('b', 1600);
  avatar.speech.heardPosition += 4000;
  avatar.call('lk.clear_buffer');
  assert.deepEqual(avatar.answered, ['ok']);
  const told = [
    [0.25, true],
    [0, true],
  ];
  await until(() => avatar.finished.length === 2);
  assert.deepEqual(avatar.finished, told);
  avatar.chunk('b', 1600); // amid the segment: what follows of it is dropped
  avatar.trailer('b');
  avatar.call('lk.clear_buffer');
  assert.deepEqual([avatar.finished, avatar.speech.flushes], [told, 2]);
  avatar.role.closed();
});

test('a segment that is interrupted before its first sample is told of when that arrives', () => {
  const avatar = new Avatar();
  avatar.begin('a');
  avatar.call('lk.clear_buffer');
  assert.deepEqual(avatar.finished, []);
  avatar.chunk('a', 1600);
  avatar.chunk('a', 1600);
  avatar.trailer('a');
  assert.deepEqual(avatar.finished, [[0, true]]);
  avatar.role.closed();
});

test('a segment that cannot be played does not keep the agent waiting', async () => {
  const avatar = new Avatar();
  avatar.begin('a', 1);
  avatar.begin('b', 16_000, 6);
  await until(() => avatar.finished.length === 2);
  assert.deepEqual(avatar.finished, [
    [0, true],
    [0, true],
  ]);
  avatar.role.closed();
});

test('strangers, other topics, unknown methods and noise', async () => {
  const avatar = new Avatar();
  avatar.begin('a', 16_000, 1, 'lk.transcription');
  avatar.chunk('a', 1600);
  avatar.begin('b');
  avatar.chunk('b', 1600, 'stranger');
  assert.equal(avatar.speech.writtenPosition, -1000);
  avatar.call('lk.clear_buffer', 'stranger');
  avatar.call('lk.something');
  assert.deepEqual([avatar.answered, avatar.speech.flushes], [['reject', 1400], 0]);
  avatar.role.data(new Uint8Array(100).fill(0xff));
  for (let i = 0; i < 100; i++) {
    avatar.begin(`stream ${i}`);
  }
  await until(() => avatar.finished.length > 80);
  assert.ok(avatar.finished.length > 80, 'those beyond the limit are answered');
  avatar.role.closed();
});

test('a stream that begins again is another segment; a flood of calls is not kept', async () => {
  const avatar = new Avatar();
  avatar.answers = 'never';
  for (let i = 0; i < 1000; i++) {
    avatar.begin('again', 48_000);
    avatar.chunk('again', i < 3 ? 4800 : 0);
  }
  avatar.trailer('again');
  avatar.speech.heardPosition = avatar.speech.writtenPosition;
  avatar.answers = 'at once';
  avatar.begin('next');
  avatar.chunk('next', 1600);
  avatar.trailer('next');
  avatar.speech.heardPosition = avatar.speech.writtenPosition;
  await until(() => avatar.finished.length === 4);
  assert.deepEqual(
    avatar.finished.map(([position]) => position.toFixed(1)),
    ['0.1', '0.1', '0.1', '0.1'],
  );
  avatar.sent.length = 0;
  for (let i = 0; i < 100_000; i++) {
    avatar.call(i % 2 === 0 ? 'lk.clear_buffer' : 'lk.something');
    if (avatar.sent.length > 2) {
      avatar.sent.length = 0;
    }
  }
  assert.ok(avatar.speech.flushes >= 50_000);
  avatar.role.closed();
});

test('the session ends with its agent; a token without an agent is refused', () => {
  const avatar = new Avatar();
  const { DISCONNECTED } = ParticipantInfo_State;
  avatar.role.changed([new ParticipantInfo({ identity: 'other', state: DISCONNECTED })]);
  assert.deepEqual(avatar.ends, []);
  avatar.role.changed([new ParticipantInfo({ identity: AGENT, state: DISCONNECTED })]);
  assert.deepEqual(avatar.ends, ['agent_left']);
  avatar.role.closed();
  assert.throws(() => new Avatar({}), /lk\.publish_on_behalf/);
});

// The role of an avatar in somebody else's room: it speaks what an agent of the room streams to it,
// and tells the agent what was heard.
import {
  type DataStream_Header,
  type JoinResponse,
  type ParticipantInfo,
  ParticipantInfo_State,
  type RpcRequest,
} from '@livekit/protocol';
import { ServiceError } from '../../base/errors.ts';
import { every } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import type { LinkedSession } from '../sessions/session-link.ts';
import { PacketWriter, readDataPacket } from './data-packets.ts';
import type { RoomMeter } from './room-meter.ts';
import type { RoomRole } from './room-role.ts';
import { PlaybackReports } from './playback-reports.ts';
import { SpeechSegments } from './speech-segments.ts';

/** The attribute of an avatar that names its agent, in LiveKit Agents. */
const AGENT_ATTRIBUTE = 'lk.publish_on_behalf';
const AUDIO_TOPIC = 'lk.audio_stream';
const CLEAR_METHOD = 'lk.clear_buffer';
/** How often segments are looked at: the agent learns of their end at most this late. */
const POLL_MS = 40;

/** The avatar of one agent. */
export class AgentRole implements RoomRole {
  readonly kind = 'agent';
  readonly #log: Logger;
  readonly #meter: RoomMeter;
  readonly #packets = new PacketWriter();
  readonly #reports = new PlaybackReports(this.#packets, (packet) => {
    this.#send(packet);
  });
  #session: LinkedSession | undefined = undefined;
  #segments: SpeechSegments | undefined = undefined;
  #timer: NodeJS.Timeout | undefined = undefined;
  #agent = '';
  #hasSeenAgent = false;

  constructor(meter: RoomMeter, log: Logger) {
    this.#meter = meter;
    this.#log = log;
  }

  opened(session: LinkedSession): void {
    this.#session = session;
    const segments = new SpeechSegments(session.speech, {
      started: () => {
        this.#reports.started();
      },
      finished: (finished) => {
        this.#reports.finished(finished);
      },
    });
    this.#segments = segments;
    this.#timer = every(POLL_MS, 'the segments of an agent', () => {
      segments.poll();
    });
  }

  joined({ participant, otherParticipants }: JoinResponse): void {
    this.#agent = participant?.attributes[AGENT_ATTRIBUTE] ?? '';
    if (this.#agent === '') {
      throw new ServiceError(
        'ROOM_JOIN_FAILED',
        `livekit_token names no agent: give it the attribute ${AGENT_ATTRIBUTE}.`,
      );
    }
    this.#reports.setAgent(this.#agent);
    this.#session?.tell({ type: 'heed', identity: this.#agent });
    this.#hasSeenAgent = false;
    this.changed(otherParticipants);
  }

  changed(participants: readonly ParticipantInfo[]): void {
    const agent = participants.find(({ identity }) => identity === this.#agent);
    if (agent === undefined) {
      return;
    }
    if (agent.state !== ParticipantInfo_State.DISCONNECTED) {
      this.#hasSeenAgent = true;
    } else if (this.#hasSeenAgent) {
      this.#session?.end('agent_left');
    }
  }

  data(message: Uint8Array): void {
    const packet = readDataPacket(message);
    if (packet === undefined) {
      this.#meter.dropped('malformed');
      return;
    }
    const { sender, value } = packet;
    if (value.case === 'rpcRequest') {
      this.#call(sender, value.value);
      return;
    }
    if (value.case === 'rpcResponse' && sender === this.#agent) {
      this.#reports.answered(value.value.requestId, value.value.value.case === 'error');
      return;
    }
    // Others stream into the room, too: transcriptions, sessions of agents.
    if (sender !== this.#agent) {
      return;
    }
    if (value.case === 'streamHeader') {
      this.#begin(value.value);
    } else if (value.case === 'streamChunk') {
      this.#segments?.chunk(value.value.streamId, value.value.content);
    } else if (value.case === 'streamTrailer') {
      this.#segments?.end(value.value.streamId);
    }
  }

  closed(): void {
    clearInterval(this.#timer);
    this.#segments?.close();
    this.#reports.close();
  }

  #begin({ topic, streamId, attributes, contentHeader }: DataStream_Header): void {
    if (topic !== AUDIO_TOPIC || contentHeader.case !== 'byteHeader') {
      return;
    }
    const problem = this.#segments?.begin(streamId, attributes);
    if (problem !== undefined) {
      // Without an answer the agent would wait for the end of the segment for ever.
      this.#log.warn({ problem }, 'a segment of an agent is refused');
      this.#reports.finished({ seconds: 0, interrupted: true });
    }
  }

  #call(sender: string, { id, method }: RpcRequest): void {
    this.#send(this.#packets.rpcAck(sender, id));
    if (method !== CLEAR_METHOD) {
      this.#send(this.#packets.rpcResponse(sender, id, undefined));
      return;
    }
    if (sender !== this.#agent) {
      this.#send(this.#packets.rpcResponse(sender, id, 'reject'));
      return;
    }
    this.#send(this.#packets.rpcResponse(sender, id, 'ok'));
    this.#segments?.clear();
  }

  #send(data: Uint8Array): void {
    this.#session?.tell({ type: 'data', data });
  }
}

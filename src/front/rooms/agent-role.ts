// The role of an avatar in somebody else's room: it speaks what an agent of the room streams to it,
// and tells the agent what was heard.
import { ParticipantInfo_State } from '@livekit/protocol';
import { ServiceError } from '../../base/errors.ts';
import { every } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import type { LinkedSession } from '../sessions/session-link.ts';
import { PacketWriter, readDataPacket, type StreamHeader } from './data-packets.ts';
import type { RoomMeter } from './room-meter.ts';
import type { RoomRole } from './room-role.ts';
import type { JoinedRoom, RoomParticipant } from './server-signals.ts';
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

  joined({ participant, otherParticipants }: JoinedRoom): void {
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

  changed(participants: readonly RoomParticipant[]): void {
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
    const { sender, data } = packet;
    if (data.case === 'rpcRequest') {
      this.#call(sender, data.id, data.method);
      return;
    }
    // Others stream into the room, too: transcriptions, sessions of agents.
    if (sender !== this.#agent) {
      return;
    }
    if (data.case === 'rpcResponse') {
      this.#reports.answered(data.requestId, data.isError);
    } else if (data.case === 'streamHeader') {
      this.#begin(data);
    } else if (data.case === 'streamChunk') {
      this.#segments?.chunk(data.streamId, data.content);
    } else if (data.case === 'streamTrailer') {
      this.#segments?.end(data.streamId);
    }
  }

  closed(): void {
    clearInterval(this.#timer);
    this.#segments?.close();
    this.#reports.close();
  }

  #begin({ topic, streamId, attributes, isBytes }: StreamHeader): void {
    if (topic !== AUDIO_TOPIC || !isBytes) {
      return;
    }
    const problem = this.#segments?.begin(streamId, attributes);
    if (problem !== undefined) {
      // Without an answer the agent would wait for the end of the segment for ever.
      this.#log.warn({ problem }, 'a segment of an agent is refused');
      this.#reports.finished({ seconds: 0, interrupted: true });
    }
  }

  #call(sender: string, id: string, method: string): void {
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

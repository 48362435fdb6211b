// What sessions' sockets are counted by. Messages may come a million a second, so they are added up here and reach the metrics at a scrape.
import type { Metrics } from '../../metrics/metrics.ts';
import { exemplarOf } from '../../metrics/shared-metrics.ts';
import type { ClientMessage } from './wire-protocol.ts';

export type DropReason = 'socket_rate' | 'server_rate' | 'exhausted';
export type SetupStep = 'socket' | 'offer' | 'answer' | 'ice' | 'dtls' | 'first_frame' | 'total';

const KINDS: readonly ClientMessage['kind'][] = [
  'audio',
  'playImmediate',
  'skip',
  'done',
  'ping',
  'offer',
  'ignored',
];
const DROPS: readonly DropReason[] = ['socket_rate', 'server_rate', 'exhausted'];

/** Figures since the last scrape, of all sessions together. */
export class SocketTally {
  readonly #received: Record<ClientMessage['kind'], number> = {
    audio: 0,
    playImmediate: 0,
    skip: 0,
    done: 0,
    ping: 0,
    offer: 0,
    ignored: 0,
  };
  readonly #sent = { signal: 0, status: 0 };
  readonly #dropped: Record<DropReason, number> = { socket_rate: 0, server_rate: 0, exhausted: 0 };
  #bytesIn = 0;
  #bytesOut = 0;
  #audioSeconds = 0;
  #audioDroppedSeconds = 0;

  constructor(metrics: Metrics) {
    const messages = (direction: 'in' | 'out', type: 'audio') =>
      metrics.counter('mouthpiece_websocket_messages_total', { direction, type });
    const received = KINDS.map((kind) =>
      messages('in', (kind === 'playImmediate' ? 'play_immediate' : kind) as 'audio'),
    );
    const sent = {
      signal: messages('out', 'signal' as 'audio'),
      status: messages('out', 'status' as 'audio'),
    };
    const dropped = DROPS.map((reason) =>
      metrics.counter('mouthpiece_websocket_messages_dropped_total', { reason }),
    );
    const bytes = (direction: 'in' | 'out') =>
      metrics.counter('mouthpiece_websocket_bytes_total', { direction });
    const [bytesIn, bytesOut] = [bytes('in'), bytes('out')];
    const audio = metrics.counter('mouthpiece_audio_received_seconds_total', { input: 'socket' });
    const audioDropped = metrics.counter('mouthpiece_audio_dropped_seconds_total', {
      reason: 'backlog_full',
    });
    metrics.onScrape(() => {
      for (const [index, kind] of KINDS.entries()) {
        received[index]!.add(this.#received[kind]);
      }
      for (const [index, reason] of DROPS.entries()) {
        dropped[index]!.add(this.#dropped[reason]);
      }
      for (const kind of KINDS) {
        this.#received[kind] = 0;
      }
      for (const reason of DROPS) {
        this.#dropped[reason] = 0;
      }
      sent.signal.add(this.#sent.signal);
      sent.status.add(this.#sent.status);
      bytesIn.add(this.#bytesIn);
      bytesOut.add(this.#bytesOut);
      audio.add(this.#audioSeconds);
      audioDropped.add(this.#audioDroppedSeconds);
      this.#sent.signal =
        this.#sent.status =
        this.#bytesIn =
        this.#bytesOut =
        this.#audioSeconds =
        this.#audioDroppedSeconds =
          0;
    });
  }

  received(kind: ClientMessage['kind'], bytes: number): void {
    this.#received[kind]++;
    this.#bytesIn += bytes;
  }

  sent(text: string): void {
    this.#sent[text.startsWith('{') ? 'signal' : 'status']++;
    this.#bytesOut += text.length;
  }

  /** A message that nobody looked at, for its socket's or the server's budget. */
  dropped(reason: DropReason, bytes: number): void {
    this.#dropped[reason]++;
    this.#bytesIn += bytes;
  }

  audioReceived(seconds: number): void {
    this.#audioSeconds += seconds;
  }
  audioDropped(seconds: number): void {
    this.#audioDroppedSeconds += seconds;
  }
}

/** How long each step of one session's setting up took. */
export type StepMeter = (step: SetupStep, seconds: number) => void;

export function createStepMeter(metrics: Metrics, sessionId: string): StepMeter {
  const exemplar = exemplarOf(sessionId);
  return (step, seconds) => {
    metrics.histogram('mouthpiece_session_setup_seconds', { step }).observe(seconds, exemplar);
  };
}

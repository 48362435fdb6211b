// Metrics of the sockets and the set-up of sessions. Up to a million messages arrive per second, so
// they are added up here and reach the metrics at a scrape.
import { SESSION_KINDS, type SessionKind } from '../../base/session-kinds.ts';
import type { LabelsOf } from '../../metrics/catalogue.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { exemplarOf } from '../../metrics/shared-metrics.ts';
import type { SessionSpan } from '../tracing/tracing.ts';
import { SERVER_MESSAGES, type ServerMessage } from './server-messages.ts';
import type { ClientMessage } from './wire-protocol.ts';

/** Why a message was dropped: a verdict of message-budget.ts. */
export type DropReason = 'socket_rate' | 'server_rate' | 'exhausted';
/** A step of setting a session up: a label of mouthpiece_session_setup_seconds. */
export type SetupStep = 'socket' | 'offer' | 'answer' | 'ice' | 'dtls' | 'first_frame' | 'total';

type MessageType = LabelsOf<'mouthpiece_websocket_messages_total'>['type'];

const KINDS: readonly ClientMessage['kind'][] = [
  'audio',
  'playImmediate',
  'skip',
  'done',
  'ping',
  'offer',
  'command',
  'wrongCommand',
  'ignored',
];
/** Kinds that the metric names in another way. */
const LABELS: Partial<Record<ClientMessage['kind'], MessageType>> = {
  playImmediate: 'play_immediate',
  wrongCommand: 'command',
};
const DROPS: readonly DropReason[] = ['socket_rate', 'server_rate', 'exhausted'];

/** Messages, bytes and audio of all sessions since the last scrape. */
export class SocketTally {
  readonly #received: Record<ClientMessage['kind'], number> = {
    audio: 0,
    playImmediate: 0,
    skip: 0,
    done: 0,
    ping: 0,
    offer: 0,
    command: 0,
    wrongCommand: 0,
    ignored: 0,
  };
  readonly #sent = { signal: 0, status: 0 };
  readonly #dropped: Record<DropReason, number> = { socket_rate: 0, server_rate: 0, exhausted: 0 };
  #bytesIn = 0;
  #bytesOut = 0;
  #audioSeconds = 0;
  #audioDroppedSeconds = 0;

  constructor(metrics: Metrics) {
    const messages = (direction: 'in' | 'out', type: MessageType) =>
      metrics.counter('mouthpiece_websocket_messages_total', { direction, type });
    const received = KINDS.map((kind) => messages('in', LABELS[kind] ?? (kind as MessageType)));
    const sent = {
      signal: messages('out', 'signal'),
      status: messages('out', 'status'),
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

  /** A message arrived and was parsed. */
  received(kind: ClientMessage['kind'], bytes: number): void {
    this.#received[kind]++;
    this.#bytesIn += bytes;
  }

  /** A message was sent: those that are JSON in the plain form count as signal, others as status. */
  sent(type: ServerMessage['type'], bytes: number): void {
    this.#sent['word' in SERVER_MESSAGES[type] ? 'status' : 'signal']++;
    this.#bytesOut += bytes;
  }

  /** A message was dropped unread: it exceeded the budget of its socket or of the server. */
  dropped(reason: DropReason, bytes: number): void {
    this.#dropped[reason]++;
    this.#bytesIn += bytes;
  }

  /** Audio arrived from a client. */
  audioReceived(seconds: number): void {
    this.#audioSeconds += seconds;
  }
  /** Audio was dropped because the backlog was full. */
  audioDropped(seconds: number): void {
    this.#audioDroppedSeconds += seconds;
  }
}

/** Observes when a step of one session's set-up began and ended, monotonic. */
export type StepMeter = (step: SetupStep, fromMs: number, toMs: number) => void;

/** @param sessionId the exemplar of each observation */
export function createStepMeter(
  metrics: Metrics,
  sessionId: string,
  span: SessionSpan | undefined,
): StepMeter {
  const exemplar = exemplarOf(sessionId);
  return (step, fromMs, toMs) => {
    const seconds = (toMs - fromMs) / 1000;
    metrics.histogram('mouthpiece_session_setup_seconds', { step }).observe(seconds, exemplar);
    if (step !== 'total') {
      span?.step(step, fromMs, toMs);
    }
  };
}

/** What the gauge of sessions shows of each. */
export interface SessionState {
  readonly kind: SessionKind;
  readonly session: { readonly isLive: boolean; readonly isSpeaking: boolean };
}

type Activity = 'connecting' | 'idle' | 'speaking';
const ACTIVITIES: readonly Activity[] = ['connecting', 'idle', 'speaking'];

/** @returns the function that counts sessions by kind and state */
export function createSessionGauges(metrics: Metrics): (sessions: Iterable<SessionState>) => void {
  const gauges = SESSION_KINDS.flatMap((kind) =>
    ACTIVITIES.map((state) => {
      const gauge = metrics.gauge('mouthpiece_sessions', { kind, state });
      return { key: `${kind} ${state}`, gauge };
    }),
  );
  return (sessions) => {
    const counts = new Map<string, number>();
    for (const { kind, session } of sessions) {
      const { isLive, isSpeaking } = session;
      const state: Activity = !isLive ? 'connecting' : isSpeaking ? 'speaking' : 'idle';
      const key = `${kind} ${state}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    for (const { key, gauge } of gauges) {
      gauge.set(counts.get(key) ?? 0);
    }
  };
}

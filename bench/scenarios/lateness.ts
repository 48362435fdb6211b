// How late the frames of some sessions are, by their own statistics.
import { setTimeout as delay } from 'node:timers/promises';
import type { SessionStatsReport } from '../../src/link/messages.ts';
import { quantile } from '../report/stats.ts';
import type { Server } from '../scenario.ts';

/** Seldom: each look asks for the statistics of every session. */
const LOOK_MS = 2000;

/** Frame lateness of a group of sessions, milliseconds. */
export interface Lateness {
  /** The median of the sessions' medians. */
  readonly p50Ms: number;
  /** The greatest p99. */
  readonly p99Ms: number;
  /** Frames that were due and not sent, of all sessions together. */
  readonly skipped: number;
}

export const LATENESS_NOTE =
  'Lateness of the last 512 frames of each session, by its own statistics; the greatest p99 of ' +
  'them counts.';

/** @throws Error when the server does not know the session */
export async function statsOf(server: Server, sessionId: string): Promise<SessionStatsReport> {
  const response = await fetch(`${server.url}/sessions/${sessionId}/stats`, {
    headers: { 'x-service-api-key': server.apiKey },
  });
  if (!response.ok) {
    throw new Error(`GET /sessions/${sessionId}/stats answered ${response.status}`);
  }
  return (await response.json()) as SessionStatsReport;
}

export async function latenessOf(server: Server, sessionIds: readonly string[]): Promise<Lateness> {
  const found = await Promise.all(sessionIds.map((id) => statsOf(server, id)));
  return {
    p50Ms: quantile(
      found.map(({ frameLatenessMs }) => frameLatenessMs.p50),
      0.5,
    ),
    p99Ms: Math.max(...found.map(({ frameLatenessMs }) => frameLatenessMs.p99)),
    skipped: found.reduce((sum, { framesSkipped }) => sum + framesSkipped, 0),
  };
}

/** Lateness after so many seconds. What it is until then goes into the figures over time. */
export async function latenessAfter(
  seconds: number,
  server: Server,
  sessionIds: readonly string[],
  record: (name: string, value: number, unit: string) => void,
): Promise<Lateness> {
  const endMs = performance.now() + seconds * 1000;
  for (;;) {
    const leftMs = endMs - performance.now();
    await delay(Math.max(0, Math.min(LOOK_MS, leftMs)));
    const found = await latenessOf(server, sessionIds);
    record('lateness p50', found.p50Ms, 'ms');
    record('lateness p99', found.p99Ms, 'ms');
    if (leftMs <= LOOK_MS) {
      return found;
    }
  }
}

/** For the live table. */
export const inWords = ({ p50Ms, p99Ms, skipped }: Lateness): string =>
  `lateness p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, ${skipped} frames skipped`;

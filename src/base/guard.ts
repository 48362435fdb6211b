// Timers and callbacks whose exceptions are reported instead of ending the process or the thread.
import { monotonicMs } from './time.ts';

/** @param missed reports of this place that were left out since the last one: each place is reported at most once a second. */
export type DefectSink = (where: string, error: unknown, missed: number) => void;

const REPORT_INTERVAL_MS = 1000;

let sink: DefectSink = (where, error) => {
  process.stderr.write(
    `${JSON.stringify({ level: 50, msg: `${where} failed`, error: String(error) })}\n`,
  );
};
const reported = new Map<string, { atMs: number; missed: number }>();

/** Where this thread's reports go; each thread sets its own. Until then they are lines on stderr. */
export function reportDefectsTo(to: DefectSink): void {
  sink = to;
}

/** @param where names the callback; a fixed text, since each is remembered for the limit of its reports. */
export function reportDefect(where: string, error: unknown): void {
  const nowMs = monotonicMs();
  const last = reported.get(where);
  if (last !== undefined && nowMs - last.atMs < REPORT_INTERVAL_MS) {
    last.missed++;
    return;
  }
  reported.set(where, { atMs: nowMs, missed: 0 });
  try {
    sink(where, error, last?.missed ?? 0);
  } catch {
    /* a log that cannot be written must not end what it reports on */
  }
}

/** The callback `work`, with what it throws, or rejects with, reported under `where`. */
export const guarded =
  <A extends readonly unknown[]>(where: string, work: (...args: A) => unknown) =>
  (...args: A): void => {
    try {
      const result = work(...args);
      if (result instanceof Promise) {
        result.catch((error: unknown) => {
          reportDefect(where, error);
        });
      }
    } catch (error) {
      reportDefect(where, error);
    }
  };

/** `setInterval` that goes on after an exception. */
export const every = (intervalMs: number, where: string, work: () => unknown): NodeJS.Timeout =>
  setInterval(guarded(where, work), intervalMs);

/** `setTimeout` whose exception is reported. */
export const after = (delayMs: number, where: string, work: () => unknown): NodeJS.Timeout =>
  setTimeout(guarded(where, work), delayMs);

/** `setImmediate` whose exception is reported. */
export const soon = (where: string, work: () => unknown): NodeJS.Immediate =>
  setImmediate(guarded(where, work));

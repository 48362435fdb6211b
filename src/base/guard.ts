// Timers and callbacks that report exceptions instead of ending the process or the thread.
import { monotonicMs } from './time.ts';

/**
 * Takes the report of an exception. @param missed exceptions of the same place since the last
 * report: each place is reported at most once a second
 */
export type DefectSink = (where: string, error: unknown, missed: number) => void;

const REPORT_INTERVAL_MS = 1000;

let sink: DefectSink = (where, error) => {
  process.stderr.write(
    `${JSON.stringify({ level: 50, msg: `${where} failed`, error: String(error) })}\n`,
  );
};
const reported = new Map<string, { atMs: number; missed: number }>();

/** Sets where the reports of this thread go. Until then they are lines on stderr. */
export function reportDefectsTo(to: DefectSink): void {
  sink = to;
}

/**
 * Reports an exception.
 * @param where names the callback: a constant text, since each one is remembered
 */
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
    /* a failed report must not end the thread */
  }
}

/** Wraps `work`: reports under `where` what it throws or rejects with. */
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

/** `setInterval` that reports exceptions and continues. */
export const every = (intervalMs: number, where: string, work: () => unknown): NodeJS.Timeout =>
  setInterval(guarded(where, work), intervalMs);

/** `setTimeout` that reports an exception. */
export const after = (delayMs: number, where: string, work: () => unknown): NodeJS.Timeout =>
  setTimeout(guarded(where, work), delayMs);

/** `setImmediate` that reports an exception. */
export const soon = (where: string, work: () => unknown): NodeJS.Immediate =>
  setImmediate(guarded(where, work));

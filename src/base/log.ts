// Structured logs: one pino logger for the process, with children for workers and sessions.
import { pino, type Logger } from 'pino';
import { LogWriter } from './log-writer.ts';

export type { Logger };

/** Fields whose values are never logged, up to two levels deep. */
const SECRET_FIELDS = [
  'token',
  'session_token',
  'apiKey',
  'llmAPIKey',
  'ttsAPIKey',
  'credential',
  'password',
  'secret',
  'audioBase64',
  'transcript',
  'prompt',
];

let stderr: LogWriter | undefined;

/** A logger that writes JSON lines to stderr. @param bindings fields of every line */
export function createLogger(level: string, bindings: Record<string, unknown> = {}): Logger {
  return pino(
    {
      level,
      base: bindings,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: {
        paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
        censor: '[secret]',
      },
    },
    (stderr ??= new LogWriter(2)),
  );
}

// Structured logs: one pino logger for the process; each thread and session takes a child of it.
import { pino, type Logger } from 'pino';
import { LogWriter } from './log-writer.ts';

export type { Logger };

/** Field names whose values never reach a log, wherever they occur one or two levels deep. */
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

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

/** Logger made by `createLogger` → sets the level of it and all its children. */
const levelSetters = new WeakMap<Logger, (level: string) => void>();

/** Changes the level of a logger of `createLogger`, and of all its children. */
export function setLogLevel(log: Logger, level: string): void {
  levelSetters.get(log)?.(level);
}

const valueOf = (level: string): number => pino.levels.values[level] ?? Number.POSITIVE_INFINITY;

/** A logger that writes JSON lines to stderr. @param bindings fields of every line */
export function createLogger(level: string, bindings: Record<string, unknown> = {}): Logger {
  // Children of pino keep the level that they were made with; this hook is theirs too.
  let threshold = valueOf(level);
  const log = pino(
    {
      level: 'trace',
      hooks: {
        logMethod(args, method, value) {
          if (value >= threshold) {
            method.apply(this, args);
          }
        },
      },
      base: bindings,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: {
        paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
        censor: '[secret]',
      },
    },
    (stderr ??= new LogWriter(2)),
  );
  levelSetters.set(log, (next) => {
    threshold = valueOf(next);
  });
  return log;
}

// `npm run logs:session -- ID [FILE...]`: prints the history of one session from JSON log lines.
// Reads stdin when no file is given.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

interface Line {
  readonly level: number;
  readonly time: string;
  readonly msg: string;
  readonly worker?: number;
  readonly fields: Readonly<Record<string, unknown>>;
}

const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL',
};
const WARN = 40;
/** Fields with a column of their own, or of no interest to a reader. */
const OWN_FIELDS = new Set([
  'level',
  'time',
  'msg',
  'pid',
  'hostname',
  'session',
  'sessionId',
  'stack',
  'err',
]);
/**
 * Warnings of the worker or the process are shown too. At most this many are kept until the worker
 * of the session is known.
 */
const MAX_CONTEXT_LINES = 10_000;

function parse(text: string): (Line & { readonly session: string | undefined }) | undefined {
  if (!text.startsWith('{')) {
    return undefined;
  }
  try {
    const {
      level,
      time,
      msg = '',
      ...rest
    } = JSON.parse(text) as { level?: number; time?: string; msg?: string } & Record<
      string,
      unknown
    >;
    if (typeof level !== 'number' || typeof time !== 'string') {
      return undefined;
    }
    const session = rest['session'] ?? rest['sessionId'];
    return {
      level,
      time,
      msg,
      fields: rest,
      session: typeof session === 'string' ? session : undefined,
      ...(typeof rest['worker'] === 'number' ? { worker: rest['worker'] } : {}),
    };
  } catch {
    return undefined; // a truncated line
  }
}

const show = (value: unknown): string =>
  typeof value === 'string'
    ? /[\s=]/.test(value)
      ? JSON.stringify(value)
      : value
    : JSON.stringify(value);

function describe({ fields }: Line): string {
  const error = fields['err'] as
    | { readonly message?: string; readonly stack?: string }
    | string
    | undefined;
  const shown = Object.entries(fields)
    .filter(([name]) => !OWN_FIELDS.has(name))
    .map(([name, value]) => `${name}=${show(value)}`);
  const message = typeof error === 'string' ? error : error?.message;
  if (message !== undefined) {
    shown.push(`error=${show(message)}`);
  }
  const stack = typeof error === 'object' ? error.stack : fields['stack'];
  return (
    shown.join(' ') +
    (typeof stack === 'string'
      ? `\n${stack
          .split('\n')
          .slice(1, 6)
          .map((frame) => `             ${frame.trim()}`)
          .join('\n')}`
      : '')
  );
}

/**
 * Formats the history of one session.
 * @param wanted a session id or its beginning
 * @returns undefined when no line belongs to the session
 * @throws Error when the id matches several sessions
 */
export async function sessionHistory(
  wanted: string,
  inputs: readonly Readable[],
): Promise<string | undefined> {
  const own: Line[] = [];
  const context: Line[] = [];
  const ids = new Set<string>();
  for (const input of inputs) {
    for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      const line = parse(text);
      if (line === undefined) {
        continue;
      }
      if (line.session?.startsWith(wanted)) {
        ids.add(line.session);
        own.push(line);
      } else if (line.session === undefined && line.level >= WARN) {
        context.push(line);
        if (context.length > MAX_CONTEXT_LINES) {
          context.shift();
        }
      }
    }
  }
  if (ids.size > 1) {
    throw new Error(
      `'${wanted}' matches ${ids.size} ` +
        `sessions: ${[...ids].slice(0, 5).join(', ')}${ids.size > 5 ? ', …' : ''}`,
    );
  }
  if (own.length === 0) {
    return undefined;
  }
  const at = ({ time }: Line): number => Date.parse(time);
  const [from, to] = [Math.min(...own.map(at)), Math.max(...own.map(at))];
  const workers = new Set(own.map(({ worker }) => worker).filter((worker) => worker !== undefined));
  // Warnings of its worker, or of the whole process, during its life.
  const around = context.filter(
    (line) =>
      at(line) >= from &&
      at(line) <= to + 1000 &&
      (line.worker === undefined || workers.has(line.worker)),
  );
  const lines = [
    ...own.map((line) => ({ line, isOwn: true })),
    ...around.map((line) => ({ line, isOwn: false })),
  ].sort((a, b) => at(a.line) - at(b.line));
  const rows = lines.map(({ line, isOwn }) =>
    (
      `${`+${((at(line) - from) / 1000).toFixed(3)} s`.padStart(11)}  ` +
      (line.level >= WARN ? `${LEVELS[line.level] ?? line.level} ` : '') +
      (isOwn ? '' : line.worker === undefined ? '(server) ' : `(worker ${line.worker}) `) +
      `${line.msg}  ${describe(line)}`
    ).trimEnd(),
  );
  return [`session ${[...ids][0]}, from ${own[0]!.time}`, ...rows, ''].join('\n');
}

if (process.argv[1] === import.meta.filename) {
  const [id, ...files] = process.argv.slice(2);
  if (id === undefined || id.startsWith('-') || id.length < 4) {
    console.error(
      'npm run logs:session -- ID [FILE...]\n\nID is a session id or its first characters ' +
        '(at least 4). Without a FILE it reads the log from stdin, for example:\n  ' +
        'journalctl -u mouthpiece -o cat | npm run -s logs:session -- 3f2a9c',
    );
    process.exit(2);
  }
  try {
    const history = await sessionHistory(
      id,
      files.length === 0 ? [process.stdin] : files.map((file) => createReadStream(file)),
    );
    if (history === undefined) {
      console.error(
        `No line belongs to a session that begins with '${id}'. The server must log with ` +
          'LOG_LEVEL=info or lower.',
      );
      process.exit(1);
    }
    process.stdout.write(history);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}

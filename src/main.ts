// The entry point: reads the environment, starts the server, prints its address, and stops it on a
// signal.
import { readFile } from 'node:fs/promises';
import { isatty } from 'node:tty';
import { reportDefectsTo } from './base/guard.ts';
import { createLogger } from './base/log.ts';
import { monotonicMs } from './base/time.ts';
import { ConfigError, shownConfig } from './config.ts';
import { startServer, type RunningServer } from './server.ts';
import { changedSettings, readSettings } from './settings-file.ts';

function fail(message: string): never {
  process.stderr.write(`mouthpiece: ${message}\n`);
  process.exit(1);
}

// The server must not end when the reader of its output does.
process.stdout.on('error', () => {});

const unknown = process.argv.slice(2);
if (unknown.length > 0) {
  fail(
    `unknown argument '${unknown[0]!}': settings come from the environment, see the table in README.md`,
  );
}

// The threads of libuv's pool inherit the CPU affinity of the thread that first uses it. That must
// be this one, before any worker is pinned.
await readFile(new URL(import.meta.url));

let config;
try {
  config = readSettings(process.env);
} catch (error) {
  if (!(error instanceof ConfigError)) {
    throw error;
  }
  fail(`bad configuration\n${error.message.replaceAll(/^/gm, '  ')}`);
}
const log = createLogger(config.LOG_LEVEL);
reportDefectsTo((where, error, missed) => {
  log.error({ err: error, missed }, `${where} failed`);
});
process.on('uncaughtException', (error) => {
  log.fatal(
    { err: error },
    'uncaught exception: ending, so that the supervisor restarts the server',
  );
  process.exit(1);
});
process.on('unhandledRejection', (reason) => {
  log.error({ err: reason }, 'unhandled rejection');
});

/**
 * A terminal and npm forward signals, so that Ctrl-C arrives up to three times. Within this time
 * they count as one.
 */
const SAME_SIGNAL_MS = 1000;
/** At a terminal, SIGHUP says that the terminal closed. A daemon is asked to reload. */
const isAtTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
let server: RunningServer | undefined;
/** Those in effect: SIGHUP changes some. */
let settings = config;
let isHurried = false;
let stopSinceMs: number | undefined;

/** Drains and ends the process. A second signal ends the drain. */
async function stop(signal: string): Promise<void> {
  const nowMs = monotonicMs();
  if (stopSinceMs !== undefined) {
    if (nowMs - stopSinceMs >= SAME_SIGNAL_MS) {
      isHurried = true;
    }
    return;
  }
  stopSinceMs = nowMs;
  if (server === undefined) {
    log.info({ signal }, 'stopped while starting');
    process.exit(0);
  }
  log.info(
    { signal, sessions: server.sessions.size, drainSeconds: settings.DRAIN_SECONDS },
    'draining; a second signal ends at once',
  );
  try {
    await server.stop(settings.DRAIN_SECONDS * 1000, () => isHurried);
  } catch (error) {
    log.error({ err: error }, 'the server did not stop cleanly');
    process.exit(1);
  }
  log.info('stopped');
  process.exit(0);
}

/** Reads SETTINGS_FILE again. Settings that are refused change nothing. */
function reloadSettings(running: RunningServer): void {
  try {
    const next = readSettings(process.env);
    const { now, atRestart } = changedSettings(settings, next);
    running.reconfigure(next);
    settings = { ...settings, ...Object.fromEntries(now.map((name) => [name, next[name]])) };
    log.info(
      { now, atRestart },
      'SIGHUP: settings read again; what has changed, and when it counts',
    );
  } catch (error) {
    if (!(error instanceof ConfigError)) {
      throw error;
    }
    log.error({ problems: error.message }, 'SIGHUP: bad settings; the old ones stay in effect');
  }
}

/** SIGHUP: stops at a terminal; a daemon reads its settings and its certificate again. */
async function hangUp(): Promise<void> {
  if (isAtTerminal) {
    await stop('SIGHUP');
    return;
  }
  if (server === undefined || stopSinceMs !== undefined) {
    log.info('SIGHUP ignored: the server is starting or stopping');
    return;
  }
  reloadSettings(server);
  const files = await server.reloadCertificate().catch((error: unknown) => {
    log.error(
      { err: error },
      'SIGHUP: the certificate could not be read; the old one stays in use',
    );
    return null;
  });
  if (files === null) {
    return;
  }
  if (files === undefined) {
    log.info('SIGHUP: there is no certificate to read');
  } else {
    log.info(files, 'SIGHUP: new connections get the new certificate');
  }
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    void stop(signal);
  });
}
process.on('SIGHUP', () => {
  void hangUp();
});

server = await startServer(config, log).catch((error: unknown) =>
  fail(error instanceof Error ? error.message : String(error)),
);
log.info({ config: shownConfig(config) }, 'settings in effect');

/**
 * Text for the operator. Shows a new API key once, and only at a terminal: other output may be
 * stored.
 */
function greeting({ url, apiKey, apiKeyFile, isKeyNew }: RunningServer): string {
  const isShown = isKeyNew && isatty(1);
  const where = apiKeyFile === undefined ? 'as set in BOOTSTRAP_API_KEY' : `in ${apiKeyFile}`;
  return [
    '',
    '  Mouthpiece is ready.',
    '',
    `  See a face speak   ${url}/${isShown ? `#key=${apiKey}` : ''}`,
    `  REST and docs      ${url}/docs`,
    `  API key            ${isShown ? `${apiKey}   (shown only now; stored ${where})` : where}`,
    '',
    '',
  ].join('\n');
}

process.stdout.write(
  config.READY_JSON
    ? `${JSON.stringify({ ready: true, url: server.url, apiKey: server.apiKey })}\n`
    : greeting(server),
);

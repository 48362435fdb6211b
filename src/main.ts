// The entry point: reads the environment, starts the server, says where it is, and stops it on a signal.
import { readFile } from 'node:fs/promises';
import { reportDefectsTo } from './base/guard.ts';
import { createLogger } from './base/log.ts';
import { ConfigError, loadConfig } from './config.ts';
import { startServer } from './server.ts';

function fail(message: string): never {
  process.stderr.write(`mouthpiece: ${message}\n`);
  process.exit(1);
}

const unknown = process.argv.slice(2);
if (unknown.length > 0) fail(`unknown argument '${unknown[0]!}': settings come from the environment, see the table in README.md`);

// libuv's pool inherits the affinity of the thread that first uses it: that must be this one, before any worker is pinned.
await readFile(new URL(import.meta.url));

let config;
try {
  config = loadConfig(process.env);
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  fail(`bad configuration\n${error.message.replaceAll(/^/gm, '  ')}`);
}
const log = createLogger(config.LOG_LEVEL);
reportDefectsTo((where, error, missed) => { log.error({ err: error, missed }, `${where} failed`); });
const server = await startServer(config, log).catch((error: unknown) => fail(error instanceof Error ? error.message : String(error)));

if (config.READY_JSON) process.stdout.write(`${JSON.stringify({ ready: true, url: server.url, apiKey: server.apiKey })}\n`);
else {
  process.stdout.write([
    '',
    '  Mouthpiece is ready.',
    '',
    `  See a face speak   ${server.url}/#key=${server.apiKey}`,
    `  REST and docs      ${server.url}/docs`,
    `  API key            ${server.apiKey}`,
    '',
    '',
  ].join('\n'));
}

let isHurried = false;
let isStopping = false;
async function stop(signal: string): Promise<void> {
  if (isStopping) {
    isHurried = true;
    return;
  }
  isStopping = true;
  log.info({ signal, sessions: server.sessions.size, drainSeconds: config!.DRAIN_SECONDS }, 'draining; a second signal ends at once');
  await server.stop(config!.DRAIN_SECONDS * 1000, () => isHurried);
  process.exit(0);
}
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => { void stop(signal); });
process.on('uncaughtException', (error) => {
  log.fatal({ err: error }, 'uncaught exception: ending, so that a supervisor starts afresh');
  process.exit(1);
});
process.on('unhandledRejection', (reason) => { log.error({ err: reason }, 'unhandled rejection'); });

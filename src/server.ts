// Starts a server from its settings: the core, the sessions, the listener (src/compose). `main.ts`
// starts it, and so do tests.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { CloseStack } from './base/close-stack.ts';
import { newSecret } from './base/ids.ts';
import { type Logger, setLogLevel } from './base/log.ts';
import { type Composition, openCore } from './compose/core.ts';
import { openListener } from './compose/listener.ts';
import { openSessions } from './compose/sessions.ts';
import type { Config } from './config.ts';
import { tlsFiles } from './front/http-server.ts';
import { nodeFacts, nodeFigures } from './front/node-facts.ts';
import type { WorkerPool } from './front/placement/worker-pool.ts';
import type { SessionService } from './front/sessions/session-service.ts';
import { readOrCreate } from './front/store/data-dir.ts';
import type { ReloadableConfig } from './settings-file.ts';

/** A started server. */
export interface RunningServer {
  readonly url: string;
  readonly port: number;
  readonly apiKey: string;
  /** The file of the key; undefined when it came from the settings. */
  readonly apiKeyFile: string | undefined;
  /** Whether this start made the key. */
  readonly isKeyNew: boolean;
  readonly pool: WorkerPool;
  readonly sessions: SessionService;
  /**
   * Reads the certificate files again, for new connections. @returns which; undefined where the
   * server does not speak TLS itself.
   * @throws Error when they cannot be used: the old certificate then stays in use
   */
  reloadCertificate(): Promise<{ readonly certificate: string; readonly key: string } | undefined>;
  /** Takes over the settings that can change while the server runs. */
  reconfigure(config: ReloadableConfig): void;
  /**
   * Refuses new sessions, lets running ones finish for `drainMs` or until `isHurried`, then stops
   * everything.
   */
  stop(drainMs: number, isHurried?: () => boolean): Promise<void>;
}

/** Starts a server. @throws Error with one line to act on; nothing is left running then */
export async function startServer(config: Config, log: Logger): Promise<RunningServer> {
  const closers = new CloseStack();
  try {
    return await compose({ config, log, closers });
  } catch (error) {
    await closers.close().catch((closeError: unknown) => {
      log.error({ err: closeError }, 'the server did not start, and did not stop cleanly');
    });
    throw error;
  }
}

async function compose(composition: Composition): Promise<RunningServer> {
  const { config, log, closers } = composition;
  const core = await openCore(composition);
  const { pool } = core;
  const parts = await openSessions(core);
  const { services, sessions, relay, cluster } = parts;
  const apiKey = await registerFirstKey(config, (key) =>
    services.apiKeys.register(key, 'bootstrap', 'bootstrap', true),
  );
  const http = await openListener(core, parts);
  const { serverId: id, media, version } = core;
  await cluster.join(nodeFacts({ id, config, media, pool, version, localUrl: http.url }), () =>
    nodeFigures(pool, sessions),
  );
  closers.add(() => cluster.close());

  return {
    url: http.url,
    port: http.port,
    ...apiKey,
    pool,
    sessions,
    async reloadCertificate() {
      const files = tlsFiles(config);
      if (files === undefined) {
        return undefined;
      }
      await http.reloadCertificate();
      return { certificate: files.certFile, key: files.keyFile };
    },
    reconfigure(next) {
      setLogLevel(log, next.LOG_LEVEL);
      services.apiKeys.requestsPerSecond = next.RATE_LIMIT_RPS;
      services.quota.limit = next.MAX_SESSIONS_PER_KEY;
      http.setLimits({ ...next, TRUSTED_PROXIES: config.TRUSTED_PROXIES });
    },
    async stop(drainMs, isHurried = () => false) {
      await Promise.all([sessions.drain(drainMs, isHurried), relay.drain(drainMs, isHurried)]);
      await closers.close();
    },
  };
}

const API_KEY_NAME = 'api-key';

/** Registers the key of the settings, or the one in DATA_DIR, which the first start makes. */
async function registerFirstKey(
  config: Config,
  register: (key: string) => Promise<unknown>,
): Promise<Pick<RunningServer, 'apiKey' | 'apiKeyFile' | 'isKeyNew'>> {
  const apiKeyFile =
    config.BOOTSTRAP_API_KEY === undefined ? path.join(config.DATA_DIR, API_KEY_NAME) : undefined;
  const isKeyNew = apiKeyFile !== undefined && !existsSync(apiKeyFile);
  const apiKey =
    config.BOOTSTRAP_API_KEY ??
    (await readOrCreate(config.DATA_DIR, API_KEY_NAME, () => newSecret('mp_')));
  await register(apiKey);
  return { apiKey, apiKeyFile, isKeyNew };
}

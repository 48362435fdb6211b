// What this server tells the others of itself.
import os from 'node:os';
import { ownAddresses } from '../base/network-interfaces.ts';
import { wallMs } from '../base/time.ts';
import type { Config } from '../config.ts';
import type { MediaConfig } from '../link/worker-init.ts';
import { isAnyAddress } from '../media-config.ts';
import type { NodeFacts } from './cluster/cluster.ts';
import type { NodeFigures } from './cluster/node-record.ts';
import type { WorkerPool } from './placement/worker-pool.ts';
import type { SessionService } from './sessions/session-service.ts';

/** What does not change while the server runs. */
export function nodeFacts(parts: {
  readonly id: string;
  readonly config: Config;
  readonly media: MediaConfig;
  readonly pool: WorkerPool;
  readonly version: string;
  /** Where clients on this machine reach the server. */
  readonly localUrl: string;
}): NodeFacts {
  const { id, config, media, pool, version, localUrl } = parts;
  return {
    id,
    host: os.hostname(),
    url: config.NODE_URL ?? urlForOthers(config.HOST, localUrl),
    mediaAddresses: media.announcedAddresses,
    version,
    region: config.REGION ?? '',
    startedAtMs: Math.round(wallMs()),
    workers: config.WORKERS,
    kinds: [
      'p2p',
      'livekit',
      'agent',
      ...(config.MAX_CONVERSATIONS > 0 ? (['auto'] as const) : []),
    ],
    models: pool.renderers,
  };
}

/** What changes with the sessions. */
export const nodeFigures = (pool: WorkerPool, sessions: SessionService): NodeFigures => ({
  room: sessions.room,
  sessions: sessions.size,
  load: Number(Math.max(0, ...pool.handles.map(({ load }) => load)).toFixed(3)),
  isDraining: sessions.isDraining,
});

function urlForOthers(host: string, localUrl: string): string {
  const address = isAnyAddress(host) ? ownAddresses(host).external[0] : undefined;
  if (address === undefined) {
    return localUrl;
  }
  const url = new URL(localUrl);
  url.hostname = address.includes(':') ? `[${address}]` : address;
  return url.origin;
}

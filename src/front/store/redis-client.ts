// Clients of ioredis for the three forms of Redis: one server, a server behind Sentinels, a cluster.
import type { ConnectionOptions } from 'node:tls';
import { Cluster, Redis, type RedisOptions } from 'ioredis';

/** How to reach a Redis. */
export interface RedisAccess {
  /**
   * One URL: redis://, rediss:// (TLS) or unix://. Several of redis:// or rediss://: a cluster.
   * redis-sentinel:// or rediss-sentinel://: Sentinels, whose user and password are theirs alone.
   */
  readonly urls: readonly string[];
  /** Of Redis; undefined: as in its URL. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Name of the server that the Sentinels watch. */
  readonly sentinelMaster?: string | undefined;
  /** PEM, for TLS: authorities, client certificate and its key. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** Time limit of a command. After it, the caller gets STORE_UNAVAILABLE. */
const COMMAND_TIMEOUT_MS = 2000;
/** Longest silence of a Sentinel. The next one is asked then. */
const SENTINEL_TIMEOUT_MS = 1000;

const SHARED = {
  protocol: 2, // RESP2: the same replies from Redis 6.2 to 8 and Valkey
  commandTimeout: COMMAND_TIMEOUT_MS,
  connectTimeout: 2000,
  maxRetriesPerRequest: 1,
  autoResendUnfulfilledCommands: false, // a command that may have run must not run twice
  disableClientInfo: true,
} as const;

const retryDelayMs = (attempt: number): number => Math.min(1000, 25 * 2 ** Math.min(attempt, 6));

interface Address {
  readonly path?: string;
  readonly host?: string;
  readonly port?: number;
  readonly db?: number;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly tls?: ConnectionOptions;
}

/** Whether a URL names a Sentinel. */
export const isSentinelUrl = (url: string): boolean => /^\w+-sentinel:/.test(url);

/** A client that is not connected yet. */
export function createRedisClient(access: RedisAccess): Redis | Cluster {
  if (isSentinelUrl(access.urls[0]!)) {
    return sentinelClient(access);
  }
  const addresses = access.urls.map((url) => ({
    ...parseUrl(url, access),
    ...credentials(access),
  }));
  return addresses.length > 1
    ? clusterClient(addresses)
    : new Redis({
        ...SHARED,
        ...addresses[0]!,
        lazyConnect: true,
        enableOfflineQueue: false,
        retryStrategy: retryDelayMs,
      });
}

function sentinelClient(access: RedisAccess): Redis {
  const sentinels = access.urls.map((url) => parseUrl(url.replace('-sentinel:', ':'), access));
  const { username, password, tls, db } = sentinels[0]!;
  return new Redis({
    ...SHARED,
    sentinels: sentinels.map(({ host, port }) => ({ host: host!, port: port! })),
    name: access.sentinelMaster ?? 'mymaster',
    ...(username === undefined ? {} : { sentinelUsername: username }),
    ...(password === undefined ? {} : { sentinelPassword: password }),
    ...(tls === undefined ? {} : { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
    ...credentials(access),
    ...(db === undefined ? {} : { db }),
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    sentinelRetryStrategy: retryDelayMs,
    // Told by the Sentinels, it leaves the old server at once, before that one closes the connection.
    failoverDetector: true,
    // The old server comes back as a replica. It has not run the command that it refuses so.
    reconnectOnError: ({ message }) => (message.startsWith('READONLY') ? 2 : false),
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy: retryDelayMs,
  });
}

function clusterClient(nodes: readonly Address[]): Cluster {
  const { username, password, tls } = nodes[0]!;
  return new Cluster(
    nodes.map(({ host, port }) => ({ host: host!, port: port! })),
    {
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: retryDelayMs,
      slotsRefreshTimeout: 2000,
      maxRedirections: 8,
      retryDelayOnFailover: 100,
      retryDelayOnClusterDown: 100,
      redisOptions: {
        ...SHARED,
        ...(username === undefined ? {} : { username }),
        ...(password === undefined ? {} : { password }),
        ...(tls === undefined ? {} : { tls }),
      },
    },
  );
}

const credentials = ({
  username,
  password,
}: RedisAccess): Pick<RedisOptions, 'username' | 'password'> => ({
  ...(username === undefined ? {} : { username }),
  ...(password === undefined ? {} : { password }),
});

function parseUrl(url: string, { ca, cert, key }: RedisAccess): Address {
  if (url.startsWith('unix://')) {
    return { path: url.slice('unix://'.length) };
  }
  const { hostname, port, username, password, pathname, protocol } = new URL(
    url.replace(/^valkey/, 'redis'),
  );
  const host = hostname.replace(/^\[|\]$/g, '');
  const tls = {
    // Server names are no addresses (RFC 6066 section 3).
    ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert, key }),
  };
  return {
    host,
    port: Number(port || 6379),
    db: Number(pathname.slice(1) || 0),
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' ? { tls } : {}),
  };
}

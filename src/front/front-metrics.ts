// The metrics of the main thread: HTTP, Redis, STUN, tokens, readiness, connections. Handles are
// made once per series.
import { ERRORS, type ErrorCode } from '../base/errors.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Counter, Histogram } from '../metrics/catalogue.ts';
import { exemplarOf } from '../metrics/shared-metrics.ts';
import type { StorageOperation } from '../base/storage-operations.ts';
import { monotonicMs } from '../base/time.ts';
import type { Logger } from '../base/log.ts';
import type { Refusal } from './http/client-limits.ts';
import type { CacheOutcome } from './store/cached-blobs.ts';
import type { StorageObserver } from './store/open-storage.ts';
import type { AnsweredRequest } from './http/http-context.ts';
import { STUN_OUTCOMES, type StunCount } from '../webrtc/ice/stun-server.ts';

/** The part of an ioredis client or cluster that is needed to time its commands. */
interface CommandSender {
  sendCommand(
    command: { readonly name: string; readonly promise: Promise<unknown> },
    ...rest: unknown[]
  ): unknown;
}

/** Caches what `make` returns, by key. */
const memo = <T>(make: (key: string) => T): ((key: string) => T) => {
  const made = new Map<string, T>();
  return (key) => {
    let value = made.get(key);
    if (value === undefined) {
      made.set(key, (value = make(key)));
    }
    return value;
  };
};

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']);

/**
 * @returns the callback for each answered request. Its route is a template, so there are few of
 * them.
 */
export function observeHttp(metrics: Metrics): (request: AnsweredRequest) => void {
  const requests = memo<Counter>((key) => {
    const [method, status, route] = key.split(' ') as [string, string, string];
    return metrics.counter('mouthpiece_http_requests_total', {
      method: METHODS.has(method) ? (method as 'GET') : 'other',
      route,
      status,
    });
  });
  const durations = memo<Histogram>((route) =>
    metrics.histogram('mouthpiece_http_request_duration_seconds', { route }),
  );
  const issued = metrics.counter('mouthpiece_tokens_issued_total');
  const failures = metrics.counter('mouthpiece_errors_total', { code: 'INTERNAL_ERROR' });
  return ({ route, method, status, durationMs, requestId }) => {
    requests(`${method} ${status} ${route}`).add();
    durations(route).observe(
      durationMs / 1000,
      requestId === undefined ? undefined : exemplarOf(requestId),
    );
    if (route === '/compose/token' && status === 200) {
      issued.add();
    }
    if (status >= 500 && status !== 501 && status !== 503) {
      failures.add();
    }
  };
}

/** @returns the callback for each refused token request, with the code of the answer. */
export function observeTokenRefusals(metrics: Metrics): (code: ErrorCode) => void {
  return (code) => {
    metrics.counter('mouthpiece_tokens_refused_total', { code }).add();
    // Clients are told 429, since some crash on a 5xx here. It is our fault all the same.
    if (ERRORS[code].status >= 500) {
      metrics.counter('mouthpiece_errors_total', { code }).add();
    }
  };
}

/** @returns the callback for each datagram at our own STUN server. */
export function observeStun(metrics: Metrics): StunCount {
  const counters = new Map(
    STUN_OUTCOMES.map((outcome) => [
      outcome,
      metrics.counter('mouthpiece_stun_requests_total', { outcome }),
    ]),
  );
  return (outcome) => {
    counters.get(outcome)?.add();
  };
}

const REFUSAL_LOG_MS = 1000;

/** @returns the callback for each refusal to protect the server; logged at most once a second. */
export function observeRefusals(metrics: Metrics, log: Logger): (reason: Refusal) => void {
  const connections = metrics.counter('mouthpiece_connections_refused_total', {
    reason: 'connections',
  });
  const counterOf = memo<Counter>((text) => {
    const reason = text as Exclude<Refusal, 'all_connections'>;
    return metrics.counter('mouthpiece_http_refused_total', { reason });
  });
  const unlogged = new Map<Refusal, number>();
  let loggedMs = Number.NEGATIVE_INFINITY;
  return (reason) => {
    (reason === 'all_connections' ? connections : counterOf(reason)).add();
    unlogged.set(reason, (unlogged.get(reason) ?? 0) + 1);
    const nowMs = monotonicMs();
    if (nowMs - loggedMs < REFUSAL_LOG_MS) {
      return;
    }
    loggedMs = nowMs;
    log.warn(
      { refused: Object.fromEntries(unlogged) },
      'clients exceeded the limits of the HTTP server',
    );
    unlogged.clear();
  };
}

/** Times every command of the client from now on; a script counts under the name of its command. */
export function observeRedis(metrics: Metrics, client: unknown, isReady: () => boolean): void {
  const durations = memo<Histogram>((command) =>
    metrics.histogram('mouthpiece_redis_command_duration_seconds', { command }),
  );
  const errors = {
    timeout: metrics.counter('mouthpiece_redis_errors_total', { cause: 'timeout' }),
    connection: metrics.counter('mouthpiece_redis_errors_total', { cause: 'connection' }),
    reply: metrics.counter('mouthpiece_redis_errors_total', { cause: 'reply' }),
  };
  const connected = metrics.gauge('mouthpiece_redis_connected');
  metrics.onScrape(() => {
    connected.set(isReady() ? 1 : 0);
  });
  const sender = client as CommandSender;
  const send = sender.sendCommand.bind(sender);
  sender.sendCommand = (command, ...rest) => {
    const startMs = monotonicMs();
    command.promise.then(
      () => {
        durations(command.name).observe((monotonicMs() - startMs) / 1000);
      },
      (error: unknown) => {
        const text = String(error);
        if (/timed out/i.test(text)) {
          errors.timeout.add();
        } else if (/ReplyError/.test(text)) {
          errors.reply.add();
        } else {
          errors.connection.add();
        }
      },
    );
    return send(command, ...rest);
  };
}

/** @returns the callbacks of the storage of faces and videos */
export function observeStorage(metrics: Metrics): Omit<StorageObserver, 'log'> {
  const series = memo((operation) => ({
    duration: metrics.histogram('mouthpiece_storage_operation_duration_seconds', {
      operation: operation as StorageOperation,
    }),
    errors: metrics.counter('mouthpiece_storage_errors_total', {
      operation: operation as StorageOperation,
    }),
  }));
  const cached = memo((outcome) =>
    metrics.counter('mouthpiece_storage_cache_requests_total', {
      outcome: outcome as CacheOutcome,
    }),
  );
  return {
    observe(operation, seconds, isGood) {
      const { duration, errors } = series(operation);
      duration.observe(seconds);
      if (!isGood) {
        errors.add();
      }
    },
    observeCache(outcome) {
      cached(outcome).add();
    },
  };
}

/** The parts of the server whose state is shown as gauges. */
export interface ObservedServer {
  readonly store: { readonly ready: boolean };
  readonly pool: { readonly size: number };
  readonly sessions: { readonly isDraining: boolean; readonly room: number };
  readonly storage: { readonly isUp: boolean; readonly cacheBytes: number };
  readonly recorder: { readonly pendingCount: number };
  readonly bodyBudget: { readonly isFull: boolean; readonly held: number };
  readonly http: {
    readonly requestsInFlight: number;
    readonly connections: number;
    readonly webSockets: number;
  };
}

/** Sets the gauges of readiness, capacity and connections at each scrape. */
export function observeServer(metrics: Metrics, server: ObservedServer): void {
  const { store, storage, pool, sessions, recorder, bodyBudget, http } = server;
  const ready = metrics.gauge('mouthpiece_ready');
  const draining = metrics.gauge('mouthpiece_draining');
  const room = metrics.gauge('mouthpiece_room_sessions');
  const storageBytes = metrics.gauge('mouthpiece_storage_cache_bytes');
  const storageUp = metrics.gauge('mouthpiece_storage_up');
  const webSockets = metrics.gauge('mouthpiece_websocket_connections');
  const pendingRecords = metrics.gauge('mouthpiece_history_pending_records');
  const requestsInFlight = metrics.gauge('mouthpiece_http_requests_in_flight');
  const connections = metrics.gauge('mouthpiece_http_connections');
  const bodyBytes = metrics.gauge('mouthpiece_http_body_bytes');
  metrics.onScrape(() => {
    const isReady = store.ready && pool.size > 0 && !bodyBudget.isFull && !sessions.isDraining;
    ready.set(isReady ? 1 : 0);
    draining.set(sessions.isDraining ? 1 : 0);
    room.set(isReady ? sessions.room : 0);
    storageBytes.set(storage.cacheBytes);
    storageUp.set(storage.isUp ? 1 : 0);
    webSockets.set(http.webSockets);
    pendingRecords.set(recorder.pendingCount);
    requestsInFlight.set(http.requestsInFlight);
    connections.set(http.connections);
    bodyBytes.set(bodyBudget.held);
  });
}

// What the front itself is measured by: HTTP, Redis, sockets, readiness, history that waits. Handles are made once per series.
import type { Metrics } from '../metrics/metrics.ts';
import type { Counter, Histogram } from '../metrics/catalogue.ts';
import { exemplarOf } from '../metrics/shared-metrics.ts';
import { monotonicMs } from '../base/time.ts';
import type { Logger } from '../base/log.ts';
import type { Refusal } from './http/client-limits.ts';
import type { AnsweredRequest } from './http/http-context.ts';
import { STUN_OUTCOMES, type StunCount } from '../webrtc/ice/stun-server.ts';

/** ioredis' client or cluster, as far as timing its commands needs it. */
interface CommandSender {
  sendCommand(
    command: { readonly name: string; readonly promise: Promise<unknown> },
    ...rest: unknown[]
  ): unknown;
}

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

/** @returns the callback for each answered request. Routes are templates, so their number is bounded. */
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

/** @returns the callback for each refusal of the HTTP front; they are logged once a second at most. */
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
    log.warn({ refused: Object.fromEntries(unlogged) }, 'clients met the limits of the HTTP front');
    unlogged.clear();
  };
}

/** Times every command of the client from here on, scripts under the name of their command. */
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

// The settings of servers that share a Redis, and of their operation. Read by config.ts.
import { httpUrl, httpUrlWithUser, integer, setting, text } from './setting.ts';

/** The settings of a cluster, and of operation. */
export const CLUSTER_SETTINGS = {
  NODE_URL: setting(
    httpUrl,
    undefined,
    'URL at which the other servers of REDIS_URL reach this one (http://10.0.0.5:8080). ' +
      'Unset: HOST and PORT; where HOST is 0.0.0.0, the first address of the machine.',
  ),
  SETTINGS_FILE: setting(
    text,
    undefined,
    'File of settings, one NAME=value a line, below those of the environment. SIGHUP reads it again: ' +
      'log level, limits by key and address, and DRAIN_SECONDS take effect then, others at a restart.',
  ),
  ADMIN_PORT: setting(
    integer(0, 65535),
    undefined,
    'Port of /metrics, /cluster and /debug, which are then not served on PORT. 0 picks a free one. ' +
      'Unset: PORT serves /metrics and /cluster; there is no /debug.',
  ),
  ADMIN_HOST: setting(text, '127.0.0.1', 'Address to listen on for ADMIN_PORT.'),
  OTEL_EXPORTER_OTLP_ENDPOINT: setting(
    httpUrlWithUser,
    undefined,
    'URL of an OpenTelemetry collector: traces of requests, set-ups of sessions and utterances go to ' +
      '/v1/traces below it, as JSON. The SDK reads its other variables (OTEL_TRACES_SAMPLER, ' +
      'OTEL_EXPORTER_OTLP_HEADERS, OTEL_BSP_*, ...) itself. Unset: nothing is traced.',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: setting(
    httpUrlWithUser,
    undefined,
    'The whole URL for traces, instead of OTEL_EXPORTER_OTLP_ENDPOINT.',
  ),
  CORE_LOCK_DIR: setting(
    text,
    undefined,
    'Directory that the servers on one host share, where each locks the cores of its workers. ' +
      'Needed only between containers with networks of their own; others see one another without it.',
  ),
  REGION: setting(
    text.max(64, 'must have at most 64 characters'),
    undefined,
    'Name of the place of this server, for lists of servers.',
  ),
} as const;

/** Where traces go; undefined: nowhere. */
export function tracesUrl(config: {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT: string | undefined;
  readonly OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: string | undefined;
}): string | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: whole } = config;
  return whole ?? (base === undefined ? undefined : `${base}/v1/traces`);
}

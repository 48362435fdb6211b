// The settings of the connection to Redis. Read by config.ts.
import { z } from 'zod';
import { setting, text } from './setting.ts';

/** The settings of Redis. */
export const REDIS_SETTINGS = {
  REDIS_URL: setting(
    z
      .string()
      .regex(
        /^(?:(?:rediss?|valkeys?)(?:-sentinel)?|unix):\/\//,
        'must begin with redis://, rediss://, redis-sentinel://, rediss-sentinel:// or unix://',
      ),
    undefined,
    'Redis ≥ 6.2 or Valkey; several comma-separated URLs make a cluster. redis-sentinel:// names ' +
      'Sentinels, comma-separated, with their own user and password. Unset: a private ' +
      'redis-server under DATA_DIR.',
  ),
  REDIS_USERNAME: setting(text, undefined, 'ACL user of Redis. Unset: that of REDIS_URL.'),
  REDIS_PASSWORD: setting(text, undefined, 'Password of Redis. Unset: that of REDIS_URL.'),
  REDIS_SENTINEL_MASTER: setting(text, 'mymaster', 'Name that the Sentinels give to the Redis.'),
  REDIS_CA_FILE: setting(
    text,
    undefined,
    'PEM file of the authorities that signed the certificate of a rediss:// server. Unset: those of Node.',
  ),
  REDIS_CERT_FILE: setting(
    text,
    undefined,
    'PEM file of the client certificate for Redis servers that ask for one (tls-auth-clients).',
  ),
  REDIS_KEY_FILE: setting(text, undefined, 'PEM file of its private key.'),
} as const;

/** What is wrong with the settings of Redis together; undefined: nothing. */
export function redisProblem(values: Readonly<Record<string, unknown>>): string | undefined {
  if ((values['REDIS_CERT_FILE'] === undefined) !== (values['REDIS_KEY_FILE'] === undefined)) {
    return 'REDIS_CERT_FILE and REDIS_KEY_FILE: set both or neither';
  }
  const urls = ((values['REDIS_URL'] as string | undefined) ?? 'redis://localhost').split(',');
  const schemes = new Set(urls.map((url) => url.trim().split('://')[0]));
  if (schemes.size > 1) {
    return 'REDIS_URL: all URLs must begin with the same scheme';
  }
  return urls.every((url) => URL.canParse(url.trim()))
    ? undefined
    : 'REDIS_URL: must be URLs such as redis://host:6379, with commas between';
}

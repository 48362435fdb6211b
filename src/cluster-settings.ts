// The settings of servers that share a Redis. Read by config.ts.
import { httpUrl, setting, text } from './setting.ts';

/** The settings of a cluster. */
export const CLUSTER_SETTINGS = {
  NODE_URL: setting(
    httpUrl,
    undefined,
    'URL at which the other servers of REDIS_URL reach this one (http://10.0.0.5:8080). ' +
      'Unset: HOST and PORT; where HOST is 0.0.0.0, the first address of the machine.',
  ),
  REGION: setting(
    text.max(64, 'must have at most 64 characters'),
    undefined,
    'Name of the place of this server, for lists of servers.',
  ),
} as const;

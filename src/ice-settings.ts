// The settings of STUN and TURN servers for clients. Read by config.ts.
import { z } from 'zod';
import { hostOf } from './base/hosts.ts';
import { setting, text } from './setting.ts';

const STUN_URL = /^stuns?:(?<host>.*)$/;
const TURN_URL = /^turns?:(?<host>[^?]*)(?:\?transport=(?:udp|tcp))?$/;

/** A URL of RFC 7064 (STUN) or RFC 7065 (TURN). */
const iceUrl = z.string().refine((value) => {
  const { host } = (STUN_URL.exec(value) ?? TURN_URL.exec(value))?.groups ?? {};
  return host !== undefined && hostOf(host) !== undefined;
}, 'must be such as stun:HOST:3478, turn:HOST?transport=udp or turns:HOST (RFC 7064, RFC 7065)');

const iceServers = z
  .string()
  .transform((value, context): unknown => {
    try {
      return JSON.parse(value);
    } catch {
      context.addIssue({
        code: 'custom',
        message: 'must be JSON, for example [{"urls":"stun:stun.example.org:3478"}]',
      });
      return z.NEVER;
    }
  })
  .pipe(
    z.array(
      z.strictObject({
        urls: z.union([iceUrl, z.array(iceUrl).min(1)], 'must be a URL or an array of URLs'),
        username: z.string().optional(),
        credential: z.string().optional(),
      }),
    ),
  )
  // Clients are told one URL in each entry.
  .transform((servers) =>
    servers.flatMap(({ urls, ...login }) => [urls].flat().map((url) => ({ urls: url, ...login }))),
  );

/** The settings of STUN and TURN. */
export const ICE_SETTINGS = {
  ICE_SERVERS: setting(
    iceServers,
    undefined,
    'JSON array of {urls, username?, credential?} for clients; urls is a URL or an array of them. ' +
      'turn: URLs need username and credential, or TURN_SECRET. Unset: a built-in STUN server on ' +
      'UDP, with the number of PORT.',
  ),
  TURN_SECRET: setting(
    text,
    undefined,
    'Shared secret of coturn (use-auth-secret): turn: entries get time-limited credentials.',
  ),
} as const;

/** What clients lack for a TURN server: without credentials browsers refuse it; undefined: nothing. */
export function iceProblem(values: Readonly<Record<string, unknown>>): string | undefined {
  const servers = (values['ICE_SERVERS'] ?? []) as z.output<typeof iceServers>;
  const isWithoutLogin = servers.some(
    ({ urls, username, credential }) =>
      TURN_URL.test(urls) && (credential ? !username : values['TURN_SECRET'] === undefined),
  );
  return isWithoutLogin
    ? 'ICE_SERVERS: turn: and turns: URLs need username and credential; or set TURN_SECRET'
    : undefined;
}

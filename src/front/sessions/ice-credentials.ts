// ICE servers as clients are told of them, with the credentials of a TURN server.
import { createHmac } from 'node:crypto';
import { wallSeconds } from '../../base/time.ts';

/** One entry of RTCConfiguration.iceServers. */
export interface IceServer {
  readonly urls: string;
  readonly username?: string | undefined;
  readonly credential?: string | undefined;
}

/** How long TURN credentials are valid: longer than the longest usual session. */
const TURN_CREDENTIAL_SECONDS = 12 * 3600;

/**
 * Credentials for `use-auth-secret` of coturn (draft-uberti-behave-turn-rest-00): the user name
 * holds the expiry, the password is its HMAC.
 */
export function withCredentials(
  server: IceServer,
  secret: string | undefined,
  user: string,
): IceServer {
  const entry = {
    urls: server.urls,
    ...(server.username ? { username: server.username } : {}),
    ...(server.credential ? { credential: server.credential } : {}),
  };
  if (!secret || !/^turns?:/.test(server.urls) || server.credential) {
    return entry;
  }
  const username = `${wallSeconds() + TURN_CREDENTIAL_SECONDS}:${user}`;
  return {
    ...entry,
    username,
    credential: createHmac('sha1', secret).update(username).digest('base64'),
  };
}

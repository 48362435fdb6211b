// The ICE servers for clients: those configured, or a built-in STUN server.
import type { Config } from '../config.ts';
import type { Logger } from '../base/log.ts';
import { startStunServer, type StunCount } from '../webrtc/ice/stun-server.ts';
import type { IceServer } from './sessions/ice-credentials.ts';

/** Options of `openIceServers`. */
export interface IceServerOptions {
  readonly config: Pick<Config, 'ICE_SERVERS' | 'PORT'>;
  /** Address of this host as clients know it. */
  readonly publicHost: string;
  /** Local address of our own STUN server. */
  readonly stunHost: string;
  readonly log: Logger;
  /** Called for each datagram that reaches our own STUN server. */
  readonly onStunRequest: StunCount;
}

/**
 * Default port of STUN (RFC 8489 section 8.1): announced when our own server could not be bound.
 */
const STUN_PORT = 3478;

/** Without configured ICE servers, starts a STUN server on UDP at the number of PORT. */
export async function openIceServers(
  options: IceServerOptions,
): Promise<{ readonly iceServers: readonly IceServer[]; close(): Promise<void> }> {
  const { config, publicHost, stunHost, log, onStunRequest } = options;
  if (config.ICE_SERVERS !== undefined && config.ICE_SERVERS.length > 0) {
    return { iceServers: config.ICE_SERVERS, close: () => Promise.resolve() };
  }
  const stun = await startStunServer(stunHost, config.PORT, log, onStunRequest);
  const host = publicHost.includes(':') ? `[${publicHost}]` : publicHost;
  return {
    iceServers: [{ urls: `stun:${host}:${stun?.port ?? STUN_PORT}` }],
    async close() {
      await stun?.close();
    },
  };
}

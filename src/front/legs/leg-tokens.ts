// The tokens with which an agent and a viewer come to their session, at whichever server.
import { createHmac } from 'node:crypto';
import { constantTimeEqual } from '../../base/ids.ts';

/** The sides of a session with two connections. */
export type Side = 'agent' | 'viewer';

/** What each side connects with. */
export type SplitTokens = Readonly<Record<Side, string>>;

/**
 * Issues tokens, and says of which session one is. Every server that has the key can say it: the
 * token is the id of the session, and a signature.
 */
export class LegTokens {
  readonly #key: Buffer;

  /** @param key that all servers have */
  constructor(key: Buffer) {
    this.#key = key;
  }

  issue(sessionId: string): SplitTokens {
    return {
      agent: `${sessionId}.${this.#sign(sessionId, 'agent')}`,
      viewer: `${sessionId}.${this.#sign(sessionId, 'viewer')}`,
    };
  }

  /** The session of a token; undefined: the token is not one of this side. */
  sessionOf(token: string, side: Side): string | undefined {
    const [sessionId = '', signature = '', ...rest] = token.split('.');
    return rest.length === 0 && constantTimeEqual(signature, this.#sign(sessionId, side))
      ? sessionId
      : undefined;
  }

  #sign(sessionId: string, side: Side): string {
    return createHmac('sha256', this.#key).update(`${side}\n${sessionId}`).digest('base64url');
  }
}

// LiveKit access tokens: JSON Web Tokens signed with HMAC-SHA256 (RFC 7519, RFC 7515).
import { createHmac, timingSafeEqual } from 'node:crypto';

/** A key of a LiveKit server, as `LIVEKIT_API_KEY` and `LIVEKIT_API_SECRET` name it. */
export interface LiveKitKey {
  readonly key: string;
  readonly secret: string;
}

/** What a token allows, in LiveKit's own names (`VideoGrants`). */
export interface VideoGrants {
  readonly room?: string;
  readonly roomJoin?: boolean;
  readonly roomCreate?: boolean;
  readonly roomAdmin?: boolean;
  readonly canPublish?: boolean;
  readonly canPublishData?: boolean;
  readonly canSubscribe?: boolean;
}

/** What a token says. */
export interface TokenClaims {
  readonly identity: string;
  readonly video: VideoGrants;
  /** `standard` or `agent`. */
  readonly kind?: string;
  readonly name?: string;
  readonly attributes?: Readonly<Record<string, string>>;
}

/** Clocks of server and client may differ by this much. */
const CLOCK_SKEW_SECONDS = 60;
/** A longer text is not a token. Ours have 400 characters. */
const MAX_TOKEN_CHARS = 16_384;
const HEADER = encoded({ alg: 'HS256', typ: 'JWT' });

/** @param nowSeconds Unix time */
export function signAccessToken(
  { key, secret }: LiveKitKey,
  { identity, ...claims }: TokenClaims,
  ttlSeconds: number,
  nowSeconds: number,
): string {
  const body = encoded({
    iss: key,
    sub: identity,
    nbf: nowSeconds - CLOCK_SKEW_SECONDS,
    exp: nowSeconds + ttlSeconds,
    ...claims,
  });
  return `${HEADER}.${body}.${signature(`${HEADER}.${body}`, secret)}`;
}

/**
 * The claims of a token of ours; undefined: not signed with this key, or not valid now.
 * @param nowSeconds Unix time
 */
export function verifyAccessToken(
  token: string,
  { key, secret }: LiveKitKey,
  nowSeconds: number,
): TokenClaims | undefined {
  const [header, body, signed, ...rest] = token.slice(0, MAX_TOKEN_CHARS + 1).split('.');
  if (token.length > MAX_TOKEN_CHARS || signed === undefined || rest.length > 0) {
    return undefined;
  }
  const expected = Buffer.from(signature(`${header}.${body}`, secret));
  const given = Buffer.from(signed);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    return undefined;
  }
  // The signature is ours, so the header and the claims are ours too.
  const claims = decoded(body!) as {
    iss?: string;
    sub?: string;
    exp?: number;
    video?: VideoGrants;
  };
  const { iss, sub, exp = 0, video } = claims;
  const isValid = iss === key && sub !== undefined && video !== undefined && exp > nowSeconds;
  return isValid ? { identity: sub, video } : undefined;
}

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

const decoded = (part: string): unknown =>
  JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));

const signature = (text: string, secret: string): string =>
  createHmac('sha256', secret).update(text).digest('base64url');

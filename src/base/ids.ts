// Identifiers and secrets: how each kind is made, and how a secret is turned into what may be stored.
import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';

export const newUuid = (): string => randomUUID();

/** 256 random bits in base64url: session tokens, API keys, and every id whose secrecy is its only protection. */
export const newSecret = (prefix = ''): string => prefix + randomBytes(32).toString('base64url');

/** What is stored in place of a secret. A plain SHA-256 is enough, since the input already has 256 bits of entropy. */
export const hashSecret = (secret: string): string =>
  createHash('sha256').update(secret).digest('hex');

export function constantTimeEqual(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

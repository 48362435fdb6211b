// Makes identifiers and secrets, and hashes secrets for storage.
import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';

/** A random UUID (version 4, 122 random bits). */
export const newUuid = (): string => randomUUID();

/** 256 random bits in base64url, for session tokens and API keys. */
export const newSecret = (prefix = ''): string => prefix + randomBytes(32).toString('base64url');

/**
 * The hash that is stored instead of a secret. SHA-256 is enough, since a secret has 256 bits of
 * entropy.
 */
export const hashSecret = (secret: string): string =>
  createHash('sha256').update(secret).digest('hex');

/** Compares two texts in a time that does not depend on where they differ. */
export function constantTimeEqual(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

// The self-signed DTLS certificate (P-256), new at each start (RFC 8827 section 6.5), and checks of
// those of clients.
import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  type KeyObject,
  type KeyPairKeyObjectResult,
} from 'node:crypto';

/** A certificate with its private key. */
export interface Certificate {
  readonly privateKey: KeyObject;
  readonly der: Buffer;
  /**
   * SHA-256 over `der` in SDP notation: upper-case hexadecimal with colons (RFC 8122 section 5).
   */
  readonly fingerprint: string;
}

const DAY_MS = 86_400_000;

/** A new key pair with a certificate, valid for a year. It starts a day ago, as clocks differ. */
export function createCertificate(wallNowMs: number): Certificate {
  return certificateFor(generateKeyPairSync('ec', { namedCurve: 'P-256' }), wallNowMs);
}

/**
 * A certificate for a key pair. Its signature algorithm is always ecdsa-with-SHA256, even if the
 * key is not an EC key (tests use that).
 */
export function certificateFor(keys: KeyPairKeyObjectResult, wallNowMs: number): Certificate {
  const { privateKey, publicKey } = keys;
  const name = sequence(
    tagged(0x31, sequence(oid(2, 5, 4, 3), tagged(0x0c, Buffer.from('mouthpiece')))),
  );
  const ecdsaWithSha256 = sequence(oid(1, 2, 840, 10045, 4, 3, 2));
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40; // positive, and no leading zero byte
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))), // version 3
    tagged(0x02, serial),
    ecdsaWithSha256,
    name,
    sequence(utcTime(wallNowMs - DAY_MS), utcTime(wallNowMs + 365 * DAY_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const signature = sign('sha256', body, privateKey);
  const der = sequence(
    body,
    ecdsaWithSha256,
    tagged(0x03, Buffer.concat([Buffer.from([0]), signature])),
  );
  // Import the key again: Node cannot share a generated key with other threads.
  return {
    privateKey: createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    der,
    fingerprint: fingerprintOf(der, 'sha256'),
  };
}

/** RFC 8827 section 6.5 requires 2048 bits. More than 4096 only costs time. */
const RSA_BITS = { least: 2_048, most: 4_096 } as const;
/**
 * Everyone uses 65537. OpenSSL accepts any exponent, and with a long one a check costs as much as a
 * signature.
 */
const MAX_RSA_EXPONENT = 0xffff_ffffn;
const CURVES: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1', 'secp521r1']);

/**
 * Why not to use a client's key: the client chooses it, and the server pays for the check.
 * @returns undefined: use it
 */
export function keyProblem(key: KeyObject): string | undefined {
  const {
    modulusLength = 0,
    publicExponent = 0n,
    namedCurve = '',
  } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'rsa':
      if (modulusLength < RSA_BITS.least || modulusLength > RSA_BITS.most) {
        return `an RSA key of ${modulusLength} bits`;
      }
      return publicExponent > MAX_RSA_EXPONENT ? 'an RSA key with a long exponent' : undefined;
    case 'ec':
      return CURVES.has(namedCurve) ? undefined : `a key on the curve ${namedCurve}`;
    default:
      return `a key of type ${key.asymmetricKeyType}`;
  }
}

/**
 * The digest of a DER certificate in SDP notation. `hash` as node:crypto names it: sha256, sha384
 * or sha512.
 */
export const fingerprintOf = (der: Buffer, hash: string): string =>
  (createHash(hash).update(der).digest('hex').toUpperCase().match(/../g) ?? []).join(':');

/** A DER element: tag, length, content. */
function tagged(tag: number, content: Buffer): Buffer {
  const length = content.length;
  const head =
    length < 128
      ? [tag, length]
      : length < 256
        ? [tag, 0x81, length]
        : [tag, 0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from(head), content]);
}

const sequence = (...parts: readonly Buffer[]): Buffer => tagged(0x30, Buffer.concat(parts));

/** A DER object identifier. */
function oid(first: number, second: number, ...rest: readonly number[]): Buffer {
  const bytes = [first * 40 + second];
  for (const part of rest) {
    const groups = [part & 127];
    for (let left = part >> 7; left > 0; left >>= 7) {
      groups.unshift(128 | (left & 127));
    }
    bytes.push(...groups);
  }
  return tagged(0x06, Buffer.from(bytes));
}

const utcTime = (epochMs: number): Buffer =>
  tagged(
    0x17,
    Buffer.from(`${new Date(epochMs).toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`),
  );

// Why a DTLS handshake fails: the alert for the client and the reason for the log.

/** Alert descriptions (RFC 5246 section 7.2). */
export const ALERT = {
  closeNotify: 0,
  handshakeFailure: 40,
  badCertificate: 42,
  decodeError: 50,
  decryptError: 51,
} as const;

/** Alert levels (RFC 5246 section 7.2). */
export const ALERT_LEVEL = { warning: 1, fatal: 2 } as const;

/** Ends the handshake. `message`: for the log. */
export class HandshakeFailure extends Error {
  /** The alert description to send. */
  readonly alert: number;
  /** Whether the client could not prove that it has the certificate of the offer. */
  readonly isForgery: boolean;
  constructor(alert: number, message: string, isForgery: boolean) {
    super(message);
    this.alert = alert;
    this.isForgery = isForgery;
  }
}

/**
 * Converts what parsing a hostile message may throw: overruns (RangeError), and errors of
 * node:crypto about bad keys.
 * @throws `error` itself if it is anything else: a defect
 */
export function asHandshakeFailure(error: unknown): HandshakeFailure {
  if (error instanceof HandshakeFailure) {
    return error;
  }
  const isHostileInput =
    error instanceof RangeError ||
    (error instanceof Error && 'code' in error && /^ERR_(CRYPTO|OSSL)/.test(String(error.code)));
  if (!isHostileInput) {
    throw error;
  }
  return new HandshakeFailure(ALERT.decodeError, String(error), false);
}

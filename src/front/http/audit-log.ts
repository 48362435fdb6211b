// Audit lines: who changed what, and which keys were refused. Each has the field `audit`.
import type { Logger } from '../../base/log.ts';
import { monotonicMs } from '../../base/time.ts';
import type { Reply } from './reply.ts';
import type { Caller } from './route.ts';

/** Refused keys are written at most once a second: whoever guesses keys must not fill the disk. */
const REFUSAL_INTERVAL_MS = 1000;

/** The request that is written. */
interface AuditedRequest {
  readonly id: string;
  readonly ip: string;
}

/** Writes the audit lines of a server. */
export class AuditLog {
  readonly #log: Logger;
  #refusedMs = Number.NEGATIVE_INFINITY;
  #unwritten = 0;

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * Somebody changed something.
   * @param action what was done to what, such as face.delete
   * @param params of the path, and of an operator's query
   */
  done(
    action: string,
    request: AuditedRequest,
    caller: Caller,
    params: unknown,
    reply: Reply,
  ): void {
    const { keyId, keyName, ownerId } = caller;
    this.#log.info(
      {
        audit: action,
        requestId: request.id,
        ip: request.ip,
        ...(keyId === '' ? {} : { key: keyId, keyName, owner: ownerId }),
        ...(params as object),
        ...createdId(reply),
      },
      'audit',
    );
  }

  /** A request came with a key that is not valid. */
  keyRefused(request: AuditedRequest): void {
    const nowMs = monotonicMs();
    if (nowMs - this.#refusedMs < REFUSAL_INTERVAL_MS) {
      this.#unwritten++;
      return;
    }
    this.#log.warn(
      {
        audit: 'key.refused',
        requestId: request.id,
        ip: request.ip,
        unwritten: this.#unwritten,
      },
      'audit',
    );
    this.#refusedMs = nowMs;
    this.#unwritten = 0;
  }
}

/** The id of what a reply says was created. */
function createdId({ body }: Reply): object {
  if (body?.kind !== 'json' || typeof body.value !== 'object' || body.value === null) {
    return {};
  }
  const { id, face_id: faceId } = body.value as { id?: unknown; face_id?: unknown };
  return typeof id === 'string' ? { id } : typeof faceId === 'string' ? { faceId } : {};
}

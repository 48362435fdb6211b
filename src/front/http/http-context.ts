// What all requests of one listener share: routes, authentication, limits and metrics.
import type { Logger } from '../../base/log.ts';
import type { Tracing } from '../tracing/tracing.ts';
import type { AuditLog } from './audit-log.ts';
import type { BodyBudget } from './body-budget.ts';
import type { BodyPace } from './body-reader.ts';
import type { ClientLimits } from './client-limits.ts';
import type { Caller } from './route.ts';
import type { Router } from './router.ts';

/** One answered request, for the metrics. */
export interface AnsweredRequest {
  /** Metric label: a path template, or `none` when no route matched. */
  readonly route: string;
  readonly method: string;
  /** The status that was sent; 499 when the client left first. */
  readonly status: number;
  readonly durationMs: number;
  /** The X-Request-Id; undefined for replies that are sent before a request gets an id. */
  readonly requestId: string | undefined;
}

/** What all requests of one listener share. */
export interface HttpContext {
  readonly router: Router;
  readonly log: Logger;
  /**
   * Finds the owner of an API key and counts the request against the key's rate.
   * @throws ServiceError INVALID_API_KEY, RATE_LIMITED or STORE_UNAVAILABLE
   */
  authenticate(key: string): Promise<Caller>;
  /** Lower-case names of the headers that may carry the API key. The first one present is used. */
  readonly apiKeyHeaders: readonly string[];
  readonly limits: ClientLimits;
  /** Undefined: no audit lines are written. */
  readonly audit?: AuditLog;
  readonly bodyBudget: BodyBudget;
  readonly bodyPace: BodyPace;
  /** True when the listener itself speaks TLS. */
  readonly secure: boolean;
  /** Origin under which clients reach this server, if it is configured. */
  readonly publicUrl?: string | undefined;
  /** Undefined: requests are not traced. */
  readonly tracing?: Tracing | undefined;
  /** Called once for each answered request. */
  onRequest(request: AnsweredRequest): void;
}

// The description of a route. Both the server and the OpenAPI document are made from it.
import type { z } from 'zod';
import type { ErrorCode, ServiceError } from '../../base/errors.ts';
import type { TraceHeaders } from '../tracing/tracing.ts';
import type { Reply } from './reply.ts';

/**
 * When the auto family and the legacy face routes were deprecated: 2026-01-01, as a date of RFC
 * 9745.
 */
export const DEPRECATED_SINCE = '@1767225600';

/** Methods that a route can have. HEAD is served by GET, OPTIONS by the listener. */
export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The owner of the API key of a request. */
export interface Caller {
  readonly ownerId: string;
  readonly keyId: string;
  readonly keyName: string;
  /** Whether the key has the role of an operator, who sees the sessions of all owners. */
  readonly isOperator: boolean;
}

/** A validated request, as a handler gets it. */
export interface ApiRequest<Params = unknown, Query = unknown, Headers = unknown, Body = unknown> {
  /** The X-Request-Id of the reply; log lines of the request carry it. */
  readonly id: string;
  readonly method: HttpMethod;
  /** The path as sent, not percent-decoded. */
  readonly path: string;
  /**
   * Scheme and authority under which the client reached this server, for absolute links in replies.
   */
  readonly origin: string;
  readonly ip: string;
  /** Empty fields on routes with `auth: 'none'`. */
  readonly caller: Caller;
  /**
   * For routes with `auth: 'none'`: authenticates by a key that comes in the body or in a header of
   * its own. The limits of the client's address apply, and the audit line names the caller.
   * @throws ServiceError INVALID_API_KEY, RATE_LIMITED or STORE_UNAVAILABLE
   */
  authenticate(key: string): Promise<Caller>;
  readonly params: Params;
  readonly query: Query;
  readonly headers: Headers;
  readonly body: Body;
  /** A request header by its lower-case name, '' when absent. */
  header(name: string): string;
  /** For what the request causes; undefined: it is not traced. */
  readonly trace: TraceHeaders | undefined;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
}

/** An uploaded file of a multipart form. */
export interface MultipartFile {
  readonly field: string;
  readonly fileName: string;
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

/**
 * Parses a large body off the main thread. The parser owns the chunks and may transfer them.
 * @throws ValidationError
 */
export type BodyParser = (chunks: readonly Uint8Array<ArrayBuffer>[]) => Promise<unknown>;

/** The body that a route takes. */
export type BodySpec<Body extends z.ZodType> =
  | {
      readonly kind: 'json';
      readonly schema: Body;
      readonly limitBytes: number;
      readonly example?: unknown;
      readonly parse?: BodyParser;
    }
  | { readonly kind: 'multipart'; readonly schema: Body; readonly limitBytes: number }
  /** Text in UTF-8. */
  | {
      readonly kind: 'text';
      readonly mediaType: string;
      readonly schema: Body;
      readonly limitBytes: number;
      readonly example?: string;
    };

/** A response of a route, for the OpenAPI document. */
export interface ResponseSpec {
  readonly description: string;
  /** Schema of a JSON body. Absent: no body, or a body of `contentType`. */
  readonly schema?: z.ZodType;
  readonly contentType?: string;
}

/** Everything about one route. */
export interface RouteSpec<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Headers extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
> {
  readonly method: HttpMethod;
  /** An OpenAPI path template such as `/auto/agent/{id}`. A parameter is a whole segment. */
  readonly path: string;
  readonly summary: string;
  readonly tag: string;
  /**
   * 'key': needs an API key and counts against its rate. 'operator': the key must have that role.
   * 'none': open, or checked by the handler.
   */
  readonly auth: 'key' | 'operator' | 'none';
  readonly params?: Params;
  readonly query?: Query;
  readonly headers?: Headers;
  readonly body?: BodySpec<Body>;
  /**
   * By status. The document adds the common errors (401, 413, 415, 422, 429, 500) where they apply.
   */
  readonly responses: Readonly<Record<number, ResponseSpec>>;
  /** Error codes that this route itself can give, for the document. */
  readonly refusals?: readonly ErrorCode[];
  readonly deprecated?: boolean;
  /** Path of the route that replaces this deprecated one. */
  readonly successor?: string;
  /**
   * Deprecated paths, matched case-insensitively. Their replies carry Deprecation and Link headers.
   */
  readonly aliases?: readonly { readonly method: HttpMethod; readonly path: string }[];
  /** Fields added to the Error object, for clients that expect more than `error` and `code`. */
  readonly refusalFields?: (error: ServiceError) => Record<string, unknown>;
  /**
   * Status of the reply to a server failure, instead of 5xx, for clients that do not retry after
   * 5xx.
   */
  readonly failureStatus?: number;
  /** What an audit line says of each request that succeeds: face.delete, for example. */
  readonly audit?: string;
  /** Label of the route in metrics; default: its path. */
  readonly metricLabel?: string;
  /** Time limit of the handler, after which the client gets INTERNAL_ERROR; default: 15 s. */
  readonly timeoutMs?: number;
  readonly handler: (
    request: ApiRequest<z.output<Params>, z.output<Query>, z.output<Headers>, z.output<Body>>,
  ) => Reply | Promise<Reply>;
}

/** A route without its type parameters, as the router holds it. */
export type Route = Omit<RouteSpec, 'handler'> & {
  readonly handler: (request: ApiRequest) => Reply | Promise<Reply>;
};

/** Refusals of a wrong token, in the body or the query of a request. */
export const TOKEN_REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'INVALID_SESSION_TOKEN',
  'INVALID_ROOM_TOKEN',
]);

/** Whether the handler of a route checks a token itself. */
export const takesToken = ({ auth, refusals }: Route): boolean =>
  auth === 'none' && refusals?.some((code) => TOKEN_REFUSALS.has(code)) === true;

/** Declares a route: checks its types and drops its type parameters. */
export const route = <
  P extends z.ZodType,
  Q extends z.ZodType,
  H extends z.ZodType,
  B extends z.ZodType,
>(
  spec: RouteSpec<P, Q, H, B>,
): Route => spec as unknown as Route;

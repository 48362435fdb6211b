// What a route is: one entry of the table from which both serving and the OpenAPI document are made.
import type { z } from 'zod';
import type { ErrorCode, ServiceError } from '../../base/errors.ts';
import type { Reply } from './reply.ts';

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** Who asks, as found by the key in the request's header. */
export interface Caller {
  readonly ownerId: string;
  readonly keyId: string;
  readonly keyName: string;
}

export interface ApiRequest<Params = unknown, Query = unknown, Headers = unknown, Body = unknown> {
  /** Also in the reply's X-Request-Id and in the log. */
  readonly id: string;
  readonly method: HttpMethod;
  /** The path as asked for, undecoded. */
  readonly path: string;
  /** Scheme and authority under which the client reached this server, for absolute links in replies. */
  readonly origin: string;
  readonly ip: string;
  /** Set on routes with `auth: 'key'`, and only there. */
  readonly caller: Caller;
  readonly params: Params;
  readonly query: Query;
  readonly headers: Headers;
  readonly body: Body;
  /** Any header by its lower-case name, '' when absent. */
  header(name: string): string;
  /** Aborted when the client leaves or the handler's time is over. */
  readonly signal: AbortSignal;
}

export interface MultipartFile {
  readonly field: string;
  readonly fileName: string;
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

/** Parses a body elsewhere than on the main thread, for routes whose bodies are large. The chunks are its own. Rejects with ValidationError. */
export type BodyParser = (chunks: readonly Uint8Array<ArrayBuffer>[]) => Promise<unknown>;

export type BodySpec<Body extends z.ZodType> =
  | {
      readonly kind: 'json';
      readonly schema: Body;
      readonly limitBytes: number;
      readonly example?: unknown;
      readonly parse?: BodyParser;
    }
  | { readonly kind: 'multipart'; readonly schema: Body; readonly limitBytes: number };

export interface ResponseSpec {
  readonly description: string;
  /** Of a JSON body. Absent: no body, or one of `contentType`. */
  readonly schema?: z.ZodType;
  readonly contentType?: string;
}

export interface RouteSpec<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Headers extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
> {
  readonly method: HttpMethod;
  /** An OpenAPI path template: `/auto/agent/{id}`; a parameter fills a whole segment. */
  readonly path: string;
  readonly summary: string;
  readonly tag: string;
  /** 'key': the header with the API key, also counted against its rate. 'none': open, or authenticated by the handler. */
  readonly auth: 'key' | 'none';
  readonly params?: Params;
  readonly query?: Query;
  readonly headers?: Headers;
  readonly body?: BodySpec<Body>;
  /** By status. The errors every route can give (401, 413, 415, 422, 429, 500) are added where they apply. */
  readonly responses: Readonly<Record<number, ResponseSpec>>;
  /** Codes of refusals this route makes on its own, for the document. */
  readonly refusals?: readonly ErrorCode[];
  readonly deprecated?: boolean;
  /** Path of what to use in place of a deprecated route. */
  readonly successor?: string;
  /** Earlier names, matched without regard to case, answered with Deprecation and Link headers. */
  readonly aliases?: readonly { readonly method: HttpMethod; readonly path: string }[];
  /** Fields added to the Error object of a refusal, for clients that look for more than `error` and `code`. */
  readonly refusalFields?: (error: ServiceError) => Record<string, unknown>;
  /** Answers failures of ours with this status instead of 5xx, for clients that cannot bear one. */
  readonly failureStatus?: number;
  /** Under which label it is counted; its path unless told. */
  readonly metricLabel?: string;
  /** Milliseconds the handler may take before the client is told INTERNAL_ERROR; 15 s unless told. */
  readonly timeoutMs?: number;
  readonly handler: (
    request: ApiRequest<z.output<Params>, z.output<Query>, z.output<Headers>, z.output<Body>>,
  ) => Reply | Promise<Reply>;
}

/** A route with its types closed over, as the table holds it. */
export type Route = Omit<RouteSpec, 'handler'> & {
  readonly handler: (request: ApiRequest) => Reply | Promise<Reply>;
};

/** Checks a route's types where it is written, and forgets them for the table. */
export const route = <
  P extends z.ZodType,
  Q extends z.ZodType,
  H extends z.ZodType,
  B extends z.ZodType,
>(
  spec: RouteSpec<P, Q, H, B>,
): Route => spec as unknown as Route;

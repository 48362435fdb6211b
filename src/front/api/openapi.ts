// The OpenAPI 3.1 document, generated from the routes that serve the requests.
import { z } from 'zod';
import { ERRORS, type ErrorCode } from '../../base/errors.ts';
import { mediaTypeOf } from '../http/body.ts';
import { text } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { validationErrorSchema } from '../http/validate.ts';
import { errorSchema } from './field-schemas.ts';
import { asyncApiDocument } from './asyncapi.ts';
import { docsRoute, protocolRoute } from './docs.ts';

type Json = Record<string, unknown>;

/** Groups of routes, in the order of the page. */
const TAGS: Readonly<Record<string, string>> = {
  Compose: 'What a client asks before it opens the WebSocket of a live session.',
  Sessions: 'Sessions whose agent and viewer have a connection each, and WHEP.',
  'Static video': 'Videos of a face that speaks an audio sample.',
  Faces: 'Faces, made from one portrait each.',
  Accounting: 'History, limits and figures of sessions.',
  Auto: 'Conversations with an agent.',
  Integrations: 'Rooms of LiveKit.',
  Operation: 'Health, metrics and documents.',
};

/** Options of the document. */
export interface DocumentOptions {
  /** Version of the server. */
  readonly version: string;
  /** Name of the header that carries the API key. */
  readonly apiKeyHeader: string;
}

/** The routes of the documents. The API document describes `routes` and these. */
export function documentRoutes(routes: readonly Route[], options: DocumentOptions): Route[] {
  let document = '';
  const own: Route[] = [
    route({
      method: 'GET',
      path: '/openapi.json',
      tag: 'Operation',
      auth: 'none',
      summary: 'This document',
      responses: { 200: { description: 'OpenAPI 3.1.', contentType: 'application/json' } },
      handler: () => text('application/json; charset=utf-8', document),
    }),
    route({
      method: 'GET',
      path: '/asyncapi.json',
      tag: 'Operation',
      auth: 'none',
      summary: 'The document of the WebSockets of sessions',
      responses: { 200: { description: 'AsyncAPI 3.0.', contentType: 'application/json' } },
      handler: ({ origin }) =>
        text(
          'application/json; charset=utf-8',
          JSON.stringify(asyncApiDocument(options.version, origin)),
        ),
    }),
    docsRoute(),
    protocolRoute(),
  ];
  document = JSON.stringify(openApiDocument([...routes, ...own], options));
  return own;
}

/** The OpenAPI 3.1 document of `routes`, as JSON values. */
export function openApiDocument(
  routes: readonly Route[],
  { version, apiKeyHeader }: DocumentOptions,
): Json {
  const components = new Components();
  const paths: Record<string, Json> = {};
  for (const entry of routes) {
    (paths[entry.path] ??= {})[entry.method.toLowerCase()] = operation(entry, components);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Mouthpiece',
      version,
      description:
        'A real-time media server that turns streamed speech into a talking face over WebRTC. ' +
        'The WebSockets of live sessions are described at [/docs/protocol](/docs/protocol), and ' +
        'for programs at [/asyncapi.json](/asyncapi.json).',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    // Relative to the document: the server that the reader asks.
    servers: [{ url: '/', description: 'This server.' }],
    tags: Object.entries(TAGS)
      .filter(([name]) => routes.some(({ tag }) => tag === name))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: components.schemas,
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: apiKeyHeader } },
    },
  };
}

function operation(entry: Route, components: Components): Json {
  return {
    summary: entry.summary,
    description: descriptionOf(entry),
    tags: [entry.tag],
    operationId:
      entry.method.toLowerCase() +
      entry.path.replace(/[^a-z0-9]+(.)?/gi, (_all, next: string | undefined) =>
        (next ?? '').toUpperCase(),
      ),
    ...(entry.deprecated ? { deprecated: true } : {}),
    security:
      entry.auth !== 'none' ? [{ apiKey: [] }] : checksKeyItself(entry) ? [{ apiKey: [] }, {}] : [],
    parameters: [
      ...parameters(entry.params, 'path', components),
      ...parameters(entry.query, 'query', components),
      ...parameters(entry.headers, 'header', components),
    ],
    ...(entry.body ? { requestBody: requestBody(entry.body, components) } : {}),
    responses: responses(entry, components),
    ...(entry.aliases
      ? { 'x-earlier-names': entry.aliases.map(({ method, path }) => `${method} ${path}`) }
      : {}),
  };
}

/** The handler takes the key from the body too, or from headers of other services. */
const checksKeyItself = ({ auth, refusals }: Route): boolean =>
  auth === 'none' && refusals?.includes('INVALID_API_KEY') === true;

/** What a route asks for, and what replaces it. */
function descriptionOf(entry: Route): string {
  const { auth, successor } = entry;
  const needs =
    auth === 'operator'
      ? 'Needs an API key with the role of an operator.'
      : auth === 'key' || checksKeyItself(entry)
        ? 'Needs an API key.'
        : 'Needs no API key.';
  return successor === undefined ? needs : `${needs} Use ${successor} instead.`;
}

function parameters(
  schema: z.ZodType | undefined,
  place: 'path' | 'query' | 'header',
  components: Components,
): Json[] {
  if (!schema) {
    return [];
  }
  // A value is text; the document tells what it is read as. What has a default may be omitted.
  const { properties = {} } = components.inline(schema, 'output') as {
    properties?: Record<string, Json>;
  };
  const { required = [] } = components.inline(schema, 'input') as { required?: string[] };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    ...(description ? { description } : {}),
    schema: rest,
  }));
}

const requestBody = (body: NonNullable<Route['body']>, components: Components): Json => ({
  required: true,
  content: {
    [mediaTypeOf(body)]: {
      schema: components.inline(body.schema, 'input'),
      ...(body.kind !== 'multipart' && body.example !== undefined ? { example: body.example } : {}),
    },
  },
});

/** The responses of the route itself, and the errors that every request of its kind can get. */
function responses(entry: Route, components: Components): Json {
  const out: Record<string, Json> = {};
  for (const [status, { description, schema, contentType }] of Object.entries(entry.responses)) {
    out[status] = {
      description,
      ...(schema
        ? { content: { 'application/json': { schema: components.use(schema) } } }
        : contentType
          ? { content: { [contentType]: {} } }
          : {}),
    };
  }
  const codes: ErrorCode[] = [
    ...(entry.refusals ?? []),
    'RATE_LIMITED',
    ...(entry.auth === 'none' ? [] : (['INVALID_API_KEY', 'STORE_UNAVAILABLE'] as const)),
    ...(entry.auth === 'operator' ? (['OPERATOR_REQUIRED'] as const) : []),
    ...(entry.body
      ? ([
          'BODY_TOO_LARGE',
          'UNSUPPORTED_MEDIA_TYPE',
          'REQUEST_TIMEOUT',
          'TOO_MANY_CONNECTIONS',
        ] as const)
      : []),
    'INTERNAL_ERROR',
  ];
  const { failureStatus } = entry;
  const byStatus = Map.groupBy(codes, (code) => {
    const { status } = ERRORS[code];
    return failureStatus !== undefined && status >= 500 ? failureStatus : status;
  });
  for (const [status, group] of byStatus) {
    const named = [...new Set(group)].map((code) => `${code}: ${ERRORS[code].message}`).join(' ');
    const own = out[status];
    out[status] = own
      ? { ...own, description: `${String(own['description'])} ${named}` }
      : {
          description: named,
          content: { 'application/json': { schema: components.use(errorSchema) } },
        };
  }
  if (entry.params || entry.query || entry.headers || entry.body) {
    out['422'] ??= {
      description: 'All invalid fields.',
      content: { 'application/json': { schema: components.use(validationErrorSchema) } },
    };
  }
  return out;
}

/** Makes JSON Schemas. Those with an id are kept once, under components. */
class Components {
  readonly schemas: Record<string, Json> = {};

  use(schema: z.ZodType): Json {
    const made = this.inline(schema, 'output');
    const id = schema.meta()?.id;
    if (id === undefined) {
      return made;
    }
    this.schemas[id] ??= made;
    return { $ref: `#/components/schemas/${id}` };
  }

  inline(schema: z.ZodType, io: 'input' | 'output'): Json {
    const {
      $schema: _dialect,
      $defs = {},
      id: _id,
      ...made
    } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json & {
      $defs?: Record<string, Json>;
    };
    for (const [name, { id: _own, ...definition }] of Object.entries($defs)) {
      this.schemas[name] ??= retarget(definition) as Json;
    }
    return retarget(made) as Json;
  }
}

/** Rewrites the references of a single schema into references of the document. */
function retarget(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(retarget);
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      if (name === '$ref' && typeof inner === 'string') {
        return [name, inner.replace('#/$defs/', '#/components/schemas/')];
      }
      return [name, retarget(inner)];
    }),
  );
}

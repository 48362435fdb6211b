// GET /cluster/nodes and GET /cluster/sessions: the servers that share a Redis, for operators.
import { z } from 'zod';
import { SESSION_KINDS } from '../../base/session-kinds.ts';
import type { NodeRegistry } from '../cluster/node-registry.ts';
import { listSessions } from '../cluster/session-directory.ts';
import { json } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { idText } from './field-schemas.ts';

const node = z
  .object({
    id: z.string(),
    host: z.string().meta({ description: 'Name of its machine.' }),
    url: z.string().meta({ description: 'Where the other servers reach it.' }),
    mediaAddresses: z.array(z.string()).meta({ description: 'The addresses of its candidates.' }),
    version: z.string(),
    region: z.string(),
    startTime: z.int().meta({ description: 'Unix seconds.' }),
    workers: z.int(),
    kinds: z.array(z.enum(SESSION_KINDS)),
    models: z.array(z.string()),
    room: z.int().meta({ description: 'Sessions that it would still take.' }),
    sessions: z.int(),
    load: z.number().meta({ description: 'Share of its core that the busiest worker uses.' }),
    draining: z.boolean(),
    seenMs: z.int().meta({ description: 'Time since its last heartbeat.' }),
  })
  .meta({ id: 'ClusterNode' });

const session = z
  .object({
    id: z.string(),
    node: z.string(),
    owner: z.string(),
    keyId: z.string(),
    keyName: z.string(),
    faceId: z.string(),
    kind: z.enum(SESSION_KINDS),
    endUserAggregator: z.string().optional(),
    startTime: z.int().meta({ description: 'Unix seconds.' }),
  })
  .meta({ id: 'ClusterSession' });

const sessionsQuery = z.object({
  node: idText.optional().meta({ description: 'Only of this server.' }),
  owner: idText.optional().meta({ description: 'Only of this owner.' }),
  key: idText.optional().meta({ description: 'Only of the API key with this id.' }),
  face: idText.optional().meta({ description: 'Only with this face.' }),
  kind: z.enum(SESSION_KINDS).optional().meta({ description: 'Only of this kind.' }),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(1000)
    .default(100)
    .meta({ description: 'Sessions of a page.' }),
  after: z
    .string()
    .max(200)
    .regex(/\//)
    .optional()
    .meta({ description: '`next` of the page before.' }),
});

/** Routes of the cluster. */
export const clusterRoutes = (registry: NodeRegistry): Route[] => [
  route({
    method: 'GET',
    path: '/cluster/nodes',
    tag: 'Operation',
    auth: 'operator',
    summary: 'All live servers that share this Redis',
    responses: {
      200: {
        description: 'The servers, by id. One that died is gone within six seconds.',
        schema: z.object({ nodes: z.array(node) }),
      },
    },
    async handler() {
      const nodes = await registry.nodes();
      return json(
        {
          nodes: nodes.map(({ startedAtMs, isDraining, ...rest }) => ({
            ...rest,
            startTime: Math.floor(startedAtMs / 1000),
            draining: isDraining,
          })),
        },
        200,
        { 'cache-control': 'no-store' },
      );
    },
  }),
  route({
    method: 'GET',
    path: '/cluster/sessions',
    tag: 'Operation',
    auth: 'operator',
    summary: 'Live sessions of all servers, in pages',
    query: sessionsQuery,
    responses: {
      200: {
        description:
          'The sessions, by server and id. `next` is there while there are more: a page may be ' +
          'short, or empty, before the end.',
        schema: z.object({ sessions: z.array(session), next: z.string().optional() }),
      },
    },
    async handler({ query }) {
      const { node: nodeId, owner: ownerId, key: keyId, face: faceId, kind, limit, after } = query;
      const page = await listSessions(
        registry,
        { nodeId, ownerId, keyId, faceId, kind },
        limit,
        after,
      );
      return json(
        {
          sessions: page.sessions.map((found) => ({
            id: found.id,
            node: found.nodeId,
            owner: found.ownerId,
            keyId: found.keyId,
            keyName: found.keyName,
            faceId: found.faceId,
            kind: found.kind,
            ...(found.aggregator === null ? {} : { endUserAggregator: found.aggregator }),
            startTime: Math.floor(found.startMs / 1000),
          })),
          ...(page.next === undefined ? {} : { next: page.next }),
        },
        200,
        { 'cache-control': 'no-store' },
      );
    },
  }),
];

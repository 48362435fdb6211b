// What operators and probes ask: health, readiness, metrics.
import { z } from 'zod';
import { json, text } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';

export interface SystemDeps {
  /** Each answers whether its part can serve; all must, for the server to be ready. */
  readonly readiness: Readonly<Record<string, () => boolean | Promise<boolean>>>;
  /** Sessions that may still come: 0 on a full server, which is ready all the same, since those that run go on and may come back. */
  readonly room: () => number;
  /** The Prometheus exposition text. */
  readonly metrics: (
    accept: string,
  ) => Promise<{ readonly contentType: string; readonly body: string }>;
}

const readiness = z.object({
  ready: z.boolean(),
  full: z.boolean().meta({ description: 'No worker has room for another session.' }),
  room: z
    .int()
    .meta({ description: 'Sessions that the workers would still take, by their present cost.' }),
  checks: z.record(z.string(), z.boolean()),
});
const readinessQuery = z.object({
  full: z.enum(['503']).optional().meta({
    description:
      '503: answer 503 when there is no room, for balancers that look at the status alone.',
  }),
});

export const systemRoutes = (deps: SystemDeps): Route[] => [
  route({
    method: 'GET',
    path: '/healthz',
    tag: 'Operation',
    auth: 'none',
    summary: 'The process answers',
    responses: { 200: { description: 'Alive.', schema: z.object({ status: z.literal('ok') }) } },
    handler: () => json({ status: 'ok' }, 200, { 'cache-control': 'no-store' }),
  }),
  route({
    method: 'GET',
    path: '/readyz',
    tag: 'Operation',
    auth: 'none',
    summary: 'The server can take new sessions',
    query: readinessQuery,
    responses: {
      200: { description: 'Ready; `full` says whether there is room.', schema: readiness },
      503: {
        description: 'Not ready; `checks` says which part. With `full=503` also: full.',
        schema: readiness,
      },
    },
    async handler({ query }) {
      const checks = Object.fromEntries(
        await Promise.all(
          Object.entries(deps.readiness).map(
            async ([name, ask]) => [name, await answer(ask)] as const,
          ),
        ),
      );
      const ready = Object.values(checks).every(Boolean);
      const room = ready ? deps.room() : 0;
      const full = room === 0;
      return json(
        { ready, full, room, checks },
        ready && !(full && query.full === '503') ? 200 : 503,
        { 'cache-control': 'no-store' },
      );
    },
  }),
  route({
    method: 'GET',
    path: '/metrics',
    tag: 'Operation',
    auth: 'none',
    summary: 'Metrics for Prometheus',
    responses: { 200: { description: 'Exposition format 0.0.4.', contentType: 'text/plain' } },
    async handler(request) {
      const { contentType, body } = await deps.metrics(request.header('accept'));
      return text(contentType, body);
    },
  }),
];

async function answer(ask: () => boolean | Promise<boolean>): Promise<boolean> {
  try {
    return await ask();
  } catch {
    return false;
  }
}

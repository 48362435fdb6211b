// Routes for operators and probes: health, readiness, metrics.
import { z } from 'zod';
import { json, text } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';

/** What these routes need. */
export interface SystemDeps {
  /** Checks by name. The server is ready when all are true; one that throws counts as false. */
  readonly readiness: Readonly<Record<string, () => boolean | Promise<boolean>>>;
  /** Whether the storage of faces and videos works: sessions with known faces go on without it. */
  readonly storage: () => boolean;
  /**
   * Sessions that still fit. A full server (0) stays ready: its sessions continue, and their
   * clients may connect again.
   */
  readonly room: () => number;
  /** The metrics in the format that the Accept header asks for. */
  readonly metrics: (
    accept: string,
  ) => Promise<{ readonly contentType: string; readonly body: string }>;
}

const readiness = z.object({
  ready: z.boolean(),
  full: z.boolean().meta({ description: 'No worker has room for another session.' }),
  room: z.int().meta({ description: 'Sessions that still fit, by the present cost of a session.' }),
  checks: z.record(z.string(), z.boolean()).meta({
    description:
      'Parts of the server. `storage` alone does not make it unready: all servers share it, and ' +
      'sessions with default faces, and with faces that were used here lately, go on without it.',
  }),
});
const readinessQuery = z.object({
  full: z.enum(['503']).optional().meta({
    description:
      '503: status 503 when there is no room, for load balancers that read only the status.',
  }),
  storage: z.enum(['503']).optional().meta({
    description: '503: status 503 while the storage of faces and videos fails.',
  }),
});

/** Routes of health, readiness and metrics. */
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
        description:
          'Not ready; `checks` says which part. With `full=503` also: full; with `storage=503`: no storage.',
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
      const storage = deps.storage();
      const room = ready ? deps.room() : 0;
      const full = room === 0;
      return json(
        { ready, full, room, checks: { ...checks, storage } },
        ready && !(full && query.full === '503') && (storage || query.storage !== '503')
          ? 200
          : 503,
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

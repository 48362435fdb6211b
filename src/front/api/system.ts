// What operators and probes ask: health, readiness, metrics.
import { z } from 'zod';
import { json, text } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';

export interface SystemDeps {
  /** Each answers whether its part can serve; all must, for the server to be ready. */
  readonly readiness: Readonly<Record<string, () => boolean | Promise<boolean>>>;
  /** The Prometheus exposition text. */
  readonly metrics: (accept: string) => Promise<{ readonly contentType: string; readonly body: string }>;
}

const readiness = z.object({ ready: z.boolean(), checks: z.record(z.string(), z.boolean()) });

export const systemRoutes = (deps: SystemDeps): Route[] => [
  route({
    method: 'GET', path: '/healthz', tag: 'Operation', auth: 'none', summary: 'The process answers',
    responses: { 200: { description: 'Alive.', schema: z.object({ status: z.literal('ok') }) } },
    handler: () => json({ status: 'ok' }, 200, { 'cache-control': 'no-store' }),
  }),
  route({
    method: 'GET', path: '/readyz', tag: 'Operation', auth: 'none', summary: 'The server can take new sessions',
    responses: { 200: { description: 'Ready.', schema: readiness }, 503: { description: 'Not ready; `checks` says which part.', schema: readiness } },
    async handler() {
      const checks = Object.fromEntries(await Promise.all(Object.entries(deps.readiness).map(async ([name, ask]) => [name, await answer(ask)] as const)));
      const ready = Object.values(checks).every(Boolean);
      return json({ ready, checks }, ready ? 200 : 503, { 'cache-control': 'no-store' });
    },
  }),
  route({
    method: 'GET', path: '/metrics', tag: 'Operation', auth: 'none', summary: 'Metrics for Prometheus',
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

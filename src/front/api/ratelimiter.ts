// GET /ratelimiter/sessions: the number of live sessions of an API key.
import { z } from 'zod';
import { json } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import type { SessionQuota } from '../sessions/session-quota.ts';

/** The route of the session count. */
export const rateLimiterRoutes = (quota: SessionQuota): Route[] => [
  route({
    method: 'GET',
    path: '/ratelimiter/sessions',
    tag: 'Accounting',
    auth: 'key',
    summary: 'Live sessions of this API key, on all servers',
    responses: {
      200: { description: 'The number.', schema: z.object({ currentUsage: z.int().min(0) }) },
    },
    handler: async ({ caller }) =>
      json({ currentUsage: await quota.usage(caller.keyId) }, 200, { 'cache-control': 'no-store' }),
  }),
];

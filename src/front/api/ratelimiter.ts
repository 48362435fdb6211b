// GET /ratelimiter/sessions: how many sessions the key holds now.
import { z } from 'zod';
import { json } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import type { SessionQuota } from '../sessions/session-quota.ts';

export const rateLimiterRoutes = (quota: SessionQuota): Route[] => [
  route({
    method: 'GET',
    path: '/ratelimiter/sessions',
    tag: 'Accounting',
    auth: 'key',
    summary: 'Sessions this API key has now, on all servers',
    responses: {
      200: { description: 'The number.', schema: z.object({ currentUsage: z.int().min(0) }) },
    },
    handler: async ({ caller }) =>
      json({ currentUsage: await quota.usage(caller.keyId) }, 200, { 'cache-control': 'no-store' }),
  }),
];

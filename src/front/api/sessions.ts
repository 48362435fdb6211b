// GET /sessions/{id}/stats: a live session's own ledger, for its owner.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { json } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { idText } from './field-schemas.ts';

const quantiles = z.object({ p50: z.number(), p99: z.number() });

const sessionStats = z
  .object({
    sessionId: z.string(),
    codec: z.string(),
    state: z.enum(['connecting', 'idle', 'speaking']),
    framesSent: z.number(),
    framesSkipped: z.number(),
    frameLatenessMs: quantiles.meta({
      description: 'From the moment a frame was due to its last packet leaving.',
    }),
    audioToLipsMs: quantiles.extend({ last: z.number() }).meta({
      description: 'From the arrival of an utterance to the first frame made of it leaving.',
    }),
    stageMs: z
      .object({
        drain: z.number(),
        features: z.number(),
        inference: z.number(),
        render: z.number(),
        encode: z.number(),
        packetize: z.number(),
        send: z.number(),
      })
      .meta({ description: 'Of one frame, smoothed over about a second.' }),
    bufferedAudioMs: z.number(),
    underruns: z.number(),
    bitrateKbps: z.number(),
    targetBitrateKbps: z.number(),
    roundTripMs: z.number(),
    packetsLost: z.number(),
    nacks: z.number(),
    keyFrames: z.number(),
  })
  .meta({ id: 'SessionStats', description: 'Times in milliseconds, over the last seconds.' });

/** @param stats undefined or null: no such live session of this owner on this server */
export const sessionRoutes = (
  stats: (ownerId: string, sessionId: string) => Promise<object | null>,
): Route[] => [
  route({
    method: 'GET',
    path: '/sessions/{id}/stats',
    tag: 'Operation',
    auth: 'key',
    summary: 'Latency and quality of one live session',
    params: z.object({ id: idText }),
    responses: { 200: { description: 'Its ledger.', schema: sessionStats } },
    refusals: ['NOT_FOUND'],
    async handler({ caller, params }) {
      const found = await stats(caller.ownerId, params.id);
      if (found === null) {
        throw new ServiceError('NOT_FOUND', 'No live session of yours has this id on this server.');
      }
      return json(found, 200, { 'cache-control': 'no-store' });
    },
  }),
];

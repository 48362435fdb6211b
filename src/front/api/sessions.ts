// GET /sessions/{id}/stats: latency and quality of a live session, for its owner.
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
      description: 'From the time at which a frame was due until its last packet was sent.',
    }),
    audioToLipsMs: quantiles.extend({ last: z.number() }).meta({
      description: 'From the arrival of an utterance until its first frame was sent.',
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
      .meta({ description: 'Time of each stage for one frame, smoothed over about one second.' }),
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

/** @param stats returns null when this server has no such live session of the owner */
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
    responses: { 200: { description: 'Its statistics.', schema: sessionStats } },
    refusals: ['NOT_FOUND'],
    async handler({ caller, params }) {
      const found = await stats(caller.ownerId, params.id);
      if (found === null) {
        throw new ServiceError(
          'NOT_FOUND',
          'You have no live session with this id on this server. Ask the server that runs the session.',
        );
      }
      return json(found, 200, { 'cache-control': 'no-store' });
    },
  }),
];

// Figures and end of one live session, for its owner and for operators, asked of any server.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { askNode, FORWARDED_HEADER, type NodeAnswer, unreachable } from '../cluster/ask-node.ts';
import type { NodeRegistry } from '../cluster/node-registry.ts';
import { nodeOf } from '../cluster/session-directory.ts';
import { empty, json } from '../http/reply.ts';
import { type ApiRequest, type Caller, route, type Route } from '../http/route.ts';
import type { LiveSession } from '../sessions/live-session.ts';
import { idOf } from './field-schemas.ts';
import { keyOf } from './request-key.ts';

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

/** The live sessions of one server. */
export interface LocalSessions {
  /** @param ownerId undefined: of anybody */
  find(
    ownerId: string | undefined,
    sessionId: string,
  ): Pick<LiveSession, 'stats' | 'end'> | undefined;
}

/** What these routes need. */
export interface SessionDeps {
  /** The live sessions of this server. */
  readonly sessions: LocalSessions;
  readonly registry: NodeRegistry;
  /** Id of this server. */
  readonly nodeId: string;
  /** Lower-case names of the headers that may carry the API key. */
  readonly apiKeyHeaders: readonly string[];
  readonly log: Logger;
}

/** Routes of single live sessions, on whichever server they run. */
export function sessionRoutes(deps: SessionDeps): Route[] {
  const { sessions, registry, nodeId, apiKeyHeaders, log } = deps;
  const family = {
    tag: 'Operation',
    auth: 'key',
    params: z.object({ id: idOf('a session', '3f0c2b9e-7a51-4d0e-9f57-0a4c1de08b11') }),
  } as const;
  const refusals = ['NOT_FOUND', 'NODE_UNREACHABLE'] as const;

  /**
   * The answer of the server that runs the session.
   * @throws ServiceError NOT_FOUND when none does, or it is not the caller's
   */
  async function askOther(
    method: 'GET' | 'DELETE',
    request: Pick<ApiRequest, 'header'>,
    sessionId: string,
    path: string,
  ): Promise<NodeAnswer> {
    const node =
      request.header(FORWARDED_HEADER) === '' ? await nodeOf(registry, sessionId) : undefined;
    if (node === undefined || node.id === nodeId) {
      throw new ServiceError('NOT_FOUND', 'You have no live session with this id.');
    }
    const headers = { [apiKeyHeaders[0]!]: keyOf(request, apiKeyHeaders) };
    const answer = await askNode(node, method, path, headers, log);
    if (answer.status === 404) {
      throw new ServiceError('NOT_FOUND', 'You have no live session with this id.');
    }
    if (answer.status >= 300) {
      throw unreachable(node, new Error(`it answered ${answer.status}`), log);
    }
    return answer;
  }

  return [
    route({
      ...family,
      method: 'GET',
      path: '/sessions/{id}/stats',
      summary: 'Latency and quality of one live session',
      responses: { 200: { description: 'Its statistics.', schema: sessionStats } },
      refusals,
      async handler(request) {
        const { caller, params } = request;
        const found =
          (await sessions.find(ownerOf(caller), params.id)?.stats()) ??
          (
            await askOther(
              'GET',
              request,
              params.id,
              `/sessions/${encodeURIComponent(params.id)}/stats`,
            )
          ).body;
        return json(found, 200, { 'cache-control': 'no-store' });
      },
    }),
    route({
      ...family,
      method: 'DELETE',
      path: '/sessions/{id}',
      audit: 'session.delete',
      summary: 'End a live session',
      responses: { 204: { description: 'It is over; its client was told STOP deleted.' } },
      refusals,
      async handler(request) {
        const { caller, params } = request;
        const session = sessions.find(ownerOf(caller), params.id);
        session?.end('deleted');
        if (session === undefined) {
          await askOther(
            'DELETE',
            request,
            params.id,
            `/sessions/${encodeURIComponent(params.id)}`,
          );
        }
        return empty(204);
      },
    }),
  ];
}

/** Whose sessions a caller may see: undefined, everybody's. */
const ownerOf = ({ isOperator, ownerId }: Caller): string | undefined =>
  isOperator ? undefined : ownerId;

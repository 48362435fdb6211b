// WHEP (draft-ietf-wish-whep): a viewer watches a session of POST /sessions over HTTP.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import type { Forwarder } from '../cluster/forwarder.ts';
import { empty, type Reply, text } from '../http/reply.ts';
import { type ApiRequest, route, type Route } from '../http/route.ts';
import type { SplitSessions } from '../legs/split-sessions.ts';
import { type IceServer, withCredentials } from '../sessions/ice-credentials.ts';
import { idOf, KIB } from './field-schemas.ts';

/** What these routes need. */
export interface WhepDeps {
  readonly splits: Pick<SplitSessions, 'watched' | 'find'>;
  readonly forwarder: Pick<Forwarder, 'toSession'>;
  readonly iceServers: readonly IceServer[];
  readonly turnSecret: string | undefined;
}

const sessionId = idOf('a session', '3f0c2b9e-7a51-4d0e-9f57-0a4c1de08b11');
const OFFER_EXAMPLE = 'v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n…';
const FRAGMENT_EXAMPLE = 'a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n…';

/** The headers Link of an answer (RFC 8288): the ICE servers. */
const linkOf = (servers: readonly IceServer[]): string =>
  servers
    .map(({ urls, username, credential }) =>
      [
        `<${urls}>; rel="ice-server"`,
        ...(username === undefined ? [] : [`username="${username}"`]),
        ...(credential === undefined
          ? []
          : [`credential="${credential}"`, 'credential-type="password"']),
      ].join('; '),
    )
    .join(', ');

const sdpReply = (
  contentType: string,
  sdp: string,
  status: number,
  headers: Record<string, string>,
): Reply => ({ ...text(contentType, sdp, status), headers });

/** The token of a viewer: a bearer token, or the one in the URL. */
const tokenOf = (request: Pick<ApiRequest, 'header'>, inQuery: string): string =>
  /^Bearer +(\S+)$/i.exec(request.header('authorization'))?.[1] ?? inQuery;

const queryOf = (token: string): string =>
  token === '' ? '' : `?${new URLSearchParams({ token }).toString()}`;

/** Routes of viewers. */
export function whepRoutes({ splits, forwarder, iceServers, turnSecret }: WhepDeps): Route[] {
  /**
   * Answers here, or with what the server that runs the session answers.
   * @throws ServiceError
   */
  async function atSession(
    received: ApiRequest<{ id: string }>,
    act: () => Promise<Reply>,
    query = '',
  ): Promise<Reply> {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'NOT_FOUND') {
        throw error;
      }
      const { params, body } = received;
      const reply = await forwarder.toSession(params.id, {
        received,
        query,
        headers: ['authorization', 'content-type', 'if-match'],
        ...(typeof body === 'string' && { body }),
      });
      if (reply === undefined) {
        throw error;
      }
      return reply;
    }
  }
  const family = { tag: 'Sessions', auth: 'none' } as const;
  const peer = z.object({
    id: sessionId,
    peer: idOf('the connection, from the header Location', 'c1'),
  });
  return [
    route({
      ...family,
      method: 'POST',
      path: '/sessions/{id}/whep',
      summary: 'Watch a session (WHEP)',
      params: z.object({ id: sessionId }),
      query: z.object({
        token: z.string().max(256).default('').meta({
          description: 'The token of the viewer. It may also come as a bearer token.',
        }),
      }),
      body: {
        kind: 'text',
        mediaType: 'application/sdp',
        schema: z.string(),
        limitBytes: 64 * KIB,
        example: OFFER_EXAMPLE,
      },
      responses: {
        201: {
          description:
            'The answer. Location is the URL of the peer connection, ETag its ICE session, Link ' +
            'the ICE servers. A viewer that watched before gives way to this one.',
          contentType: 'application/sdp',
        },
      },
      refusals: [
        'INVALID_SESSION_TOKEN',
        'INVALID_OFFER',
        'NOT_FOUND',
        'WORKER_LOST',
        'NODE_UNREACHABLE',
      ],
      handler: (request) =>
        atSession(
          request,
          async () => {
            const { params, query, body } = request;
            const { session, viewer } = splits.watched(params.id, tokenOf(request, query.token));
            const { id, etag, sdp } = await viewer.watch(body);
            const servers = iceServers.map((server) =>
              withCredentials(server, turnSecret, session.id),
            );
            return sdpReply('application/sdp', sdp, 201, {
              location: `/sessions/${session.id}/whep/${id}`,
              etag,
              link: linkOf(servers),
              'accept-patch': 'application/trickle-ice-sdpfrag',
              'cache-control': 'no-store',
            });
          },
          queryOf(request.query.token),
        ),
    }),
    route({
      ...family,
      method: 'PATCH',
      path: '/sessions/{id}/whep/{peer}',
      summary: 'ICE candidates of a viewer, or a restart of ICE (WHEP)',
      params: peer,
      body: {
        kind: 'text',
        mediaType: 'application/trickle-ice-sdpfrag',
        schema: z.string(),
        limitBytes: 16 * KIB,
        example: FRAGMENT_EXAMPLE,
      },
      responses: {
        200: {
          description: 'ICE was restarted: credentials and candidates, and the new ETag.',
          contentType: 'application/trickle-ice-sdpfrag',
        },
        204: { description: 'The candidates were taken.' },
      },
      refusals: [
        'NOT_FOUND',
        'VIEWER_REPLACED',
        'PRECONDITION_FAILED',
        'PRECONDITION_REQUIRED',
        'INVALID_OFFER',
        'WORKER_LOST',
        'NODE_UNREACHABLE',
      ],
      handler: (request) =>
        atSession(request, async () => {
          const { params, body } = request;
          const { viewer } = splits.find(params.id);
          const restarted = await viewer.patch(params.peer, body, request.header('if-match'));
          return restarted === undefined
            ? empty(204)
            : sdpReply('application/trickle-ice-sdpfrag', restarted.sdp, 200, {
                etag: restarted.etag,
              });
        }),
    }),
    route({
      ...family,
      method: 'DELETE',
      path: '/sessions/{id}/whep/{peer}',
      summary: 'Stop watching (WHEP)',
      params: peer,
      responses: { 200: { description: 'The peer connection is closed. The session waits.' } },
      refusals: ['NOT_FOUND', 'VIEWER_REPLACED', 'NODE_UNREACHABLE'],
      handler: (request) =>
        atSession(request, async () => {
          const { params } = request;
          splits.find(params.id).viewer.stop(params.peer);
          return empty(200);
        }),
    }),
  ];
}

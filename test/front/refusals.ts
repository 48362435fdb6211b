// Requests that a real server refuses, each with the status and code of its refusal.

/** What one of them needs of the server. */
export interface Given {
  /** A session of POST /sessions, with nobody connected to it. */
  readonly sessionId: string;
  readonly viewerToken: string;
  /** An agent, in version 1. */
  readonly agentId: string;
  readonly autoToken: string;
}

/** As fetch takes it. */
type Init = Omit<RequestInit, 'headers'> & { readonly headers?: Record<string, string> };

export interface RefusedRequest {
  /** As the document names it. */
  readonly operation: string;
  readonly path: string;
  readonly init?: Init;
  readonly status: number;
  /** Undefined: the body has a list of the fields that are wrong. */
  readonly code: string | undefined;
}

const body = (
  method: string,
  text: string,
  type = 'application/json',
  headers: Record<string, string> = {},
): Init => ({ method, body: text, headers: { 'content-type': type, ...headers } });
const post = (value: unknown): Init => body('POST', JSON.stringify(value));
const WRONG_KEY: Init = { headers: { 'x-service-api-key': 'wrong' } };

/** A refused request; `target` is the operation, or its path and query where that has parameters. */
const refused = (
  status: number,
  code: string | undefined,
  operation: string,
  init?: Init,
  target = operation.split(' ')[1]!,
): RefusedRequest => ({ operation, path: target, status, code, ...(init && { init }) });

const tokenRefusals = (): RefusedRequest[] => {
  const operation = 'POST /compose/token';
  const all = [
    refused(400, 'INVALID_FACE_ID', operation, post({ faceId: 'nobody' })),
    refused(400, 'INVALID_EMOTION', operation, post({ faceId: 'ava/furious' })),
    refused(422, 'VALIDATION_FAILED', operation, post({})),
    refused(422, 'VALIDATION_FAILED', operation, body('POST', '{')),
    refused(415, 'UNSUPPORTED_MEDIA_TYPE', operation, body('POST', 'ava', 'text/plain')),
    refused(413, 'BODY_TOO_LARGE', operation, post({ faceId: 'a'.repeat(1 << 17) })),
  ];
  const withWrongKey = body('POST', '{}', 'application/json', { 'x-service-api-key': 'wrong' });
  return [...all, refused(401, 'INVALID_API_KEY', operation, withWrongKey)];
};

const legRefusals = ({ sessionId, viewerToken }: Given): RefusedRequest[] => {
  const whep = 'POST /sessions/{id}/whep';
  const peer = 'PATCH /sessions/{id}/whep/{peer}';
  const path = `/sessions/${sessionId}/whep`;
  const withToken = `${path}?token=${viewerToken}`;
  const fragment = 'application/trickle-ice-sdpfrag';
  return [
    refused(400, 'INVALID_FACE_ID', 'POST /sessions', post({ faceId: 'nobody' })),
    refused(400, 'INVALID_EMOTION', 'POST /sessions', post({ faceId: 'ava/furious' })),
    refused(422, undefined, 'POST /sessions', post({ faceId: 'ava', graceSeconds: -1 })),
    refused(401, 'INVALID_SESSION_TOKEN', whep, body('POST', 'v=0', 'application/sdp'), path),
    refused(400, 'INVALID_OFFER', whep, body('POST', 'v=0', 'application/sdp'), withToken),
    refused(415, 'UNSUPPORTED_MEDIA_TYPE', whep, body('POST', 'v=0', 'text/plain'), withToken),
    refused(404, 'NOT_FOUND', peer, body('PATCH', 'a=x', fragment), `${path}/nobody`),
    refused(404, 'NOT_FOUND', 'GET /sessions/{id}/stats', {}, '/sessions/nobody/stats'),
  ];
};

const faceRefusals = (): RefusedRequest[] => {
  const noPicture = new FormData();
  noPicture.set('image', new Blob(['no picture']), 'face.jpg');
  const preview = 'GET /faces/{face_id}/preview';
  const beyond = { headers: { range: 'bytes=99999999-' } };
  return [
    refused(401, 'INVALID_API_KEY', 'GET /faces', WRONG_KEY),
    refused(422, undefined, 'POST /faces', { method: 'POST', body: noPicture }),
    refused(404, 'NOT_FOUND', 'GET /faces/{face_id}', {}, '/faces/nobody'),
    refused(404, 'NOT_FOUND', preview, {}, '/faces/nobody/preview'),
    refused(416, 'RANGE_NOT_SATISFIABLE', preview, beyond, '/faces/ava/preview'),
    refused(404, 'NOT_FOUND', 'GET /static/status', {}, '/static/status?id=nobody'),
    refused(
      400,
      'INVALID_FACE_ID',
      'POST /static/audio',
      post({ faceId: 'nobody', audioBase64: 'AAAA' }),
    ),
  ];
};

const autoRefusals = ({ agentId, autoToken }: Given): RefusedRequest[] => {
  const put = 'PUT /auto/agent/{id}';
  const start = 'POST /auto/start/{agent_id}';
  const configurable = 'POST /auto/start/configurable';
  const older = body('PUT', '{"face_id":"ava"}', 'application/json', { 'if-match': '"77"' });
  const withToken = (token: string): Init => ({
    method: 'POST',
    headers: { 'session-token': token },
  });
  const secret = post({ secret: 'wrong' });
  return [
    refused(401, 'INVALID_API_KEY', 'POST /auto/token', {
      ...post({}),
      headers: { 'content-type': 'application/json', 'x-service-api-key': 'wrong' },
    }),
    refused(404, 'NOT_FOUND', 'GET /auto/agent/{id}', {}, '/auto/agent/nobody'),
    refused(412, 'PRECONDITION_FAILED', put, older, `/auto/agent/${agentId}`),
    refused(400, 'INVALID_EMOTION', configurable, post({ faceId: 'ava/furious' })),
    refused(401, 'INVALID_SESSION_TOKEN', start, withToken('wrong'), `/auto/start/${agentId}`),
    refused(404, 'NOT_FOUND', start, withToken(autoToken), '/auto/start/nobody'),
    refused(404, 'ROOM_CLOSED', 'POST /auto/room/{id}/join', secret, '/auto/room/nobody/join'),
  ];
};

const roomRefusals = (): RefusedRequest[] => {
  const agents = 'POST /integrations/livekit/agents';
  const request = { session_token: 'wrong', livekit_token: 'a', livekit_url: 'wss://a.example' };
  return [
    refused(401, 'INVALID_ROOM_TOKEN', 'GET /rtc/v1/validate'),
    refused(401, 'INVALID_SESSION_TOKEN', agents, post(request)),
    refused(422, undefined, agents, post({})),
  ];
};

/** All of them, one of each kind. */
export const refusals = (given: Given): RefusedRequest[] => [
  ...tokenRefusals(),
  ...legRefusals(given),
  ...faceRefusals(),
  ...autoRefusals(given),
  ...roomRefusals(),
];

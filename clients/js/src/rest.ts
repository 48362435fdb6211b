// Calls of the REST API: tokens, ICE servers, and anything else by its path.

/** An error response of the REST API. */
export class RequestError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = 'RequestError';
    this.status = status;
    this.code = code;
  }
}

/** Which service, and with which key. */
export interface ServiceOptions {
  /** Address of the service; default: the origin of the page. */
  readonly baseUrl?: string;
  /** Never on a page that others see: whoever has it can use your account. */
  readonly apiKey?: string;
  /** Header of the key; default: x-service-api-key. */
  readonly apiKeyHeader?: string;
  readonly signal?: AbortSignal;
}

/** Options of a request. */
export interface RequestOptions extends ServiceOptions {
  /** Default: POST with a body, else GET. */
  readonly method?: string;
  /** A JSON body. */
  readonly json?: unknown;
  /** Any other body. */
  readonly body?: BodyInit;
}

/** The body of POST /compose/token. */
export interface TokenOptions extends ServiceOptions {
  /** A face id, or `faceId/emotionId`. */
  readonly faceId: string;
  /** true (default): idle video continues when the audio ends. false: the picture freezes. */
  readonly handleSilence?: boolean;
  /** Seconds, a hard limit. */
  readonly maxSessionLength?: number;
  /** Seconds without speech. */
  readonly maxIdleTime?: number;
  /** Format of the speech: 16 kHz mono PCM16 (default), or Opus packets. */
  readonly audioInputFormat?: 'pcm16' | 'opus';
  /** Groups the sessions of one end user in the history. */
  readonly sessionAggregator?: string;
  /** Name of a renderer. */
  readonly model?: string;
}

interface ErrorBody {
  readonly error?: string;
  readonly code?: string;
  readonly detail?: string | readonly { readonly loc: string[]; readonly msg: string }[];
}

/** The address of a path of the service. */
export const addressOf = (path: string, baseUrl = location.origin): URL => new URL(path, baseUrl);

/**
 * Calls the REST API.
 * @param path begins with a slash
 * @returns the JSON body; null when there is none
 * @throws RequestError
 */
export async function request<Answer = any>(
  path: string,
  options: RequestOptions = {},
): Promise<Answer> {
  const { baseUrl, apiKey, method, json, body, signal } = options;
  const headers: Record<string, string> = {};
  if (apiKey) {
    headers[options.apiKeyHeader ?? 'x-service-api-key'] = apiKey;
  }
  if (json !== undefined) {
    headers['content-type'] = 'application/json';
  }
  let response: Response;
  try {
    response = await fetch(addressOf(path, baseUrl), {
      method: method ?? (json !== undefined || body ? 'POST' : 'GET'),
      headers,
      body: json === undefined ? (body ?? null) : JSON.stringify(json),
      signal: signal ?? null,
    });
  } catch (error) {
    if (signal?.aborted) {
      throw error;
    }
    throw new RequestError(0, 'UNREACHABLE', 'The server does not answer.');
  }
  const text = await response.text();
  let answer: unknown = null;
  try {
    answer = text === '' ? null : JSON.parse(text);
  } catch {
    // not JSON: the status decides
  }
  if (response.ok) {
    return answer as Answer;
  }
  throw errorOf(response.status, answer ?? {});
}

/** An error body is {session_token, detail: code}, {detail: [{loc, msg}]} or {error, code}. */
function errorOf(status: number, { error, code, detail }: ErrorBody): RequestError {
  if (typeof detail === 'object') {
    const problems = detail.map(
      ({ loc, msg }) => `${loc.slice(1).join('.') || String(loc[0])}: ${msg}`,
    );
    return new RequestError(status, 'VALIDATION_FAILED', problems.join('; '));
  }
  const told = code ?? detail ?? `HTTP_${status}`;
  return new RequestError(status, told, error ?? told);
}

/** Creates a session token. Do this on your own server: the API key must not reach a browser. */
export async function createToken(options: TokenOptions & { apiKey: string }): Promise<string> {
  const { baseUrl, apiKey, apiKeyHeader, signal, ...json } = options;
  const service = { baseUrl, apiKey, apiKeyHeader, signal } as ServiceOptions;
  return (await request<{ session_token: string }>('/compose/token', { ...service, json }))
    .session_token;
}

/** The ICE servers of the service, for `connect`. */
export const getIceServers = (
  options: ServiceOptions & { apiKey: string },
): Promise<RTCIceServer[]> => request<RTCIceServer[]>('/compose/ice', options);

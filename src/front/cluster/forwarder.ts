// Requests that another server answers: about a session that it runs, or for a session for which
// there is no room here.
import { toWireError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { ApiRequest } from '../http/route.ts';
import type { Reply } from '../http/reply.ts';
import { FORWARDED_HEADER, unreachable } from './ask-node.ts';
import { exchange } from './exchange.ts';
import type { NodeRecord } from './node-record.ts';
import type { NodeRegistry } from './node-registry.ts';
import type { RoomiestNodes } from './roomiest-nodes.ts';
import { nodeOf } from './session-directory.ts';

/** What is passed on of a request. */
export interface ForwardedRequest {
  readonly received: Pick<
    ApiRequest,
    'method' | 'path' | 'origin' | 'ip' | 'header' | 'trace' | 'signal'
  >;
  /** Query with its question mark, or ''. */
  readonly query?: string;
  /** Names of headers of the request that the other server needs. */
  readonly headers: readonly string[];
  readonly body?: string;
}

/** Options of Forwarder. */
export interface ForwarderOptions {
  readonly registry: Pick<NodeRegistry, 'find' | 'nodeIdOf'>;
  readonly nodes: Pick<RoomiestNodes, 'next'>;
  /** Id of this server. */
  readonly nodeId: string;
  readonly log: Logger;
}

/** Other servers that are asked for room. */
const MAX_TRIES = 3;
/** Less than the 15 s after which a route gives up: joining a LiveKit room takes seconds. */
const TIMEOUT_MS = 13_000;
/** Headers of the other server's answer that the client gets. */
const REPLY_HEADERS = ['location', 'etag', 'link', 'accept-patch', 'cache-control', 'retry-after'];
/** Refusals of one server: another one may have room. */
const OF_ONE_SERVER: ReadonlySet<unknown> = new Set(['SERVER_OVERLOADED', 'SERVER_DRAINING']);

/** Passes requests on to other servers. A request is passed on once. */
export class Forwarder {
  readonly #options: ForwarderOptions;

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /**
   * The answer of the server that runs a session.
   * @returns undefined: no other server does
   * @throws ServiceError NODE_UNREACHABLE, STORE_UNAVAILABLE
   */
  async toSession(sessionId: string, request: ForwardedRequest): Promise<Reply | undefined> {
    if (isForwarded(request)) {
      return undefined;
    }
    const { registry, nodeId } = this.#options;
    const node = await nodeOf(registry, sessionId);
    return node === undefined || node.id === nodeId ? undefined : await this.#ask(node, request);
  }

  /**
   * Does `act` here, or has it done by a server with room when this one is full or drains.
   * @throws ServiceError of `act` when no other server takes it
   */
  async withRoom(request: ForwardedRequest, act: () => Promise<Reply>): Promise<Reply> {
    try {
      return await act();
    } catch (error) {
      const canPassOn = OF_ONE_SERVER.has(toWireError(error).code) && !isForwarded(request);
      const reply = canPassOn ? await this.#toRoom(request) : undefined;
      if (reply === undefined) {
        throw error;
      }
      return reply;
    }
  }

  async #toRoom(request: ForwardedRequest): Promise<Reply | undefined> {
    const { nodes } = this.#options;
    const tried = new Set<string>();
    while (tried.size < MAX_TRIES) {
      const node = await nodes.next(tried).catch(() => undefined);
      if (node === undefined) {
        return undefined;
      }
      tried.add(node.id);
      const reply = await this.#ask(node, request).catch(() => undefined);
      if (reply !== undefined && !isFull(reply)) {
        return reply;
      }
    }
    return undefined;
  }

  /** @throws ServiceError NODE_UNREACHABLE */
  async #ask(node: NodeRecord, request: ForwardedRequest): Promise<Reply> {
    const { received, query = '', body } = request;
    const { protocol, host } = new URL(received.origin);
    const headers: Record<string, string> = {
      [FORWARDED_HEADER]: '1',
      // As the client reached this server: links for it must lead here.
      host,
      'x-forwarded-proto': protocol.slice(0, -1),
      'x-forwarded-for': received.ip,
      ...received.trace,
    };
    for (const name of request.headers) {
      const value = received.header(name);
      if (value !== '') {
        headers[name] = value;
      }
    }
    try {
      const answer = await exchange(`${node.url}${received.path}${query}`, {
        method: received.method,
        headers,
        body,
        signal: AbortSignal.any([received.signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      return {
        status: answer.status,
        headers: Object.fromEntries(
          REPLY_HEADERS.flatMap((name) => {
            const value = answer.headers[name];
            return value === undefined ? [] : [[name, String(value)]];
          }),
        ),
        ...(answer.body !== '' && {
          body: {
            kind: 'text',
            contentType: answer.headers['content-type'] ?? 'application/octet-stream',
            text: answer.body,
          },
        }),
      };
    } catch (error) {
      throw unreachable(node, error, this.#options.log);
    }
  }
}

const isForwarded = ({ received }: ForwardedRequest): boolean =>
  received.header(FORWARDED_HEADER) !== '';

/** Whether a server refused a request because of its own load. */
function isFull({ status, body }: Reply): boolean {
  if (status < 400 || body?.kind !== 'text') {
    return false;
  }
  try {
    return OF_ONE_SERVER.has((JSON.parse(body.text) as { code?: unknown }).code);
  } catch {
    return false;
  }
}

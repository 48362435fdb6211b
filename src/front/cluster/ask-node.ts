// A request to another server, with the API key of the caller: the server that runs a session
// answers for it.
import { ServiceError } from '../../base/errors.ts';
import { after } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import type { NodeRecord } from './node-record.ts';

/**
 * Tells the other server to answer by itself. A client that sends it gets the answer of the server
 * that it asked, and nothing else.
 */
export const FORWARDED_HEADER = 'x-mouthpiece-forwarded';
const TIMEOUT_MS = 3000;

/** The answer of another server. */
export interface NodeAnswer {
  readonly status: number;
  /** Parsed JSON; undefined: there was none. */
  readonly body: unknown;
}

/** The error for a client whose request went to `node`. The log says which server that is. */
export function unreachable(
  node: Pick<NodeRecord, 'id' | 'url'>,
  error: unknown,
  log: Logger,
): ServiceError {
  log.warn({ err: error, node: node.id, url: node.url }, 'another server did not answer');
  return Object.assign(new ServiceError('NODE_UNREACHABLE'), { cause: error });
}

/**
 * Asks another server.
 * @param target path and query
 * @throws ServiceError NODE_UNREACHABLE
 */
export async function askNode(
  node: Pick<NodeRecord, 'id' | 'url'>,
  method: 'GET' | 'DELETE',
  target: string,
  headers: Readonly<Record<string, string>>,
  log: Logger,
): Promise<NodeAnswer> {
  const abort = new AbortController();
  const timer = after(TIMEOUT_MS, 'the wait for another server', () => {
    abort.abort();
  });
  try {
    const reply = await fetch(`${node.url}${target}`, {
      method,
      headers: { ...headers, [FORWARDED_HEADER]: '1' },
      redirect: 'error',
      signal: abort.signal,
    });
    const text = await reply.text();
    return { status: reply.status, body: text === '' ? undefined : JSON.parse(text) };
  } catch (error) {
    throw unreachable(node, error, log);
  } finally {
    clearTimeout(timer);
  }
}

// Live sessions of all servers: their list in pages, and the server that runs one.
import type { NodeRecord, NodeSession } from './node-record.ts';
import type { NodeRegistry } from './node-registry.ts';

/** Which sessions are listed; undefined: any. */
export interface SessionFilter {
  readonly nodeId: string | undefined;
  readonly ownerId: string | undefined;
  readonly keyId: string | undefined;
  readonly faceId: string | undefined;
  readonly kind: string | undefined;
}

/** A session and its server. */
export interface ListedSession extends NodeSession {
  readonly nodeId: string;
}

/** A page of sessions. */
export interface SessionPage {
  readonly sessions: readonly ListedSession[];
  /** Where the next page begins; undefined: this was the last one. */
  readonly next: string | undefined;
}

/** Servers that one page is gathered from at most: a filter may fit few sessions. */
const MAX_NODES_READ = 100;

const matches = (session: NodeSession, filter: SessionFilter): boolean =>
  (filter.ownerId ?? session.ownerId) === session.ownerId &&
  (filter.keyId ?? session.keyId) === session.keyId &&
  (filter.faceId ?? session.faceId) === session.faceId &&
  (filter.kind ?? session.kind) === session.kind;

/**
 * Reads a page, in the order of servers and of sessions by their ids.
 * @param after where the last page ended
 */
export async function listSessions(
  registry: Pick<NodeRegistry, 'nodes' | 'sessionsOf'>,
  filter: SessionFilter,
  limit: number,
  after = '/',
): Promise<SessionPage> {
  const slash = after.indexOf('/');
  const [afterNode, afterSession] = [after.slice(0, slash), after.slice(slash + 1)];
  const nodes = (await registry.nodes()).filter(
    ({ id }) => id >= afterNode && (filter.nodeId ?? id) === id,
  );
  const sessions: ListedSession[] = [];
  for (const [index, node] of nodes.entries()) {
    if (index === MAX_NODES_READ) {
      return { sessions, next: `${node.id}/` };
    }
    for (const session of await registry.sessionsOf(node.id)) {
      if ((node.id === afterNode && session.id <= afterSession) || !matches(session, filter)) {
        continue;
      }
      if (sessions.length === limit) {
        const last = sessions.at(-1)!;
        return { sessions, next: `${last.nodeId}/${last.id}` };
      }
      sessions.push({ ...session, nodeId: node.id });
    }
  }
  return { sessions, next: undefined };
}

/** The server that runs a session; undefined: none does. */
export async function nodeOf(
  registry: Pick<NodeRegistry, 'find' | 'nodeIdOf'>,
  sessionId: string,
): Promise<NodeRecord | undefined> {
  const nodeId = await registry.nodeIdOf(sessionId);
  return nodeId === undefined ? undefined : await registry.find(nodeId);
}

// The servers that share a Redis, and the live sessions of each, in Redis.
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import {
  ANNOUNCE_NODE,
  FORGET_NODE,
  LIST_NODES,
  REPLACE_HASH,
  ROOMIEST_NODES,
} from '../store/cluster-scripts.ts';
import type { NodeRecord, NodeSession, SeenNode } from './node-record.ts';

/**
 * A server without a heartbeat for this long is dead. Four heartbeats: a pause of the garbage
 * collector or a slow Redis is not a death.
 */
export const DEAD_AFTER_MS = 4000;
/** Another server clears up when this one has not done so by then. */
const CLEARING_LEASE_MS = 5000;
/** Sessions in one command. */
const BATCH = 500;

/** What a heartbeat brings back. */
export interface Announced {
  /**
   * The process that announced itself under this id before; '' for none, or when this server was
   * taken for dead.
   */
  readonly previousRun: string;
  /** Live servers, this one among them. */
  readonly live: number;
  /** Dead servers that this one must clear up after. */
  readonly dead: readonly string[];
}

/** Reads and writes the servers and their sessions. */
export class NodeRegistry {
  readonly #store: RedisStore;

  constructor(store: RedisStore) {
    this.#store = store;
  }

  /**
   * A heartbeat.
   * @param runId of this process
   * @param isJudge whether this server may find others dead
   */
  async announce(record: NodeRecord, runId: string, isJudge: boolean): Promise<Announced> {
    const [previousRun, live, ...dead] = (await this.#store.run(
      ANNOUNCE_NODE,
      [keys.nodeBeats(), keys.nodeRooms(), keys.nodeRecords(), keys.nodeClearing()],
      [
        record.id,
        runId,
        JSON.stringify(record),
        record.isDraining ? 0 : record.room,
        DEAD_AFTER_MS,
        isJudge ? 1 : 0,
        CLEARING_LEASE_MS,
      ],
    )) as [string, number, ...string[]];
    return { previousRun, live, dead };
  }

  /** Removes a dead server. @returns false when it lives again */
  async forgetDead(id: string): Promise<boolean> {
    return await this.#forget(id, DEAD_AFTER_MS);
  }

  /** Removes this server, which stops. */
  async leave(id: string): Promise<void> {
    await this.#forget(id, 0);
  }

  async #forget(id: string, afterMs: number): Promise<boolean> {
    const removed = await this.#store.run(
      FORGET_NODE,
      [keys.nodeBeats(), keys.nodeRooms(), keys.nodeRecords(), keys.nodeClearing()],
      [id, afterMs],
    );
    return removed === 1;
  }

  /** All live servers, by id. */
  async nodes(): Promise<SeenNode[]> {
    const found = (await this.#store.run(
      LIST_NODES,
      [keys.nodeBeats(), keys.nodeRecords()],
      [DEAD_AFTER_MS],
    )) as (string | number)[];
    const nodes: SeenNode[] = [];
    for (let i = 0; i + 1 < found.length; i += 2) {
      const record = JSON.parse(String(found[i])) as NodeRecord;
      nodes.push({ ...record, seenMs: Number(found[i + 1]) });
    }
    return nodes.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Live servers with room, first the one with the most. */
  async roomiest(atMost: number): Promise<NodeRecord[]> {
    const found = (await this.#store.run(
      ROOMIEST_NODES,
      [keys.nodeRooms(), keys.nodeBeats(), keys.nodeRecords()],
      [atMost, DEAD_AFTER_MS],
    )) as string[];
    return found.map((record) => JSON.parse(record) as NodeRecord);
  }

  /** One server, whenever its last heartbeat was; undefined: it stopped, or was found dead. */
  async find(id: string): Promise<NodeRecord | undefined> {
    const record = await this.#store.use((client) => client.hget(keys.nodeRecords(), id));
    return record === null ? undefined : (JSON.parse(record) as NodeRecord);
  }

  /** The server that runs a session, by the journal; undefined: there is no such live session. */
  async nodeIdOf(sessionId: string): Promise<string | undefined> {
    const record = await this.#store.use((client) => client.hget(keys.journalRecords(), sessionId));
    return record === null ? undefined : (JSON.parse(record) as { serverId: string }).serverId;
  }

  async addSession(nodeId: string, session: NodeSession): Promise<void> {
    await this.#store.use((client) =>
      client.hset(keys.nodeSessions(nodeId), session.id, JSON.stringify(session)),
    );
  }

  async removeSession(nodeId: string, sessionId: string): Promise<void> {
    await this.#store.use((client) => client.hdel(keys.nodeSessions(nodeId), sessionId));
  }

  /** Replaces all sessions of a server. */
  async replaceSessions(nodeId: string, sessions: readonly NodeSession[]): Promise<void> {
    const fields = sessions.flatMap((session) => [session.id, JSON.stringify(session)]);
    const first = fields.slice(0, BATCH * 2);
    await this.#store.run(REPLACE_HASH, [keys.nodeSessions(nodeId)], first);
    for (let at = first.length; at < fields.length; at += BATCH * 2) {
      await this.#store.use((client) =>
        client.hset(keys.nodeSessions(nodeId), ...fields.slice(at, at + BATCH * 2)),
      );
    }
  }

  /** The sessions of a server, by id. */
  async sessionsOf(nodeId: string): Promise<NodeSession[]> {
    const found = await this.#store.use((client) => client.hvals(keys.nodeSessions(nodeId)));
    return found
      .map((text) => JSON.parse(text) as NodeSession)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async removeSessions(nodeId: string): Promise<void> {
    await this.#store.use((client) => client.del(keys.nodeSessions(nodeId)));
  }
}

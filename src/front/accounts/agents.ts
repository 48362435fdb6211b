// The agents of an owner: JSON records in one hash. Compare-and-swap prevents lost updates.
import { ServiceError } from '../../base/errors.ts';
import { newUuid } from '../../base/ids.ts';
import { nextSlice } from '../../base/slices.ts';
import { wallMs } from '../../base/time.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import { CREATE_AGENT, REPLACE_AGENT } from '../store/scripts.ts';

/** Fields of an agent that the server sets. */
export interface AgentMeta {
  readonly id: string;
  readonly owner_id: string;
  /** ISO 8601. */
  readonly created_at: string;
  readonly updated_at: string;
  /** Number of changes; the ETag of the agent. */
  readonly version: number;
}

/** Agents of one owner. */
const MAX_AGENTS = 1000;
/** Agents that are read at a time. The largest, 192 KiB each, take 13 ms (measured). */
const PAGE_AGENTS = 8;
/** Attempts of an update while other requests change the same agent. */
const MAX_UPDATE_ATTEMPTS = 20;

/** Stores agents. `Fields` are those that the owner sets. */
export class Agents<Fields extends object> {
  readonly #store: RedisStore;

  constructor(store: RedisStore) {
    this.#store = store;
  }

  /** @throws ServiceError CONFLICT at the limit of agents */
  async create(ownerId: string, fields: Fields): Promise<Fields & AgentMeta> {
    const now = new Date(wallMs()).toISOString();
    const record = {
      ...fields,
      id: newUuid(),
      owner_id: ownerId,
      created_at: now,
      updated_at: now,
      version: 1,
    };
    const created = await this.#store.run(
      CREATE_AGENT,
      [keys.agents(ownerId)],
      [record.id, JSON.stringify(record), MAX_AGENTS],
    );
    if (created !== 1) {
      throw new ServiceError(
        'CONFLICT',
        `You have ${MAX_AGENTS} agents, which is the limit. Delete one first.`,
      );
    }
    return record;
  }

  /** Undefined when the owner has no such agent. */
  async find(ownerId: string, id: string): Promise<(Fields & AgentMeta) | undefined> {
    const text = await this.#store.use((client) => client.hget(keys.agents(ownerId), id));
    return text === null ? undefined : (JSON.parse(text) as Fields & AgentMeta);
  }

  /**
   * All agents of an owner in pages, the oldest first. The times are read first, then the agents in
   * order: all agents together may have 200 MB, which would block the thread for 1.6 s (measured).
   * An agent that is deleted meanwhile is left out.
   */
  async *pages(ownerId: string): AsyncGenerator<(Fields & AgentMeta)[]> {
    const order: { readonly id: string; readonly created_at: string }[] = [];
    const ids = await this.#store.use((client) => client.hkeys(keys.agents(ownerId)));
    for (const page of pagesOf(ids)) {
      for (const { id, created_at } of await this.#read(ownerId, page)) {
        order.push({ id, created_at });
      }
    }
    order.sort((a, b) => a.created_at.localeCompare(b.created_at) || a.id.localeCompare(b.id));
    for (const page of pagesOf(order.map(({ id }) => id))) {
      yield await this.#read(ownerId, page);
    }
  }

  async #read(ownerId: string, ids: readonly string[]): Promise<(Fields & AgentMeta)[]> {
    const texts = await this.#store.use((client) => client.hmget(keys.agents(ownerId), ...ids));
    await nextSlice();
    return texts
      .filter((text) => text !== null)
      .map((text) => JSON.parse(text) as Fields & AgentMeta);
  }

  /**
   * Changes the given fields.
   * @param ifVersion change the agent only if it still has this version
   * @returns undefined when there is no such agent
   * @throws ServiceError PRECONDITION_FAILED, CONFLICT
   */
  async update(
    ownerId: string,
    id: string,
    change: Partial<Fields>,
    ifVersion: number | undefined,
  ): Promise<(Fields & AgentMeta) | undefined> {
    for (let attempt = 0; attempt < MAX_UPDATE_ATTEMPTS; attempt++) {
      const text = await this.#store.use((client) => client.hget(keys.agents(ownerId), id));
      if (text === null) {
        return undefined;
      }
      const current = JSON.parse(text) as Fields & AgentMeta;
      if (ifVersion !== undefined && current.version !== ifVersion) {
        throw new ServiceError('PRECONDITION_FAILED');
      }
      const next = {
        ...current,
        ...change,
        updated_at: laterThan(current.updated_at),
        version: current.version + 1,
      };
      const outcome = await this.#store.run(
        REPLACE_AGENT,
        [keys.agents(ownerId)],
        [id, text, JSON.stringify(next)],
      );
      if (outcome === 1) {
        return next;
      }
      if (outcome === -1) {
        return undefined;
      }
    }
    throw new ServiceError('CONFLICT');
  }

  /** Returns false when there is no such agent. */
  async delete(ownerId: string, id: string): Promise<boolean> {
    return (await this.#store.use((client) => client.hdel(keys.agents(ownerId), id))) === 1;
  }
}

/**
 * The present time, but at least 1 ms after `previous`: updated_at never goes back, whatever the
 * clocks.
 */
const laterThan = (previous: string): string =>
  new Date(Math.max(wallMs(), Date.parse(previous) + 1)).toISOString();

function* pagesOf(ids: readonly string[]): Generator<readonly string[]> {
  for (let at = 0; at < ids.length; at += PAGE_AGENTS) {
    yield ids.slice(at, at + PAGE_AGENTS);
  }
}

// This server among those that share its Redis: its heartbeat, its sessions as the others see them,
// and what it frees when another one dies.
import { every } from '../../base/guard.ts';
import { newUuid } from '../../base/ids.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs } from '../../base/time.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { SessionJournal } from '../sessions/session-ports.ts';
import type { SessionQuota } from '../sessions/session-quota.ts';
import type { SessionTokens } from '../sessions/session-tokens.ts';
import type { RedisStore } from '../store/redis.ts';
import type { NodeFigures, NodeRecord, NodeSession } from './node-record.ts';
import { DEAD_AFTER_MS, NodeRegistry } from './node-registry.ts';

/** How often a server announces itself. */
const BEAT_MS = 1000;
/**
 * A server finds others dead only when its own heartbeats have gone through for so long. After an
 * outage of Redis every last heartbeat is old, those of the living too.
 */
const JUDGE_AFTER_MS = DEAD_AFTER_MS + 2 * BEAT_MS;
/** Sessions of a dead server whose slots and claims are freed at a time. */
const CLEARING_BATCH = 100;

/**
 * A server that was taken for dead writes its sessions again, several times: the other server may
 * still be removing them.
 */
const REWRITES = 5;

/** What is said of this server at each heartbeat besides its figures. */
export type NodeFacts = Omit<NodeRecord, keyof NodeFigures>;

/** Options of Cluster. */
export interface ClusterOptions {
  readonly store: RedisStore;
  readonly tokens: Pick<SessionTokens, 'releaseHashed'>;
  readonly quota: Pick<SessionQuota, 'release'>;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** The start of a session, as the session service tells it. */
type SessionStart = Parameters<SessionJournal['begin']>[0];

/** This server among the others. */
export class Cluster {
  readonly id: string;
  readonly registry: NodeRegistry;
  readonly #options: ClusterOptions;
  /** Of this process: tells two servers that were given one id. */
  readonly #runId = newUuid();
  readonly #sessions = new Map<string, NodeSession>();
  readonly #counters: Readonly<Record<'lost' | 'freed', { add(amount?: number): void }>>;
  #facts: NodeFacts | undefined = undefined;
  #figures: () => NodeFigures = () => ({ room: 0, sessions: 0, load: 0, isDraining: true });
  #timer: NodeJS.Timeout | undefined = undefined;
  #stopListening: () => void = () => {};
  readonly #onDeath: ((nodeId: string) => Promise<void>)[] = [];
  #steadySinceMs: number | undefined = undefined;
  #beating: Promise<void> | undefined = undefined;
  #live = 1;
  #hasBeaten = false;
  /** Heartbeats that still have to write the sessions again. */
  #rewrites = 0;

  constructor(id: string, options: ClusterOptions) {
    this.id = id;
    this.#options = options;
    this.registry = new NodeRegistry(options.store);
    const { metrics } = options;
    this.#counters = {
      lost: metrics.counter('mouthpiece_cluster_nodes_lost_total'),
      freed: metrics.counter('mouthpiece_cluster_sessions_freed_total'),
    };
    const nodes = metrics.gauge('mouthpiece_cluster_nodes');
    metrics.onScrape(() => {
      nodes.set(this.#live);
    });
  }

  /**
   * Frees what the last run of this server left behind. Call it before the first session.
   * @throws ServiceError STORE_UNAVAILABLE
   */
  async clearOwn(): Promise<void> {
    await this.#free(this.id);
  }

  /** Announces this server from now on. */
  async join(facts: NodeFacts, figures: () => NodeFigures): Promise<void> {
    this.#facts = facts;
    this.#figures = figures;
    this.#timer = every(BEAT_MS, 'the heartbeat of this server', () => this.beat());
    this.#timer.unref();
    this.#stopListening = this.#options.store.onReady(() => void this.#rewrite());
    await this.beat();
  }

  /** The record of this server. @throws Error before `join` */
  get self(): NodeRecord {
    if (this.#facts === undefined) {
      throw new Error('this server has not joined the cluster yet');
    }
    return { ...this.#facts, ...this.#figures() };
  }

  /**
   * Calls `listener` with the id of each dead server that this one clears up after. When it rejects,
   * some server clears up once more.
   */
  onDeath(listener: (nodeId: string) => Promise<void>): void {
    this.#onDeath.push(listener);
  }

  /** One heartbeat, unless the last one still runs. Never rejects. */
  beat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  /** Adds what the cluster must know of a session to `journal`. */
  journal(journal: SessionJournal): SessionJournal {
    return {
      begin: async (start) => {
        await Promise.all([journal.begin(start), this.#begin(start)]);
      },
      end: async (sessionId) => {
        await Promise.all([journal.end(sessionId), this.#end(sessionId)]);
      },
    };
  }

  /** Leaves the cluster: the others know at once that this server is gone. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopListening();
    await this.#beating;
    await this.registry.leave(this.id).catch(() => {});
  }

  async #beat(): Promise<void> {
    const nowMs = monotonicMs();
    const isJudge =
      this.#steadySinceMs !== undefined && nowMs - this.#steadySinceMs >= JUDGE_AFTER_MS;
    let announced;
    try {
      announced = await this.registry.announce(this.self, this.#runId, isJudge);
    } catch {
      this.#steadySinceMs = undefined; // the store logs its outage
      return;
    }
    this.#steadySinceMs ??= nowMs;
    this.#live = announced.live;
    const { previousRun } = announced;
    if (this.#hasBeaten && previousRun !== this.#runId) {
      if (previousRun === '') {
        this.#rewrites = REWRITES;
      } else {
        this.#options.log.error(
          { node: this.id },
          'another server announces itself under the id of this one: give each its own DATA_DIR',
        );
      }
    }
    this.#hasBeaten = true;
    if (this.#rewrites > 0) {
      this.#rewrites--;
      await this.#rewrite();
    }
    for (const id of announced.dead) {
      await this.#clear(id);
    }
  }

  /** Clears up after a dead server. */
  async #clear(id: string): Promise<void> {
    const { log } = this.#options;
    try {
      const sessions = await this.#free(id);
      await Promise.all(this.#onDeath.map((listener) => listener(id)));
      if (await this.registry.forgetDead(id)) {
        this.#counters.lost.add();
        log.warn(
          { node: id, sessions },
          'a server died: the tokens and quota slots of its sessions are free again',
        );
      }
    } catch (error) {
      log.warn({ err: error, node: id }, 'clearing up after a dead server will be tried again');
    }
  }

  /** Frees the claims and slots of all sessions of a server that is dead. @returns how many */
  async #free(nodeId: string): Promise<number> {
    const { tokens, quota } = this.#options;
    const sessions = await this.registry.sessionsOf(nodeId);
    for (let at = 0; at < sessions.length; at += CLEARING_BATCH) {
      await Promise.all(
        sessions
          .slice(at, at + CLEARING_BATCH)
          .flatMap(({ id, keyId, tokenHash }) => [
            tokens.releaseHashed(tokenHash, id),
            quota.release(keyId, id),
          ]),
      );
    }
    await this.registry.removeSessions(nodeId);
    this.#counters.freed.add(sessions.length);
    return sessions.length;
  }

  /** Never rejects: `#rewrite` makes up for it when Redis is back. */
  async #begin(start: SessionStart): Promise<void> {
    const { tokenId: _token, ...session } = start;
    this.#sessions.set(session.id, session);
    await this.registry.addSession(this.id, session).catch(() => {});
  }

  async #end(sessionId: string): Promise<void> {
    if (this.#sessions.delete(sessionId)) {
      await this.registry.removeSession(this.id, sessionId).catch(() => {});
    }
  }

  async #rewrite(): Promise<void> {
    await this.registry.replaceSessions(this.id, [...this.#sessions.values()]).catch(() => {});
  }
}

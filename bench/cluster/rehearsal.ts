// A cluster of simulated servers on a real Redis, at the rate of real ones: what it costs Redis, how
// long it takes to place a session meanwhile, and until the death of a server is known and its
// tokens can be used elsewhere.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { hashSecret, newUuid } from '../../src/base/ids.ts';
import { wallMs } from '../../src/base/time.ts';
import { NodeRegistry } from '../../src/front/cluster/node-registry.ts';
import { SessionQuota } from '../../src/front/sessions/session-quota.ts';
import { type SessionGrant, SessionTokens } from '../../src/front/sessions/session-tokens.ts';
import { keys } from '../../src/front/store/keys.ts';
import type { RedisStore } from '../../src/front/store/redis.ts';
import { ProgramProcess } from '../child-process.ts';
import type { ServersAnswers, ServersCommand, ServersFigures } from './protocol.ts';
import { BEATS, type BeatName, type Digests, SCRIPTS, tokenOf } from './simulated-server.ts';

const PROGRAM = path.join(import.meta.dirname, 'servers-process.ts');
const TOKEN_TTL_SECONDS = 3600;
/** How often each way of placing a session is tried. */
const PLACE_EVERY_MS = 50;

class ServersProcess extends ProgramProcess<ServersCommand> {
  constructor() {
    super('a process of simulated servers', PROGRAM);
  }

  override async ask<O extends ServersCommand['op']>(
    command: Extract<ServersCommand, { op: O }>,
  ): Promise<ServersAnswers[O]> {
    return (await super.ask(command)) as ServersAnswers[O];
  }
}

export interface RehearsalOptions {
  readonly port: number;
  readonly servers: number;
  /** Of each server. */
  readonly sessions: number;
  /** Before anything is counted: at least a period of everything that is sent. */
  readonly warmUpSeconds: number;
  readonly seconds: number;
  readonly processes: number;
}

export interface Rehearsal {
  readonly seconds: number;
  readonly commandsPerSecond: number;
  /** How often each was sent, a second. */
  readonly perSecond: Readonly<Record<BeatName, number>>;
  readonly replyMs: Readonly<Record<BeatName, readonly number[]>>;
  readonly lateP99Ms: number;
  readonly redis: RedisUse;
  /** Of the processes that send, together. */
  readonly senderCores: number;
  /** To find the servers with most room, ms. */
  readonly placeMs: readonly number[];
  /** To make a token, claim it, take a slot and list the session, ms. */
  readonly openMs: readonly number[];
  /** From the last heartbeat of a server until another is told of its death, ms. */
  readonly noticeMs: number;
  /** From the last heartbeat until a token of its sessions is claimed elsewhere, ms. */
  readonly claimableMs: number;
  /** Servers that live, but were taken for dead. */
  readonly falselyDead: number;
  readonly failures: readonly string[];
}

/** What Redis used, on average. */
export interface RedisUse {
  /** Of all its threads, without the process that rewrites its log. */
  readonly cores: number;
  /** Of the thread that runs commands. */
  readonly mainCores: number;
  /** Of the processes that rewrite its log. */
  readonly childCores: number;
  readonly receivedMbit: number;
  readonly sentMbit: number;
  /** Written to files. */
  readonly writtenMb: number;
  readonly memoryMb: number;
}

type Counters = Readonly<Record<string, number>>;

async function readCounters(store: RedisStore): Promise<Counters> {
  const info = await store.use((client) => client.info());
  const counters = Object.fromEntries(
    [...info.matchAll(/^([a-z_]+):([\d.]+)\r?$/gm)].map(([, name, value]) => [
      name!,
      Number(value),
    ]),
  );
  const io = readFileSync(`/proc/${counters['process_id']}/io`, 'utf8');
  return {
    ...counters,
    written: Number(/^write_bytes: (\d+)/m.exec(io)![1]),
    atMs: performance.now(),
  };
}

function useBetween(before: Counters, after: Counters): RedisUse {
  const rate = (name: string): number =>
    ((after[name]! - before[name]!) * 1000) / (after['atMs']! - before['atMs']!);
  return {
    cores: rate('used_cpu_sys') + rate('used_cpu_user'),
    mainCores: rate('used_cpu_sys_main_thread') + rate('used_cpu_user_main_thread'),
    childCores: rate('used_cpu_sys_children') + rate('used_cpu_user_children'),
    receivedMbit: (rate('total_net_input_bytes') * 8) / 1e6,
    sentMbit: (rate('total_net_output_bytes') * 8) / 1e6,
    writtenMb: rate('written') / 1e6,
    memoryMb: after['used_memory']! / 1e6,
  };
}

const loadScripts = async (store: RedisStore): Promise<Digests> =>
  Object.fromEntries(
    await Promise.all(
      SCRIPTS.map(async ({ name, lua }) => [
        name,
        String(await store.use((client) => client.script('LOAD', lua))),
      ]),
    ),
  );

const GRANT: SessionGrant = {
  ownerId: 'owner',
  keyId: 'rehearsal',
  keyName: 'rehearsal',
  faceId: 'ava',
  emotion: 'neutral',
  model: null,
  apiVersion: 'v2',
  sessionAggregator: null,
  handleSilence: true,
  maxSessionLengthSeconds: 3600,
  maxIdleTimeSeconds: 300,
  startFrame: 0,
  audioInputFormat: 'pcm16',
  tokenId: '0'.repeat(32),
  issuedAtMs: 1_700_000_000_000,
};

/** What another server does beside them: it opens sessions, and clears up after a dead one. */
class LiveServer {
  readonly id = newUuid();
  readonly #store: RedisStore;
  readonly registry: NodeRegistry;
  readonly #tokens: SessionTokens;
  readonly #quota: SessionQuota;

  constructor(store: RedisStore) {
    this.#store = store;
    this.registry = new NodeRegistry(store);
    this.#tokens = new SessionTokens(store, TOKEN_TTL_SECONDS);
    this.#quota = new SessionQuota(store, 1_000_000);
  }

  /** All that Redis does for a session that begins. @returns ms */
  async open(): Promise<number> {
    const { tokenId: _id, issuedAtMs: _at, ...grant } = GRANT;
    const session = {
      ...{ id: newUuid(), ownerId: GRANT.ownerId, keyId: GRANT.keyId, keyName: GRANT.keyName },
      ...{ tokenHash: '', faceId: 'ava', kind: 'p2p' as const, aggregator: null, startMs: 0 },
    };
    const sinceMs = performance.now();
    const token = await this.#tokens.create(grant);
    await this.#quota.acquire(GRANT.keyId, session.id);
    const { kind } = await this.#tokens.claim(token, session.id, this.id);
    await this.registry.addSession(this.id, session);
    const ms = performance.now() - sinceMs;
    if (kind !== 'claimed') {
      throw new Error(`a new token is ${kind}`);
    }
    await Promise.all([
      this.#tokens.release(token, session.id),
      this.#quota.release(GRANT.keyId, session.id),
      this.registry.removeSession(this.id, session.id),
    ]);
    return ms;
  }

  /** Grants the tokens of a simulated server's sessions, which only have claims. */
  async grant(tokens: readonly string[]): Promise<void> {
    for (const token of tokens) {
      const key = keys.token(hashSecret(token));
      const grant = JSON.stringify(GRANT);
      await this.#store.use((client) => client.set(key, grant, 'EX', TOKEN_TTL_SECONDS));
    }
  }

  /** As cluster.ts does. */
  async clear(dead: string): Promise<void> {
    const sessions = await this.registry.sessionsOf(dead);
    await Promise.all(
      sessions.flatMap(({ id, keyId, tokenHash }) => [
        this.#tokens.releaseHashed(tokenHash, id),
        this.#quota.release(keyId, id),
      ]),
    );
    await this.registry.removeSessions(dead);
    await this.registry.forgetDead(dead);
  }

  /** Tries to claim a token until it can. */
  async claim(token: string): Promise<void> {
    for (;;) {
      const { kind } = await this.#tokens.claim(token, newUuid(), this.id);
      if (kind === 'claimed') {
        return;
      }
      await delay(PLACE_EVERY_MS);
    }
  }
}

/** Starts the processes and their servers. @returns them, and the id of the first server */
async function startServers(
  { port, servers, sessions, processes }: RehearsalOptions,
  digests: Digests,
): Promise<{ senders: readonly ServersProcess[]; dying: string }> {
  const senders = Array.from({ length: processes }, () => new ServersProcess());
  const share = Math.ceil(servers / processes);
  const ids = await Promise.all(
    senders.map((sender, index) => {
      const first = index * share;
      const count = Math.min(share, servers - first);
      const setUp = { port, first, count, sessions, digests };
      return sender.ask<'setUp'>({ op: 'setUp', setUp });
    }),
  );
  await Promise.all(senders.map((sender) => sender.ask<'start'>({ op: 'start' })));
  return { senders, dying: ids[0]! };
}

/** Everything at once; one server dies a third of the way through. */
export async function rehearse(
  store: RedisStore,
  options: RehearsalOptions,
  progress: (line: string) => void,
): Promise<Rehearsal> {
  const { servers, sessions, seconds } = options;
  const live = new LiveServer(store);
  const tokens = Array.from({ length: sessions }, (_token, session) => tokenOf(0, session));
  await live.grant(tokens);
  const { senders, dying } = await startServers(options, await loadScripts(store));
  try {
    progress(`${servers} servers with ${servers * sessions} sessions send`);
    await delay(options.warmUpSeconds * 1000);
    await Promise.all(senders.map((sender) => sender.ask<'count'>({ op: 'count' })));
    const before = await readCounters(store);
    const endMs = performance.now() + seconds * 1000;
    const often = async (work: () => Promise<number>): Promise<number[]> => {
      const times: number[] = [];
      while (performance.now() < endMs) {
        times.push(await work());
        await delay(PLACE_EVERY_MS);
      }
      return times;
    };
    const place = async (): Promise<number> => {
      const sinceMs = performance.now();
      const found = await live.registry.roomiest(9);
      if (found.length === 0) {
        throw new Error('no server has room');
      }
      return performance.now() - sinceMs;
    };
    const [placeMs, openMs, death] = await Promise.all([
      often(place),
      often(() => live.open()),
      delay((seconds * 1000) / 3).then(() => die(live, senders, dying, tokens)),
    ]);
    const after = await readCounters(store);
    const figures = await Promise.all(
      senders.map((sender) => sender.ask<'figures'>({ op: 'figures' })),
    );
    return {
      ...together(figures, dying),
      ...death,
      placeMs,
      openMs,
      redis: useBetween(before, after),
    };
  } finally {
    await Promise.all(senders.map((sender) => sender.end()));
  }
}

/** Ends the first server, and clears up as soon as another is told to. */
async function die(
  live: LiveServer,
  senders: readonly ServersProcess[],
  dying: string,
  tokens: readonly string[],
): Promise<Pick<Rehearsal, 'noticeMs' | 'claimableMs'>> {
  const lastBeatMs = await senders[0]!.ask<'kill'>({ op: 'kill' });
  const notice = Promise.race(
    senders.map((sender) => sender.ask<'notice'>({ op: 'notice', dead: dying })),
  );
  const claimed = live.claim(tokens.at(-1)!).then(() => wallMs());
  const atMs = await notice;
  await live.clear(dying);
  return { noticeMs: atMs - lastBeatMs, claimableMs: (await claimed) - lastBeatMs };
}

/** The figures of all processes in one. */
function together(
  figures: readonly ServersFigures[],
  dying: string,
): Omit<Rehearsal, 'placeMs' | 'openMs' | 'noticeMs' | 'claimableMs' | 'redis'> {
  const sum = (of: (one: ServersFigures) => number): number =>
    figures.reduce((total, one) => total + of(one), 0);
  return {
    seconds: Math.max(...figures.map(({ seconds }) => seconds)),
    commandsPerSecond: sum(({ commands, seconds }) => commands / seconds),
    perSecond: Object.fromEntries(
      BEATS.map((name) => [name, sum(({ sent, seconds }) => sent[name] / seconds)]),
    ) as Record<BeatName, number>,
    replyMs: Object.fromEntries(
      BEATS.map((name) => [name, figures.flatMap(({ replyMs }) => replyMs[name])]),
    ) as unknown as Record<BeatName, number[]>,
    lateP99Ms: Math.max(...figures.map(({ lateP99Ms }) => lateP99Ms)),
    senderCores: sum(({ cpuSeconds, seconds }) => cpuSeconds / seconds),
    falselyDead: new Set(figures.flatMap(({ dead }) => dead.filter((id) => id !== dying))).size,
    failures: figures.flatMap((one) => one.failures),
  };
}

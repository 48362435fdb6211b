// What a server sends to Redis while its sessions run: the same scripts as often as in
// production, over a connection of its own, in bytes that are made once.
import { once } from 'node:events';
import net from 'node:net';
import { hashSecret, newUuid } from '../../src/base/ids.ts';
import { wallMs } from '../../src/base/time.ts';
import type { NodeRecord, NodeSession } from '../../src/front/cluster/node-record.ts';
import { DEAD_AFTER_MS } from '../../src/front/cluster/node-registry.ts';
import { LEASE_MS } from '../../src/front/queue/job-queue.ts';
import { SLOT_TTL_MS } from '../../src/front/sessions/session-quota.ts';
import { CLAIM_TTL_MS } from '../../src/front/sessions/session-tokens.ts';
import { ANNOUNCE_NODE, ROOMIEST_NODES } from '../../src/front/store/cluster-scripts.ts';
import {
  JOURNAL_BEGIN,
  JOURNAL_HEARTBEAT,
  JOURNAL_LOST,
} from '../../src/front/store/journal-scripts.ts';
import { keys } from '../../src/front/store/keys.ts';
import {
  DELETIONS_SINCE,
  type Script,
  TAKE_JOB,
  TOUCH_CLAIM,
  TOUCH_SLOTS,
} from '../../src/front/store/scripts.ts';
import { ReplyReader, evalsha, hset, isError } from './resp.ts';

/** The scripts that it calls; Redis must have loaded them. */
export const SCRIPTS = [
  ANNOUNCE_NODE,
  DELETIONS_SINCE,
  JOURNAL_BEGIN,
  JOURNAL_HEARTBEAT,
  JOURNAL_LOST,
  ROOMIEST_NODES,
  TAKE_JOB,
  TOUCH_CLAIM,
  TOUCH_SLOTS,
] as const;

/** By name of a script. */
export type Digests = Readonly<Record<string, string>>;

/**
 * What is sent at a time, and how often: as in cluster.ts, session-registry.ts, session-recorder.ts,
 * job-runner.ts, deleted-faces.ts and roomiest-nodes.ts. Only full servers ask for those with room.
 */
export const PERIODS_MS = {
  'heartbeat of the server': 1000,
  'claims of its sessions': 3000,
  'quota slots of its sessions': 3000,
  'journal of its sessions': 5000,
  'jobs to take': 2000,
  'deleted faces': 500,
  'servers with room': 500,
} as const;
export type BeatName = keyof typeof PERIODS_MS;
export const BEATS = Object.keys(PERIODS_MS) as BeatName[];

interface Beat {
  readonly bytes: Buffer;
  /** Commands in it. */
  readonly commands: number;
}

interface Waiting {
  readonly name: BeatName | undefined;
  readonly sentMs: number;
  /** Replies that have not come yet. */
  replies: number;
}

/** API keys of all sessions of the rehearsal. */
const API_KEYS = 100;
/** As in session-recorder.ts and deleted-faces.ts. */
const A_MINUTE_MS = 60_000;
/** As in cluster.ts. */
const CLEARING_LEASE_MS = 5000;

export const tokenOf = (server: number, session: number): string =>
  `the token of session ${session} on server ${server} of the rehearsal`;

export const recordOf = (id: string): NodeRecord => ({
  id,
  host: 'a-machine-of-the-fleet',
  url: 'http://10.0.0.1:8080',
  mediaAddresses: ['192.0.2.1'],
  version: '0.1.0',
  region: 'eu-west',
  startedAtMs: 1_700_000_000_000,
  workers: 8,
  kinds: ['p2p', 'livekit', 'agent', 'auto'],
  models: ['rig'],
  room: 28,
  sessions: 100,
  load: 0.7,
  isDraining: false,
});

/** What it tells of replies. */
export interface Listener {
  /** The last reply to something was received. */
  answered(name: BeatName, ms: number): void;
  /** The server was told to clear up after these. */
  foundDead(ids: readonly string[]): void;
  failed(message: string): void;
}

/** One server. */
export class SimulatedServer {
  readonly id: string;
  readonly #socket: net.Socket;
  readonly #beats: Readonly<Record<BeatName, Beat>>;
  readonly #sessions: readonly NodeSession[];
  readonly #digests: Digests;
  readonly #waiting: Waiting[] = [];
  #filled = (): void => {};
  #lastBeatMs = 0;

  private constructor(
    socket: net.Socket,
    id: string,
    sessions: readonly NodeSession[],
    digests: Digests,
    listener: Listener,
  ) {
    this.id = id;
    this.#socket = socket;
    this.#sessions = sessions;
    this.#digests = digests;
    this.#beats = beatsOf(id, sessions, digests);
    const reader = new ReplyReader((reply) => {
      this.#receive(reply, listener);
    });
    socket.on('data', (chunk: Buffer) => {
      reader.push(chunk);
    });
    socket.on('error', (error) => {
      listener.failed(error.message);
    });
  }

  /** @param number of the server: names the tokens of its sessions */
  static async connect(
    port: number,
    number: number,
    sessions: number,
    digests: Digests,
    listener: Listener,
  ): Promise<SimulatedServer> {
    const socket = net.connect(port, '127.0.0.1').setNoDelay();
    await once(socket, 'connect');
    const made = Array.from({ length: sessions }, (_session, index): NodeSession => {
      const keyId = `key-${number % API_KEYS}`;
      return {
        id: newUuid(),
        ownerId: `owner-${keyId}`,
        keyId,
        keyName: 'production',
        tokenHash: hashSecret(tokenOf(number, index)),
        faceId: 'ava',
        kind: 'p2p',
        aggregator: null,
        startMs: 1_700_000_000_000,
      };
    });
    return new SimulatedServer(socket, newUuid(), made, digests, listener);
  }

  /** Writes what Redis has of sessions that began before. */
  async fill(): Promise<void> {
    const started = this.#sessions.map((session) =>
      evalsha(
        this.#digests[JOURNAL_BEGIN.name]!,
        [keys.journal(), keys.journalRecords()],
        [session.id, JSON.stringify({ ...session, serverId: this.id }), 1000],
      ),
    );
    const listed = this.#sessions.flatMap((session) => [session.id, JSON.stringify(session)]);
    await new Promise<void>((resolve) => {
      this.#filled = resolve;
      const sentMs = performance.now();
      this.#waiting.push({ name: undefined, sentMs, replies: started.length + 1 });
      this.#socket.write(Buffer.concat([...started, hset(keys.nodeSessions(this.id), listed)]));
    });
  }

  /** @returns the number of commands */
  send(name: BeatName): number {
    const { bytes, commands } = this.#beats[name];
    if (name === 'heartbeat of the server') {
      this.#lastBeatMs = wallMs();
    }
    this.#waiting.push({ name, sentMs: performance.now(), replies: commands });
    this.#socket.write(bytes);
    return commands;
  }

  /** Ends the connection. @returns when the last heartbeat was sent, Unix ms */
  kill(): number {
    this.#socket.destroy();
    return this.#lastBeatMs;
  }

  #receive(reply: Buffer, listener: Listener): void {
    const waiting = this.#waiting[0]!;
    if (isError(reply)) {
      listener.failed(reply.toString());
    }
    if (waiting.name === 'heartbeat of the server') {
      // Behind the process before and the number of live servers: the ids of dead ones.
      const [, behind = ''] = reply.toString().split(/^:\d+$/m);
      const dead = behind.match(/^[\da-f-]{36}$/gm);
      if (dead !== null) {
        listener.foundDead(dead);
      }
    }
    waiting.replies--;
    if (waiting.replies > 0) {
      return;
    }
    this.#waiting.shift();
    if (waiting.name === undefined) {
      this.#filled();
    } else {
      listener.answered(waiting.name, performance.now() - waiting.sentMs);
    }
  }
}

function beatsOf(
  id: string,
  sessions: readonly NodeSession[],
  digests: Digests,
): Readonly<Record<BeatName, Beat>> {
  const call = (
    script: Script,
    names: readonly string[],
    args: readonly (string | number)[],
  ): Buffer => evalsha(digests[script.name]!, names, args);
  const beat = (...commands: readonly Buffer[]): Beat => ({
    bytes: Buffer.concat(commands),
    commands: commands.length,
  });
  const nodes = [keys.nodeBeats(), keys.nodeRooms(), keys.nodeRecords(), keys.nodeClearing()];
  const journal = [keys.journal(), keys.journalRecords()];
  const record = recordOf(id);
  return {
    'heartbeat of the server': beat(
      call(ANNOUNCE_NODE, nodes, [
        id,
        id,
        JSON.stringify(record),
        record.room,
        DEAD_AFTER_MS,
        1,
        CLEARING_LEASE_MS,
      ]),
    ),
    'claims of its sessions': beat(
      ...sessions.map((session) =>
        call(TOUCH_CLAIM, [keys.tokenClaim(session.tokenHash)], [session.id, id, CLAIM_TTL_MS]),
      ),
    ),
    'quota slots of its sessions': beat(
      call(
        TOUCH_SLOTS,
        [keys.apiKeyLive(sessions[0]!.keyId)],
        [SLOT_TTL_MS, ...sessions.map((session) => session.id)],
      ),
    ),
    'journal of its sessions': beat(
      call(
        JOURNAL_HEARTBEAT,
        journal,
        sessions.flatMap((session) => [session.id, 123_456]),
      ),
      call(JOURNAL_LOST, journal, [A_MINUTE_MS]),
    ),
    'jobs to take': beat(
      ...['face', 'static'].map((queue) =>
        call(
          TAKE_JOB,
          [
            keys.jobsWaiting(queue),
            keys.jobsRunning(queue),
            keys.jobsData(queue),
            keys.jobsAttempts(queue),
            keys.jobsHolders(queue),
          ],
          [id, LEASE_MS],
        ),
      ),
    ),
    'deleted faces': beat(call(DELETIONS_SINCE, [keys.deletedFaces()], [0, A_MINUTE_MS])),
    'servers with room': beat(
      call(
        ROOMIEST_NODES,
        [keys.nodeRooms(), keys.nodeBeats(), keys.nodeRecords()],
        [9, DEAD_AFTER_MS],
      ),
    ),
  };
}

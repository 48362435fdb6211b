// What the rehearsal of a cluster and its processes of simulated servers tell each other.
import type { BeatName, Digests } from './simulated-server.ts';

export interface ServersSetUp {
  readonly port: number;
  /** Number of its first server, and how many it has. */
  readonly first: number;
  readonly count: number;
  /** Sessions of each server. */
  readonly sessions: number;
  readonly digests: Digests;
}

export type ServersCommand =
  | { readonly op: 'setUp'; readonly setUp: ServersSetUp }
  /** Sends from now on. */
  | { readonly op: 'start' }
  /** Counts from now on. */
  | { readonly op: 'count' }
  /** Ends its first server. */
  | { readonly op: 'kill' }
  /** Waits until one of its servers is told that another one is dead. */
  | { readonly op: 'notice'; readonly dead: string }
  | { readonly op: 'figures' };

export interface ServersFigures {
  /** How often each was sent since `count`. */
  readonly sent: Readonly<Record<BeatName, number>>;
  /** Commands since `count`. */
  readonly commands: number;
  /** From sending to the last reply, ms. */
  readonly replyMs: Readonly<Record<BeatName, readonly number[]>>;
  /** How late it was sent, ms: 99 % of all. */
  readonly lateP99Ms: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** Ids of servers that it was told are dead. */
  readonly dead: readonly string[];
  readonly failures: readonly string[];
}

export interface ServersAnswers {
  /** The id of its first server. */
  readonly setUp: string;
  readonly start: true;
  readonly count: true;
  /** When the last heartbeat was sent, Unix ms. */
  readonly kill: number;
  /** When it was told, Unix ms. */
  readonly notice: number;
  readonly figures: ServersFigures;
}

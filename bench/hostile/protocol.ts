// What the hostile bench and its attacker processes say to each other, over the IPC channel of
// child_process.

/**
 * Where and as whom the attackers act. Everything an attacker may know: it has a key of its own,
 * with quotas of its own.
 */
export interface Arena {
  /** Of the server: http://127.0.0.1:PORT. */
  readonly url: string;
  /** The attackers' API key; another than that of the honest sessions. */
  readonly apiKey: string;
  readonly faceId: string;
  /**
   * Session tokens made with that key. A token serves one session at a time, and any number in
   * turn.
   */
  readonly tokens: readonly string[];
  /** UDP port of a media worker. */
  readonly mediaPort: number;
  /** Loopback addresses to come from, so that limits by address do not hit the honest sessions. */
  readonly addresses: readonly string[];
}

/** One entry point's share of an attack, for one process. */
export interface Strike {
  readonly entryPoint: string;
  readonly perSecond: number;
}

export type AttackCommand =
  | { readonly op: 'setUp'; readonly arena: Arena }
  /**
   * Attacks all the entry points given, at the same time, for `seconds`; answers when all is closed
   * again. `sessions`: how many sessions they may have at once, all entry points together.
   */
  | {
      readonly op: 'attack';
      readonly strikes: readonly Strike[];
      readonly seconds: number;
      readonly sessions: number;
    };

/** What one entry point saw. */
export interface Tally {
  /** Units of the entry point (datagrams, messages, requests, connections) that were sent off. */
  readonly attempted: number;
  /** What came back, and how often. For entry points that never answer: empty. */
  readonly answers: Readonly<Record<string, number>>;
}

export type Tallies = Readonly<Record<string, Tally>>;

// What a server says of itself to the others, and of its sessions.
import type { SessionKind } from '../../base/session-kinds.ts';

/** What may change at each heartbeat. */
export interface NodeFigures {
  /** Sessions that it would still take. */
  readonly room: number;
  readonly sessions: number;
  /** Share of its core that the busiest worker uses, 0 to 1. */
  readonly load: number;
  readonly isDraining: boolean;
}

/** A server. */
export interface NodeRecord extends NodeFigures {
  readonly id: string;
  /** Name of its machine. */
  readonly host: string;
  /** Where the other servers reach it. */
  readonly url: string;
  /** The addresses in its ICE candidates. */
  readonly mediaAddresses: readonly string[];
  readonly version: string;
  readonly region: string;
  /** Unix milliseconds. */
  readonly startedAtMs: number;
  readonly workers: number;
  /** Kinds of sessions that it serves. */
  readonly kinds: readonly SessionKind[];
  /** Its renderers. */
  readonly models: readonly string[];
}

/** A server and the age of its record. */
export interface SeenNode extends NodeRecord {
  readonly seenMs: number;
}

/** A live session. */
export interface NodeSession {
  readonly id: string;
  readonly ownerId: string;
  readonly keyId: string;
  readonly keyName: string;
  /** The token cannot be derived from it. */
  readonly tokenHash: string;
  readonly faceId: string;
  readonly kind: SessionKind;
  readonly aggregator: string | null;
  /** Unix milliseconds. */
  readonly startMs: number;
}

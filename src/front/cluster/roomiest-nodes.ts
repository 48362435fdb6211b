// The other servers with room, as this one last read them.
import { monotonicMs } from '../../base/time.ts';
import type { NodeRecord } from './node-record.ts';
import type { NodeRegistry } from './node-registry.ts';

/** How long a list is used: each server announces itself once a second. */
const FRESH_MS = 500;
/** Servers in a list. A full server tries them in turn. */
const MAX_NODES = 8;

interface Candidate {
  readonly node: NodeRecord;
  /** What it announced, less what was sent to it since. */
  room: number;
}

/** The servers to which sessions can be passed on. */
export class RoomiestNodes {
  readonly #registry: Pick<NodeRegistry, 'roomiest'>;
  readonly #ownId: string;
  readonly #region: string;
  #candidates: Candidate[] = [];
  #readMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined = undefined;

  constructor(registry: Pick<NodeRegistry, 'roomiest'>, ownId: string, region: string) {
    this.#registry = registry;
    this.#ownId = ownId;
    this.#region = region;
  }

  /** Whether any other server has room. @throws ServiceError STORE_UNAVAILABLE */
  async haveRoom(): Promise<boolean> {
    await this.#refresh();
    return this.#candidates.some(({ room }) => room > 0);
  }

  /**
   * The server for the next session, which is then counted as sent there: of the same region
   * first, and of these the one with the most room.
   * @param tried servers that refused it
   * @throws ServiceError STORE_UNAVAILABLE
   */
  async next(tried: ReadonlySet<string>): Promise<NodeRecord | undefined> {
    await this.#refresh();
    let best: Candidate | undefined;
    for (const candidate of this.#candidates) {
      if (candidate.room > 0 && !tried.has(candidate.node.id)) {
        best = best === undefined || this.#isBetter(candidate, best) ? candidate : best;
      }
    }
    if (best !== undefined) {
      best.room--;
    }
    return best?.node;
  }

  #isBetter(a: Candidate, b: Candidate): boolean {
    const isNear = ({ node }: Candidate): boolean => node.region === this.#region;
    return isNear(a) === isNear(b) ? a.room > b.room : isNear(a);
  }

  async #refresh(): Promise<void> {
    if (monotonicMs() - this.#readMs < FRESH_MS) {
      return;
    }
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  async #read(): Promise<void> {
    const nodes = await this.#registry.roomiest(MAX_NODES + 1);
    this.#candidates = nodes
      .filter(({ id }) => id !== this.#ownId)
      .map((node) => ({ node, room: node.room }));
    this.#readMs = monotonicMs();
  }
}

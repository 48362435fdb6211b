// Light peers in processes of their own, so that the load does not share a thread with what
// measures it.
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ProgramProcess } from '../child-process.ts';
import type { Impairment } from './impaired-relay.ts';
import type { PeerFigures } from './peer-figures.ts';
import type { FleetAnswers, FleetCommand, FleetSetUp, TalkPlan } from './protocol.ts';

export interface FleetOptions extends FleetSetUp {
  readonly processes: number;
  /** Put before the command, for instance `ip netns exec NAME`. */
  readonly prefix?: readonly string[];
  /**
   * CPUs the processes keep to, as `taskset` takes them; those of the workers are best left alone.
   */
  readonly cpus?: string;
}

export interface FleetSummary {
  readonly peers: readonly PeerFigures[];
  /** The same, by the number that `open` gave. */
  readonly byPeer: ReadonlyMap<number, PeerFigures>;
  readonly loopDelayP99Ms: number;
  readonly cpuSeconds: number;
}

const MAX_TRIES = 40;

const PROGRAM = path.join(import.meta.dirname, 'fleet-process.ts');

class PeerProcess extends ProgramProcess<FleetCommand> {
  constructor(prefix: readonly string[]) {
    super('a peer process', PROGRAM, prefix);
  }

  override async ask<O extends FleetCommand['op']>(
    command: Extract<FleetCommand, { op: O }>,
  ): Promise<FleetAnswers[O]> {
    return (await super.ask(command)) as FleetAnswers[O];
  }
}

export class Fleet {
  readonly #processes: PeerProcess[];
  readonly #homes = new Map<number, PeerProcess>();
  #nextPeer = 0;

  private constructor(processes: PeerProcess[]) {
    this.#processes = processes;
  }

  static async start({ processes, prefix = [], cpus, ...setUp }: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(
      Array.from(
        { length: processes },
        () => new PeerProcess([...prefix, ...(cpus === undefined ? [] : ['taskset', '-c', cpus])]),
      ),
    );
    await Promise.all(fleet.#processes.map((one) => one.ask<'setUp'>({ op: 'setUp', setUp })));
    return fleet;
  }

  get size(): number {
    return this.#homes.size;
  }
  get ids(): number[] {
    return [...this.#homes.keys()];
  }

  /** @throws Error with the server's reason when it refuses. */
  async open(
    plan?: TalkPlan,
    keepFrames = false,
    impairment?: Impairment,
  ): Promise<{ peer: number; sessionId: string; figures: PeerFigures }> {
    const peer = this.#nextPeer++;
    const home = this.#processes[peer % this.#processes.length]!;
    const { sessionId, figures } = await home.ask<'open'>({
      op: 'open',
      peer,
      plan,
      keepFrames,
      impairment,
    });
    this.#homes.set(peer, home);
    return { peer, sessionId, figures };
  }

  /**
   * As `open`, but takes a refusal for want of room as "not at this moment".
   * @param onRefusal called for each
   */
  async openPatiently(
    plan?: TalkPlan,
    impairment?: Impairment,
    onRefusal = (): void => {},
  ): ReturnType<Fleet['open']> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.open(plan, false, impairment);
      } catch (error) {
        if (tries === MAX_TRIES || !String(error).includes('SERVER_OVERLOADED')) {
          throw error;
        }
        onRefusal();
        await delay(500);
      }
    }
  }

  speak(
    peer: number,
    pace: 'burst' | 'realtime',
    fromSeconds: number,
    seconds: number,
  ): Promise<FleetAnswers['speak']> {
    return this.#homes.get(peer)!.ask<'speak'>({ op: 'speak', peer, pace, fromSeconds, seconds });
  }

  async impair(peer: number, impairment: Impairment): Promise<void> {
    await this.#homes.get(peer)!.ask<'impair'>({ op: 'impair', peer, impairment });
  }
  /** @returns milliseconds from SKIP to the last packet with sound */
  skip(peer: number): Promise<number> {
    return this.#homes.get(peer)!.ask<'skip'>({ op: 'skip', peer });
  }
  waitOver(peer: number, timeoutMs: number): Promise<PeerFigures> {
    return this.#homes.get(peer)!.ask<'waitOver'>({ op: 'waitOver', peer, timeoutMs });
  }
  dump(peer: number, file: string): Promise<FleetAnswers['dump']> {
    return this.#homes.get(peer)!.ask<'dump'>({ op: 'dump', peer, file });
  }

  async close(peer: number, how: 'clean' | 'vanish' = 'clean'): Promise<void> {
    const home = this.#homes.get(peer);
    this.#homes.delete(peer);
    await home?.ask<'close'>({ op: 'close', peer, how });
  }

  async closeAll(): Promise<void> {
    await Promise.all(this.ids.map((peer) => this.close(peer)));
  }

  async figures(): Promise<FleetSummary> {
    const all = await Promise.all(
      this.#processes.map((one) => one.ask<'figures'>({ op: 'figures' })),
    );
    return {
      peers: all.flatMap(({ peers }) => Object.values(peers)),
      byPeer: new Map(
        all.flatMap(({ peers }) =>
          Object.entries(peers).map(([id, figures]) => [Number(id), figures] as const),
        ),
      ),
      loopDelayP99Ms: Math.max(...all.map(({ loopDelayP99Ms }) => loopDelayP99Ms)),
      cpuSeconds: all.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    };
  }

  /** Closes every peer and every process. */
  async end(): Promise<void> {
    await this.closeAll().catch(() => {});
    await Promise.all(this.#processes.map((one) => one.end()));
  }
}

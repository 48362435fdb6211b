// Connects and disconnects for minutes, cleanly and not, and looks for what stays behind: memory,
// descriptors, ports, slots.
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type LiveMemory, liveMemory } from '../live-memory.ts';
import type { Fleet } from '../peers/fleet.ts';
import { quantile } from '../report/stats.ts';
import { type Context, type Outcome, type Scenario, type Server, number } from '../scenario.ts';
import {
  type ChurnPoint,
  ENOUGH_FOR_SLOPES,
  FREED_WITHIN_MS,
  churnReport,
  failuresIn,
  sessionsIn,
} from './churn-report.ts';
import { codecOf, look, startFleet } from './setup.ts';

/**
 * So often the churn pauses until nobody is left, and what is alive is counted, the garbage of all
 * threads collected first. The resident size during the churn is not a measure: it is that
 * of whoever is connected, of megabytes that await collection, and of what malloc keeps for the
 * next session, and a regression through it has said anything from -40 to +40 kB a connect of the
 * same server. After a collection it still wavers by 5 MB, as pages go back sooner or later, so its
 * bound is wide: it is there for what splinters malloc's arenas (33 kB a connect, while encoders
 * were set up on the worker's thread), and the other two are there for leaks.
 */
const [PAUSES, PAUSES_WHEN_SHORT] = [10, 4];
/** Figures are read so often in a run. */
const POINTS = 50;

/** UDP sockets of a process: inodes of its descriptors that /proc/net/udp lists. */
function udpSockets(pid: number | undefined): number {
  if (pid === undefined) {
    return Number.NaN;
  }
  const inodes = new Set(
    readFileSync(`/proc/${pid}/net/udp`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/)[9]),
  );
  return readdirSync(`/proc/${pid}/fd`).filter((name) => {
    try {
      return inodes.has(
        /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1] ?? '',
      );
    } catch {
      return false; // closed meanwhile
    }
  }).length;
}

async function untilEmpty(server: Server): Promise<number> {
  const startMs = performance.now();
  while (performance.now() - startMs < FREED_WITHIN_MS + 10_000) {
    const now = await look(server);
    if (now === undefined) {
      return Number.NaN;
    }
    if (sessionsIn(now) === 0 && now.sum('mouthpiece_sessions') === 0) {
      break;
    }
    await delay(250);
  }
  return performance.now() - startMs;
}

/** Clients that come and go, and what is seen of the server meanwhile. */
class Churn {
  readonly points: ChurnPoint[] = [];
  readonly settled: ({ readonly connects: number } & LiveMemory)[] = [];
  readonly setUps: number[] = [];
  readonly errors = new Map<string, number>();
  readonly #context: Context;
  readonly #server: Server;
  readonly #fleet: Fleet;
  readonly #connects: number;
  readonly #parallel: number;
  readonly #vanishing: Promise<void>[] = [];
  opened = 0;
  turnedAway = 0;
  vanished = 0;
  #next = 0;

  constructor(context: Context, server: Server, fleet: Fleet) {
    this.#context = context;
    this.#server = server;
    this.#fleet = fleet;
    this.#connects = number(context.options, 'connects');
    this.#parallel = number(context.options, 'parallel');
  }

  /**
   * The first connects fill caches and pools that stay, and V8 compiles what they run, half a
   * megabyte in all: the counting begins after them.
   */
  async warmUp(): Promise<void> {
    const connects = number(this.#context.options, 'warmUp');
    for (let from = 0; from < connects; from += this.#parallel) {
      await Promise.all(
        Array.from({ length: Math.min(this.#parallel, connects - from) }, (_, k) =>
          this.#connect(from + k),
        ),
      );
    }
    await untilEmpty(this.#server);
  }

  /** Goes on until so many have connected. @returns milliseconds until all their slots were free */
  async upTo(connects: number): Promise<number> {
    const lane = async (): Promise<void> => {
      while (this.#next < connects) {
        await this.#connect(this.#next++);
        this.opened++;
        if (this.opened % Math.max(1, Math.floor(this.#connects / POINTS)) === 0) {
          await this.sample();
          this.#tell();
        }
      }
    };
    await Promise.all(Array.from({ length: this.#parallel }, lane));
    const freedMs = await untilEmpty(this.#server);
    await Promise.all(this.#vanishing);
    return freedMs;
  }

  /** Reads the server's figures. */
  async sample(): Promise<void> {
    const now = await look(this.#server);
    if (now !== undefined) {
      this.points.push({
        connects: this.opened,
        rssMb: now.sum('process_resident_memory_bytes') / 2 ** 20,
        descriptors: now.sum('process_open_fds'),
      });
    }
  }

  /** Collects the garbage of a server of our own, and asks what is alive. */
  async collect(): Promise<void> {
    const { inspectorUrl } = this.#server;
    if (inspectorUrl === undefined) {
      return;
    }
    const memory = await liveMemory(inspectorUrl);
    this.settled.push({ connects: this.opened, ...memory });
    this.#context.progress(
      `${String(this.opened).padStart(5)}/${this.#connects}  alive after collection: ` +
        `heaps ${(memory.heapBytes / 2 ** 20).toFixed(2)} MB, ` +
        `malloc ${(memory.mallocBytes / 2 ** 20).toFixed(2)} MB; ` +
        `resident ${(memory.residentBytes / 2 ** 20).toFixed(1)} MB`,
    );
  }

  #tell(): void {
    const point = this.points.at(-1);
    this.#context.progress(
      `${String(this.opened).padStart(5)}/${this.#connects}  set-up ` +
        `p50 ${quantile(this.setUps, 0.5).toFixed(0)} ms  ` +
        `RSS ${point?.rssMb.toFixed(0) ?? '?'} MB  ${point?.descriptors ?? '?'} ` +
        `descriptors  ${this.errors.size === 0 ? '' : `${failuresIn(this.errors)} failed`}`,
    );
  }

  /** One client: connects, perhaps speaks, and leaves, every tenth without a word. */
  async #connect(index: number): Promise<void> {
    try {
      const { peer, figures } = await this.#fleet.openPatiently(undefined, undefined, () => {
        this.turnedAway++;
      });
      this.setUps.push(figures.setUp.firstFrame);
      this.#context.record('token to first frame', figures.setUp.firstFrame, 'ms');
      if (index % 3 === 0) {
        await this.#fleet.speak(peer, 'burst', index, 0.5);
      }
      await delay(Math.random() * 300);
      if (index % 10 === 9) {
        this.vanished++;
        // It takes the server seconds to notice, in which others come and go.
        this.#vanishing.push(this.#fleet.close(peer, 'vanish'));
      } else {
        await this.#fleet.close(peer);
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.errors.set(why, (this.errors.get(why) ?? 0) + 1);
    }
  }
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const connects = number(options, 'connects');
  const server = await context.server({ WORKERS: '1', MAX_WORKER_LOAD: '1' }, { inspect: true });
  const fleet = await startFleet(context, server, { processes: 1, codec: codecOf(options) });
  const clients = new Churn(context, server, fleet);
  await clients.warmUp();
  const [socketsBefore, before] = [udpSockets(server.pid), await look(server)];
  await clients.sample();
  await clients.collect();
  let freedMs = 0;
  const pauses = connects >= ENOUGH_FOR_SLOPES ? PAUSES : PAUSES_WHEN_SHORT;
  for (let pause = 1; pause <= pauses; pause++) {
    freedMs = Math.max(freedMs, await clients.upTo(Math.round((connects * pause) / pauses)));
    await clients.collect();
  }
  const after = await look(server);
  await clients.sample();
  const { points, settled, setUps, errors, opened, turnedAway, vanished } = clients;
  return churnReport(context, {
    ...{ points, settled, setUps, errors, opened, turnedAway, vanished },
    pauses,
    freedMs,
    before,
    after,
    socketsLeft: udpSockets(server.pid) - socketsBefore,
  });
}

export const churn: Scenario = {
  name: 'churn',
  about:
    'Connects and disconnects, one in ten without a word; memory slope, descriptors, ' +
    'sockets and slots left behind.',
  options: {
    connects: 600,
    parallel: 4,
    warmUp: 150,
    heap: 400,
    malloc: 300,
    slope: 20,
    codec: 'vp8',
  },
  small: { connects: 12, warmUp: 2, parallel: 2 },
  run,
};

// Claims the cores that workers are pinned to, so that another server on the same host takes
// others.
//
// A claim is a listening socket in Linux's abstract namespace (unix(7)), named after the core.
// Binding it is atomic, needs no shared directory, and the kernel frees it however the process
// ends. Only processes of the same network namespace see it; containers are kept apart by their
// cpusets.
import net from 'node:net';

/** The cores of this server's workers. */
export interface CoreClaims {
  /** The core of each worker; undefined: no core is known, do not pin. */
  readonly cpus: readonly (number | undefined)[];
  /** Allowed cores that no worker of any server is pinned to now. */
  readonly free: readonly number[];
  /** Cores that our workers share with those of another server. */
  readonly shared: readonly number[];
  /** Frees the claims. */
  release(): Promise<void>;
}

const addressOf = (space: string, cpu: number): { path: string } => ({
  path: `\0${space}-core-${cpu}`,
});

/**
 * Undefined server: abstract sockets are not available, and each server claims as if it were alone.
 */
interface Claim {
  readonly server: net.Server | undefined;
}

/** Claims a core. @returns undefined when another server has it */
function claim(space: string, cpu: number): Promise<Claim | undefined> {
  return new Promise((resolve) => {
    const server = net.createServer((socket) => {
      socket.destroy();
    });
    server.unref();
    server.once('error', ({ code }: NodeJS.ErrnoException) => {
      resolve(code === 'EADDRINUSE' ? undefined : { server: undefined });
    });
    server.listen(addressOf(space, cpu), () => {
      resolve({ server });
    });
  });
}

/** Asks by connecting: a short claim could make another server that starts now miss the core. */
function isClaimed(space: string, cpu: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(addressOf(space, cpu));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => {
      resolve(false);
    });
  });
}

/**
 * Claims a core for each worker, the last core first: the first ones stay free for the main thread,
 * the database and offline jobs. Workers without a core of their own share evenly, those of other
 * servers first.
 * @param allowed CPU numbers that the process may use (affinity and cpuset)
 * @param space prefix of the names of the claims; tests have their own
 */
export async function claimCores(
  allowed: readonly number[],
  workers: number,
  space = 'mouthpiece',
): Promise<CoreClaims> {
  const claims = new Map<number, Claim>();
  const foreign: number[] = [];
  const free: number[] = [];
  for (const cpu of allowed.toReversed()) {
    if (claims.size === workers) {
      ((await isClaimed(space, cpu)) ? foreign : free).push(cpu);
      continue;
    }
    const held = await claim(space, cpu);
    if (held === undefined) {
      foreign.push(cpu);
    } else {
      claims.set(cpu, held);
    }
  }
  const own = [...claims.keys()];
  const common = [...foreign, ...own];
  const without = workers - own.length;
  return {
    cpus: [
      ...own,
      ...Array.from({ length: without }, (_, index) =>
        common.length === 0 ? undefined : common[index % common.length]!,
      ),
    ],
    free: free.toReversed(),
    shared: foreign.slice(0, without),
    async release() {
      await Promise.all([...claims.values()].map(giveBack));
    },
  };
}

const giveBack = ({ server }: Claim): Promise<void> =>
  new Promise((resolve) => {
    if (server === undefined) {
      resolve();
    } else {
      server.close(() => {
        resolve();
      });
    }
  });

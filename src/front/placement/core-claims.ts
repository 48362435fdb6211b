// Cores that this server's workers are pinned to, claimed so that another server on the same host takes others.
//
// A claim is a listening socket in Linux's abstract namespace (unix(7)), named after the core: binding it is atomic, needs no folder that both
// servers can write to, and the kernel takes it back when the process ends, however it ends. It is seen by the processes of one network
// namespace; containers, which have each their own, are kept apart by their cpusets.
import net from 'node:net';

export interface CoreClaims {
  /** The core of each worker; undefined where there is nothing to pin to. */
  readonly cpus: readonly (number | undefined)[];
  /** Allowed cores that no worker of any server is pinned to, as far as known now. */
  readonly free: readonly number[];
  /** Cores of ours that other servers had claimed before: workers share them. */
  readonly shared: readonly number[];
  /** Gives the claims back. */
  release(): Promise<void>;
}

const addressOf = (space: string, cpu: number): { path: string } => ({
  path: `\0${space}-core-${cpu}`,
});

/** Where abstract sockets cannot be had, claims hold nothing: servers then share as if they were alone. */
interface Claim {
  readonly server: net.Server | undefined;
}

/** @returns undefined when another server has the core */
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

/** Asked without claiming it: a claim of a moment would be in the way of a server that starts at the same time. */
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
 * Claims a core for each worker, the last ones first, so that the first ones stay for the front, the database and offline jobs. Workers for
 * which none is left share those of other servers first, then ours, evenly.
 * @param allowed CPU numbers that the process may use (its affinity and cpuset)
 * @param space the claims' name; tests have their own
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

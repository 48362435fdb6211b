// Claims the cores that workers are pinned to, so that another server on the same host takes
// others.
//
// A claim is a listening socket in Linux's abstract namespace (unix(7)), named after the core.
// Binding it is atomic, needs no shared directory, and the kernel frees it however the process
// ends. Only processes of the same network namespace see it. Servers in containers with networks
// of their own share a directory instead, and lock a file for each core besides (core-locks.ts).
import net from 'node:net';
import { CoreLocks } from './core-locks.ts';

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

/** Where the claims of servers meet. */
export interface ClaimPlaces {
  /** Prefix of the names of sockets; tests have their own. */
  readonly space?: string;
  /** Directory of lock files that the servers share; undefined: none. */
  readonly lockDir?: string | undefined;
}

const addressOf = (space: string, cpu: number): { path: string } => ({
  path: `\0${space}-core-${cpu}`,
});

/**
 * Undefined server: abstract sockets are not available, and each server claims as if it were alone.
 */
interface SocketClaim {
  readonly server: net.Server | undefined;
}

/** Claims a core. @returns undefined when another server has it */
function claimSocket(space: string, cpu: number): Promise<SocketClaim | undefined> {
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
function isSocketClaimed(space: string, cpu: number): Promise<boolean> {
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
 * @throws Error that says what to set when the directory of locks cannot be used
 */
export async function claimCores(
  allowed: readonly number[],
  workers: number,
  { space = 'mouthpiece', lockDir }: ClaimPlaces = {},
): Promise<CoreClaims> {
  const locks = lockDir === undefined ? undefined : new CoreLocks(lockDir);
  const claims = new Map<number, SocketClaim>();
  const foreign: number[] = [];
  const free: number[] = [];
  const release = async (): Promise<void> => {
    locks?.release();
    await Promise.all([...claims.values()].map(giveBack));
  };
  try {
    for (const cpu of allowed.toReversed()) {
      if (claims.size === workers) {
        const isClaimed = (await isSocketClaimed(space, cpu)) || locks?.isClaimed(cpu) === true;
        (isClaimed ? foreign : free).push(cpu);
        continue;
      }
      const held = await claimSocket(space, cpu);
      if (held !== undefined && locks?.claim(cpu) !== false) {
        claims.set(cpu, held);
        continue;
      }
      foreign.push(cpu);
      if (held !== undefined) {
        await giveBack(held);
      }
    }
  } catch (error) {
    await release();
    throw error;
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
    release,
  };
}

const giveBack = ({ server }: SocketClaim): Promise<void> =>
  new Promise((resolve) => {
    if (server === undefined) {
      resolve();
    } else {
      server.close(() => {
        resolve();
      });
    }
  });

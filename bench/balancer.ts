// HAProxy in front of servers of the bench, with the configuration that is recommended.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { until } from '../test/harness/until.ts';

const CONFIG = path.join(import.meta.dirname, '../deploy/compose/haproxy.cfg');
/** Servers that the configuration names. */
const SERVERS = 3;

/** Whether HAProxy is installed (Debian: haproxy). */
export const hasBalancer = (): boolean =>
  spawnSync('haproxy', ['-v'], { stdio: 'ignore' }).status === 0;

/** A running balancer. */
export interface Balancer {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts it, and waits until it has a server with room.
 * @param port a free one
 * @param servers host:port, three at most
 */
export async function startBalancer(port: number, servers: readonly string[]): Promise<Balancer> {
  const child = spawn('haproxy', ['-db', '-f', CONFIG], {
    stdio: ['ignore', process.env['TEST_VERBOSE'] ? 'inherit' : 'ignore', 'ignore'],
    env: {
      ...process.env,
      BIND: `127.0.0.1:${port}`,
      ...Object.fromEntries(
        Array.from({ length: SERVERS }, (_, i) => [`SERVER_${i + 1}`, servers[i] ?? '127.0.0.1:1']),
      ),
    },
  });
  const url = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const over = once(child, 'exit');
      child.kill('SIGTERM');
      await over;
    }
  };
  try {
    await until(
      async () => {
        if (child.exitCode !== null) {
          throw new Error(`HAProxy ended with ${child.exitCode}: haproxy -c -f ${CONFIG}`);
        }
        return await fetch(`${url}/readyz`).then(
          ({ ok }) => ok,
          () => false,
        );
      },
      20_000,
      'the balancer finds a server',
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop };
}

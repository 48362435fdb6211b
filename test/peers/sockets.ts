// The UDP sockets inside what is tested, for datagrams that only a raw socket could send to them.
import type { Socket } from 'node:dgram';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';

const CHANNEL = 'udp.socket';

/** Runs `make` and gives its result with the sockets that were created meanwhile. */
export async function socketsMadeBy<T>(
  make: () => Promise<T>,
): Promise<{ made: readonly Socket[]; value: T }> {
  const made: Socket[] = [];
  const onSocket = (message: unknown): void => {
    made.push((message as { socket: Socket }).socket);
  };
  subscribe(CHANNEL, onSocket);
  try {
    return { made, value: await make() };
  } finally {
    unsubscribe(CHANNEL, onSocket);
  }
}

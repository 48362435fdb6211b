// UDP sockets of tests, and those inside the code under test.
import { createSocket, type Socket } from 'node:dgram';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { TestContext } from 'vitest';

const CHANNEL = 'udp.socket';

/**
 * Runs `make` and returns its result with the UDP sockets that it created. Tests emit `message` on
 * them to deliver a datagram from an address that they could not send from.
 */
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

/** A UDP socket on a free loopback port, closed at the end of the test. */
export async function boundSocket(t: TestContext): Promise<Socket> {
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => {
    socket.bind(0, '127.0.0.1', resolve);
  });
  t.onTestFinished(() => {
    socket.close();
  });
  return socket;
}

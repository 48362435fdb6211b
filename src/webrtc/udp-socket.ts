// The UDP sockets of an endpoint: how they are bound, and which of their addresses are announced.
import { createSocket, type Socket } from 'node:dgram';
import { isIP } from 'node:net';
import { ownAddresses } from '../base/network-interfaces.ts';

/** Where a socket is bound, and what is announced of it. */
export interface BindOptions {
  readonly bindAddress: string;
  /**
   * A port (0: any free one), or a range: the first free port is used, so that workers can share
   * the range.
   */
  readonly port: number | { readonly from: number; readonly to: number };
  /**
   * Addresses of the ICE candidates. Empty: the bound address, or those of the machine if bound to
   * any.
   */
  readonly announcedAddresses: readonly string[];
}

const MAX_CANDIDATES = 8;
/** Kernel buffers, as far as the system allows. */
const SOCKET_BUFFER_BYTES = 4 << 20;

/**
 * Binds a socket.
 * @throws Error if the bind address is not an IP address, no port is free, or the system refuses to
 * bind
 */
export async function bindSocket({ bindAddress, port }: BindOptions): Promise<Socket> {
  if (isIP(bindAddress) === 0) {
    throw new Error(
      `The UDP bind address "${bindAddress}" is not an IP address. Set MEDIA_HOST to one.`,
    );
  }
  const { from, to } = typeof port === 'number' ? { from: port, to: port } : port;
  for (let candidate = from; candidate <= to; candidate++) {
    const socket = await tryBind(bindAddress, candidate);
    if (socket !== undefined) {
      enlargeBuffers(socket);
      return socket;
    }
  }
  throw new Error(
    `No free UDP port on ${bindAddress} in ${from}-${to}. Widen UDP_PORTS or use fewer workers.`,
  );
}

/** @returns undefined if the port is in use */
function tryBind(address: string, port: number): Promise<Socket | undefined> {
  const family = isIP(address) === 6 ? 6 : 4;
  // All addresses are numeric. The default lookup would delay each datagram by one turn of the
  // event loop.
  const socket = createSocket({
    type: family === 6 ? 'udp6' : 'udp4',
    lookup: (host, _options, callback) => {
      callback(null, host, family);
    },
  });
  return new Promise((resolve, reject) => {
    socket.once('error', (error: NodeJS.ErrnoException) => {
      socket.close();
      if (error.code === 'EADDRINUSE') {
        resolve(undefined);
      } else {
        reject(error);
      }
    });
    socket.bind({ address, port, exclusive: true }, () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
  });
}

function enlargeBuffers(socket: Socket): void {
  try {
    socket.setSendBufferSize(SOCKET_BUFFER_BYTES);
    socket.setRecvBufferSize(SOCKET_BUFFER_BYTES);
  } catch {
    /* the limit of the system is lower: it has set its maximum */
  }
}

/** The addresses under which others reach a socket. */
export function candidateAddresses({
  bindAddress,
  announcedAddresses,
}: BindOptions): readonly string[] {
  if (announcedAddresses.length > 0) {
    return announcedAddresses;
  }
  if (bindAddress !== '0.0.0.0' && bindAddress !== '::') {
    return [bindAddress];
  }
  // Loopback last: for a browser on this machine, if it has no network.
  const { external, loopback } = ownAddresses(bindAddress);
  return [...external, ...loopback].slice(0, MAX_CANDIDATES);
}

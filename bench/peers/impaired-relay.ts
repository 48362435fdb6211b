// A bad network between one peer and the server: loses, delays, jitters and limits datagrams both
// ways, in order, as a queue in a router would.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

/** Each way. All zero: a perfect network. */
export interface Impairment {
  readonly lossPercent: number;
  readonly delayMs: number;
  /** Each datagram takes up to this much longer, evenly spread; none overtakes another. */
  readonly jitterMs: number;
  /** 0: no limit. What would wait in the queue for over QUEUE_MS is dropped. */
  readonly rateKbps: number;
}

export const PERFECT: Impairment = { lossPercent: 0, delayMs: 0, jitterMs: 0, rateKbps: 0 };
const QUEUE_MS = 300;

/** One direction. */
class Way {
  #freeMs = 0;
  #releaseMs = 0;

  pass(
    bytes: number,
    { lossPercent, delayMs, jitterMs, rateKbps }: Impairment,
    nowMs: number,
    deliver: () => void,
  ): void {
    if (Math.random() * 100 < lossPercent) {
      return;
    }
    let departMs = nowMs;
    if (rateKbps > 0) {
      this.#freeMs = Math.max(this.#freeMs, nowMs);
      if (this.#freeMs - nowMs > QUEUE_MS) {
        return;
      }
      // 28: IPv4 and UDP headers are paid for as well.
      this.#freeMs += ((bytes + 28) * 8) / rateKbps;
      departMs = this.#freeMs;
    }
    this.#releaseMs = Math.max(this.#releaseMs, departMs + delayMs + Math.random() * jitterMs);
    if (this.#releaseMs - nowMs < 1) {
      deliver();
    } else {
      setTimeout(deliver, this.#releaseMs - nowMs);
    }
  }
}

export class ImpairedRelay {
  impairment: Impairment;
  readonly #near: Socket;
  readonly #far: Socket;
  #peer: { port: number; address: string } | undefined = undefined;
  #isClosed = false;

  private constructor(
    near: Socket,
    far: Socket,
    impairment: Impairment,
    server: { address: string; port: number },
  ) {
    this.#near = near;
    this.#far = far;
    this.impairment = impairment;
    const [out, back] = [new Way(), new Way()];
    near.on('message', (datagram, { address, port }) => {
      this.#peer = { address, port };
      out.pass(datagram.length, this.impairment, performance.now(), () => {
        if (!this.#isClosed) {
          far.send(datagram, server.port, server.address);
        }
      });
    });
    far.on('message', (datagram) => {
      back.pass(datagram.length, this.impairment, performance.now(), () => {
        if (!this.#isClosed && this.#peer !== undefined) {
          near.send(datagram, this.#peer.port, this.#peer.address);
        }
      });
    });
  }

  /** Stands between a peer on this host and the server's media address. */
  static async open(
    server: { address: string; port: number },
    impairment: Impairment,
  ): Promise<ImpairedRelay> {
    const sockets = [createSocket('udp4'), createSocket('udp4')] as const;
    await Promise.all(
      sockets.map(async (socket) => {
        socket.bind(0, '127.0.0.1');
        await once(socket, 'listening');
      }),
    );
    return new ImpairedRelay(...sockets, impairment, server);
  }

  /** Where the peer sends instead. */
  get port(): number {
    return this.#near.address().port;
  }

  close(): void {
    if (this.#isClosed) {
      return;
    }
    this.#isClosed = true;
    this.#near.close();
    this.#far.close();
  }
}

const CANDIDATE = /^(a=candidate:\S+ \d+ udp \d+) (\S+) (\d+) /im;

/** @returns the first UDP candidate of an answer. @throws Error when it has none */
export function mediaAddress(sdp: string): { address: string; port: number } {
  const match = CANDIDATE.exec(sdp);
  if (match === null) {
    throw new Error('the answer holds no UDP candidate');
  }
  return { address: match[2]!, port: Number(match[3]) };
}

/** The answer with all candidates replaced by the relay's address. */
export const rerouted = (sdp: string, port: number): string =>
  sdp
    .split('\r\n')
    .flatMap((line) => {
      const match = CANDIDATE.exec(line);
      if (match !== null) {
        return [line.replace(CANDIDATE, `$1 127.0.0.1 ${port} `)];
      }
      return line.startsWith('a=candidate:') ? [] : [line];
    })
    .join('\r\n');

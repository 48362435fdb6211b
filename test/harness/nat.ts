// A network address translator whose mapping can change, as when a phone leaves the Wi-Fi network.
import type { Socket } from 'node:dgram';
import type { TestContext } from 'vitest';
import type { Endpoint } from '../../src/webrtc/endpoint.ts';
import { boundSocket } from './udp-sockets.ts';

/**
 * A NAT between client and endpoint. The endpoint sees the NAT's address, and `rebind` changes it.
 */
export class Nat {
  readonly #inside: Socket;
  readonly #serverPort: number;
  readonly #t: TestContext;
  #outside: Socket;
  #client = { address: '', port: 0 };
  private constructor(t: TestContext, inside: Socket, outside: Socket, serverPort: number) {
    this.#t = t;
    this.#inside = inside;
    this.#outside = outside;
    this.#serverPort = serverPort;
    inside.on('message', (data, from) => {
      this.#client = from;
      this.#outside.send(data, this.#serverPort, '127.0.0.1');
    });
    // When the test is over both sockets close, one before the other. Datagrams may still arrive.
    inside.once('close', () => this.#outside.removeAllListeners('message'));
    this.#listen();
  }

  static async before(t: TestContext, endpoint: Endpoint): Promise<Nat> {
    return new Nat(t, await boundSocket(t), await boundSocket(t), endpoint.port);
  }

  get port(): number {
    return this.#inside.address().port;
  }
  /** The client's port as the endpoint sees it. */
  get outsidePort(): number {
    return this.#outside.address().port;
  }

  /** Gives the client another address. Datagrams to the old one no longer arrive. */
  async rebind(): Promise<void> {
    this.#outside.removeAllListeners('message');
    this.#outside = await boundSocket(this.#t);
    this.#listen();
  }

  /** Sends to the endpoint from the client's current outside address. */
  send(data: Buffer): void {
    this.#outside.send(data, this.#serverPort, '127.0.0.1');
  }

  #listen(): void {
    this.#outside.on('message', (data) => {
      this.#inside.send(data, this.#client.port, this.#client.address);
    });
    this.#outside.once('close', () => this.#inside.removeAllListeners('message'));
  }
}

// Datagrams that no honest client sends, from addresses that are not the client's.
import { classes, Message, methods } from 'werift';
import type { Socket } from 'node:dgram';
import type { TestContext } from 'vitest';
import { createEndpoint, type Endpoint } from '../../src/webrtc/endpoint.ts';
import { boundSocket, socketsMadeBy } from './udp-sockets.ts';

/** A UDP socket of its own: its datagrams come from another address than the client's. */
export class Attacker {
  readonly #socket: Socket;
  readonly #port: number;
  readonly replies: Buffer[] = [];
  sentBytes = 0;
  private constructor(socket: Socket, port: number) {
    this.#socket = socket;
    this.#port = port;
    socket.on('message', (data) => {
      this.replies.push(data);
    });
  }

  static async against(t: TestContext, endpoint: Endpoint): Promise<Attacker> {
    return new Attacker(await boundSocket(t), endpoint.port);
  }

  get receivedBytes(): number {
    return this.replies.reduce((sum, { length }) => sum + length, 0);
  }

  send(data: Buffer): Promise<void> {
    this.sentBytes += data.length;
    return new Promise((resolve) => {
      this.#socket.send(data, this.#port, '127.0.0.1', () => {
        resolve();
      });
    });
  }
}

/** A STUN Binding request (RFC 8489) with any user name and any key, right or wrong. */
export function stunRequest(
  username: string | undefined,
  password: string | undefined,
  nominate = true,
): Buffer {
  const request = new Message(methods.BINDING, classes.REQUEST);
  if (username !== undefined) {
    request.setAttribute('USERNAME', username);
  }
  request.setAttribute('PRIORITY', 1).setAttribute('ICE-CONTROLLING', 1n);
  if (nominate) {
    request.setAttribute('USE-CANDIDATE', null);
  }
  if (password !== undefined) {
    request.addMessageIntegrity(Buffer.from(password)).addFingerprint();
  }
  return request.bytes;
}

/** The server's ICE credentials from its SDP answer; a client needs them for a Binding request. */
export const credentialsOf = (answer: string): { ufrag: string; password: string } => ({
  ufrag: /a=ice-ufrag:(\S+)/.exec(answer)![1]!,
  password: /a=ice-pwd:(\S+)/.exec(answer)![1]!,
});

/**
 * An endpoint on loopback and its own UDP socket; tests emit datagrams with forged addresses there.
 */
export async function openEndpoint(
  t: TestContext,
): Promise<{ endpoint: Endpoint; socket: Socket }> {
  const options = { bindAddress: '127.0.0.1', port: 0, announcedAddresses: [] };
  const { made, value: endpoint } = await socketsMadeBy(() => createEndpoint(options));
  t.onTestFinished(() => endpoint.close());
  return { endpoint, socket: made[0]! };
}

/** A DTLS 1.2 record. */
export const record = (type: number, epoch: number, body: Buffer, sequence = 1): Buffer => {
  const head = Buffer.from([type, 0xfe, 0xfd, epoch >> 8, epoch & 255, 0, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUIntBE(sequence, 5, 6);
  head.writeUInt16BE(body.length, 11);
  return Buffer.concat([head, body]);
};

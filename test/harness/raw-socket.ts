// A WebSocket client that writes raw frames on a TCP socket, for floods: a frame is built once and
// written as fast as the socket accepts it.
import { once } from 'node:events';
import net from 'node:net';
import type { TestServer } from './server.ts';

export type Opcode = 'text' | 'binary' | 'ping' | 'pong';
const OPCODES: Readonly<Record<Opcode, number>> = { text: 1, binary: 2, ping: 9, pong: 10 };

/** A WebSocket client frame with an all-zero mask (RFC 6455 section 5.2). */
export function frame(opcode: Opcode, payload: Uint8Array | string): Buffer {
  const body = Buffer.from(payload as string);
  const head = Buffer.alloc(body.length < 126 ? 6 : body.length < 65_536 ? 8 : 14);
  head[0] = 0x80 | OPCODES[opcode];
  head[1] = 0x80 | (body.length < 126 ? body.length : body.length < 65_536 ? 126 : 127);
  if (head.length === 8) {
    head.writeUInt16BE(body.length, 2);
  }
  if (head.length === 14) {
    head.writeUInt32BE(body.length, 6);
  }
  return Buffer.concat([head, body]);
}

const BLOCK_BYTES = 256 * 1024;

/** One TCP connection with a WebSocket handshake. */
export class RawSocket {
  /** The last 4000 characters that the server sent, including frame headers. */
  heard = '';
  isClosed = false;
  readonly #socket: net.Socket;

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    socket.on('data', (data) => {
      this.heard = (this.heard + data.toString('latin1')).slice(-4000);
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.isClosed = true;
    });
  }

  /** Connects and sends the handshake. Resolves when the first bytes of the answer have arrived. */
  static async open(server: Pick<TestServer, 'url'>, path: string): Promise<RawSocket> {
    const { hostname, port } = new URL(server.url);
    const socket = net.connect(Number(port), hostname);
    const raw = new RawSocket(socket);
    const headers =
      'host: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: ' +
      'AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13';
    socket.write(`GET ${path} HTTP/1.1\r\n${headers}\r\n\r\n`);
    await once(socket, 'data');
    return raw;
  }

  /** Writes `one` `count` times, or until the server closes. @returns how many were written */
  async flood(one: Buffer, count: number): Promise<number> {
    const inBlock = Math.max(1, Math.floor(BLOCK_BYTES / one.length));
    const block = Buffer.concat(Array.from({ length: inBlock }, () => one));
    let written = 0;
    while (written < count && !this.isClosed) {
      written += inBlock;
      if (this.#socket.write(block)) {
        continue;
      }
      await new Promise<void>((resolve) => {
        this.#socket.once('drain', resolve);
        this.#socket.once('close', () => {
          resolve();
        });
      });
    }
    return written;
  }

  /** Resolves once the server sent `text` or closed. */
  async until(text: string): Promise<void> {
    while (!this.heard.includes(text) && !this.isClosed) {
      await Promise.race([once(this.#socket, 'data'), once(this.#socket, 'close')]);
    }
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

// A WebSocket client of few lines (RFC 6455), for floods: it comes from any local address and
// writes many messages in one piece.
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

const HEAD_END = '\r\n\r\n';
const MAX_HEAD_BYTES = 16_384;
const OPCODE = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/**
 * One masked frame. The mask is all zeros, which the format allows, so that the payload stands as
 * it is.
 */
export function frame(payload: Uint8Array, opcode: number = OPCODE.binary): Buffer {
  const { length } = payload;
  const head =
    length < 126
      ? Buffer.from([0x80 | opcode, 0x80 | length, 0, 0, 0, 0])
      : length < 65_536
        ? Buffer.from([0x80 | opcode, 0xfe, length >> 8, length & 255, 0, 0, 0, 0])
        : Buffer.alloc(14);
  if (length >= 65_536) {
    head[0] = 0x80 | opcode;
    head[1] = 0xff;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, payload]);
}

export const textFrame = (text: string): Buffer => frame(Buffer.from(text), OPCODE.text);

export interface RawWebSocketOptions {
  readonly url: string;
  readonly path: string;
  readonly localAddress: string;
}

export class RawWebSocket {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #isUpgraded = false;
  #onOpen: ((error?: Error) => void) | undefined;
  /** Called with each text message; pings are answered unasked. */
  onText: (text: string) => void = () => {};
  /** Called once, with what the server said at last: `close 1009 REASON`, or an error code. */
  onClose: (reason: string) => void = () => {};
  #closeReason = 'closed';
  isOpen = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** @throws Error with the status line when the server refuses the upgrade */
  static async open({ url, path, localAddress }: RawWebSocketOptions): Promise<RawWebSocket> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), localAddress });
    socket.setNoDelay(true);
    const client = new RawWebSocket(socket);
    await new Promise<void>((resolve, reject) => {
      client.#onOpen = (error) => {
        if (error === undefined) {
          resolve();
        } else {
          reject(error);
        }
      };
      socket.on('data', (data) => {
        client.#onData(data);
      });
      socket.on('error', (error: NodeJS.ErrnoException) => {
        client.#ended(error.code ?? error.message);
      });
      socket.on('close', () => {
        client.#ended(client.#closeReason);
      });
      socket.write(
        [
          `GET ${path} HTTP/1.1`,
          `Host: ${hostname}:${port}`,
          'Upgrade: websocket',
          'Connection: Upgrade',
          `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
          'Sec-WebSocket-Version: 13',
          HEAD_END.slice(2),
        ].join('\r\n'),
      );
    });
    return client;
  }

  /** Bytes handed over that the kernel has not taken yet. */
  get backlogBytes(): number {
    return this.#socket.writableLength;
  }

  /** @param frames one or many, already framed */
  write(frames: Buffer): void {
    if (this.isOpen) {
      this.#socket.write(frames);
    }
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #ended(reason: string): void {
    const wasOpen = this.isOpen;
    this.isOpen = false;
    const tell = this.#onOpen;
    this.#onOpen = undefined;
    tell?.(new Error(reason));
    if (wasOpen) {
      this.onClose(reason);
    }
  }

  #onData(data: Buffer): void {
    this.#received = this.#received.length === 0 ? data : Buffer.concat([this.#received, data]);
    if (!this.#isUpgraded && !this.#readHead()) {
      return;
    }
    for (let used = this.#readFrame(); used > 0; used = this.#readFrame()) {
      this.#received = this.#received.subarray(used);
    }
  }

  #readHead(): boolean {
    const end = this.#received.indexOf(HEAD_END);
    if (end < 0) {
      if (this.#received.length > MAX_HEAD_BYTES) {
        this.destroy();
      }
      return false;
    }
    const status =
      /^HTTP\/1\.1 (\d{3})/.exec(this.#received.toString('latin1', 0, end))?.[1] ?? 'no status';
    if (status !== '101') {
      this.#ended(`upgrade refused: ${status}`);
      this.destroy();
      return false;
    }
    this.#received = this.#received.subarray(end + HEAD_END.length);
    this.#isUpgraded = this.isOpen = true;
    this.#onOpen?.();
    this.#onOpen = undefined;
    return true;
  }

  /**
   * @returns bytes used; 0 when the frame is not whole yet. Server frames are never masked nor
   * longer than 64 KiB here.
   */
  #readFrame(): number {
    const data = this.#received;
    if (data.length < 2) {
      return 0;
    }
    const short = data[1]! & 127;
    if (short === 127 || (short === 126 && data.length < 4)) {
      return 0;
    }
    const [start, length] = short === 126 ? [4, data.readUInt16BE(2)] : [2, short];
    if (data.length < start + length) {
      return 0;
    }
    const payload = data.subarray(start, start + length);
    const opcode = data[0]! & 15;
    if (opcode === OPCODE.text) {
      this.onText(payload.toString());
    } else if (opcode === OPCODE.ping) {
      this.write(frame(payload, OPCODE.pong));
    } else if (opcode === OPCODE.close) {
      this.#closeReason =
        `close ${length >= 2 ? payload.readUInt16BE(0) : 1005} ${payload.toString('utf8', 2)}`.trim();
      this.#socket.end(frame(payload.subarray(0, 2), OPCODE.close));
      this.#ended(this.#closeReason);
    }
    return start + length;
  }
}

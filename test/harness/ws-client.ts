// A minimal client of the session WebSocket. It can send what a browser's client never sends:
// messages in a wrong order, invalid bytes, no offer.
import type { TestServer } from './server.ts';

/** A text message from the server; `atMs` by `performance.now()`. */
export interface Received {
  readonly text: string;
  readonly atMs: number;
}

/** Records all messages of one WebSocket. */
export class WsClient {
  readonly messages: Received[] = [];
  /** Binary frames received. The protocol has none from the server. */
  binaryFrames = 0;
  /** Resolves when the socket is closed. */
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #socket: WebSocket;
  #wake = (): void => {};
  #isClosed = false;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.binaryType = 'arraybuffer';
    socket.onmessage = ({ data }) => {
      if (typeof data === 'string') {
        this.messages.push({ text: data, atMs: performance.now() });
      } else {
        this.binaryFrames++;
      }
      this.#wake();
    };
    this.closed = new Promise((resolve) => {
      socket.onclose = ({ code, reason }) => {
        this.#isClosed = true;
        this.#wake();
        resolve({ code, reason });
      };
    });
  }

  /** Resolves once the handshake is done. @throws Error when it is refused. */
  static async open(
    server: Pick<TestServer, 'url'>,
    token: string,
    route = '/compose/webrtc/p2p',
  ): Promise<WsClient> {
    const url = new URL(route, server.url.replace('http', 'ws'));
    url.searchParams.set('session_token', token);
    const socket = new WebSocket(url);
    const client = new WsClient(socket);
    await new Promise<void>((resolve, reject) => {
      socket.onopen = () => resolve();
      socket.onerror = () =>
        reject(new Error(`the WebSocket handshake with ${url.pathname} was refused`));
    });
    return client;
  }

  get words(): readonly string[] {
    return this.messages.map(({ text }) => text.split(' ')[0]!);
  }

  send(data: string | Uint8Array<ArrayBuffer>): void {
    this.#socket.send(data);
  }

  /**
   * PCM in pieces of the usual size, as fast as the socket takes them.
   * @returns how many messages
   */
  speak(pcm: Int16Array<ArrayBuffer>, chunkBytes = 6000): number {
    const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      this.send(bytes.slice(at, at + chunkBytes));
    }
    return Math.ceil(bytes.length / chunkBytes);
  }

  /**
   * The first message, from number `from` on, that begins so.
   * @throws Error naming what came instead.
   */
  async waitFor(beginning: string, { from = 0, limitMs = 10_000 } = {}): Promise<Received> {
    const deadlineMs = performance.now() + limitMs;
    for (;;) {
      const found = this.messages.slice(from).find(({ text }) => text.startsWith(beginning));
      if (found) {
        return found;
      }
      if (this.#isClosed || performance.now() > deadlineMs) {
        throw new Error(
          'no ' +
            `'${beginning}' ${this.#isClosed ? 'before the close' : `within ${limitMs} ms`}; ` +
            `there were: ${this.messages.map(({ text }) => text.slice(0, 60)).join(' | ')}`,
        );
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(1, deadlineMs - performance.now()));
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  close(): Promise<{ code: number; reason: string }> {
    this.#socket.close();
    return this.closed;
  }
}

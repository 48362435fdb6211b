// WebSockets to providers: time limits, and errors with a reason.
import { WebSocket } from 'ws';
import { after, guarded } from '../../base/guard.ts';
import { ProviderError, statusError, toProviderError } from '../provider-error.ts';

/** Longest wait for the handshake. */
const HANDSHAKE_MS = 8000;
const MAX_MESSAGE_BYTES = 4 << 20;
/** Messages that wait for their reader. */
const MAX_WAITING = 2000;

/** What to connect to. */
export interface SocketRequest {
  /** Names the provider in errors. */
  readonly who: string;
  /** http or https: becomes ws or wss. */
  readonly url: string;
  readonly headers: Record<string, string>;
}

/** An open socket whose messages are JSON. */
export class ProviderSocket {
  readonly #who: string;
  readonly #socket: WebSocket;
  readonly #messages: Record<string, unknown>[] = [];
  #wake: (() => void) | undefined = undefined;
  #error: ProviderError | undefined = undefined;
  #isOver = false;

  private constructor(who: string, socket: WebSocket) {
    this.#who = who;
    this.#socket = socket;
    socket.on(
      'message',
      guarded('a message of a provider', (data: Buffer) => {
        this.#receive(data.toString('utf8'));
      }),
    );
    socket.on('error', () => {
      this.#end(new ProviderError('unreachable', `The connection to ${lower(who)} failed`));
    });
    socket.on('close', (code) => {
      this.#end(
        code === 1008
          ? new ProviderError('refused', `${who} closed the connection: not allowed`)
          : new ProviderError('cut_off', `${who} broke off its answer`),
      );
    });
  }

  /** @throws ProviderError when there is no connection in time */
  static async open({ who, url, headers }: SocketRequest): Promise<ProviderSocket> {
    const socket = new WebSocket(url.replace(/^http/, 'ws'), {
      headers,
      handshakeTimeout: HANDSHAKE_MS,
      maxPayload: MAX_MESSAGE_BYTES,
      followRedirects: false,
    });
    return await new Promise((resolve, reject) => {
      const own = new ProviderSocket(who, socket);
      socket.once('open', () => {
        resolve(own);
      });
      socket.once('unexpected-response', (request, response) => {
        request.destroy();
        reject(statusError(who, response.statusCode ?? 0));
      });
      socket.once('error', (error) => {
        const isLate = /timed out/.test(error.message);
        reject(
          isLate
            ? new ProviderError('timeout', `${who} did not answer in time`)
            : toProviderError(who, error),
        );
      });
    });
  }

  /** It can still be written to. */
  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  send(message: object): void {
    this.sendText(JSON.stringify(message));
  }

  sendText(text: string): void {
    if (this.isOpen) {
      this.#socket.send(text);
    }
  }

  /** PCM16, as it lies in memory: little-endian on every machine that is supported. */
  sendPcm(pcm: Int16Array): void {
    if (this.isOpen) {
      this.#socket.send(new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength));
    }
  }

  /**
   * The next message; undefined after `close`.
   * @param waitMs longest wait
   * @throws ProviderError: it was closed by the other side, or says nothing
   */
  async next(waitMs: number): Promise<Record<string, unknown> | undefined> {
    if (this.#messages.length === 0 && !this.#isOver) {
      let isLate = false;
      await new Promise<void>((resolve) => {
        const timer =
          waitMs === Infinity
            ? undefined
            : after(waitMs, 'the wait for a provider', () => {
                isLate = true;
                resolve();
              });
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      if (isLate) {
        throw new ProviderError('timeout', `${this.#who} did not answer in time`);
      }
    }
    const message = this.#messages.shift();
    if (message === undefined && this.#error !== undefined) {
      throw this.#error;
    }
    return message;
  }

  /** Idempotent. */
  close(): void {
    this.#end(undefined);
    this.#socket.terminate();
  }

  #receive(text: string): void {
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      message = undefined;
    }
    if (typeof message !== 'object' || message === null || this.#messages.length >= MAX_WAITING) {
      this.#end(new ProviderError('malformed', `${this.#who} sent something that is not expected`));
      this.#socket.terminate();
      return;
    }
    if (!this.#isOver) {
      this.#messages.push(message as Record<string, unknown>);
      this.#wake?.();
    }
  }

  #end(error: ProviderError | undefined): void {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#error = error;
      this.#wake?.();
    }
  }
}

const lower = (who: string): string => who.charAt(0).toLowerCase() + who.slice(1);

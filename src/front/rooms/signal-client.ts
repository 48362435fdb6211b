// The signal WebSocket to a LiveKit server: opens it, sends and receives protocol buffers, and keeps
// it alive. What the messages mean is not its business.
import type { LookupFunction } from 'node:net';
import { Ping, SignalRequest } from '@livekit/protocol';
import { WebSocket } from 'ws';
import { after, every, guarded } from '../../base/guard.ts';
import { monotonicMs, wallMs } from '../../base/time.ts';
import type { HostAddress, LiveKitServer } from './livekit-url.ts';
import { readServerSignal, type ServerSignal } from './server-signals.ts';
import type { SignalBudget } from './signal-budget.ts';

type ClientMessage = NonNullable<ConstructorParameters<typeof SignalRequest>[0]>['message'];

/** What a connection reports. */
export interface SignalListener {
  message(message: ServerSignal): void;
  /**
   * The connection could not be made, or is lost. Called once, not after `close`.
   * @param refusal what the server said when it refused the handshake for good; undefined:
   * another try may succeed
   */
  lost(reason: string, refusal: string | undefined): void;
}

const HANDSHAKE_TIMEOUT_MS = 5000;
const MAX_MESSAGE_BYTES = 1024 * 1024;
/** LiveKit servers send a message in one. */
const MAX_FRAGMENTS = 64;
/** What is read of a refused handshake. */
const MAX_REFUSAL_BYTES = 1024;
const REFUSAL_TIMEOUT_MS = 2000;

/** One signal connection. */
export class SignalConnection {
  readonly #socket: WebSocket;
  readonly #listener: SignalListener;
  readonly #budget: SignalBudget;
  #isOver = false;
  #isOpened = false;
  #pinger: NodeJS.Timeout | undefined = undefined;
  #heardMs = monotonicMs();

  /**
   * Connects to `/rtc/v1`.
   * @param joinRequest the parameter join_request
   */
  constructor(
    server: LiveKitServer,
    token: string,
    joinRequest: string,
    budget: SignalBudget,
    listener: SignalListener,
  ) {
    this.#listener = listener;
    this.#budget = budget;
    const url = new URL(`${server.url}/rtc/v1`);
    url.searchParams.set('access_token', token);
    url.searchParams.set('join_request', joinRequest);
    const socket = (this.#socket = new WebSocket(url, {
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      maxPayload: MAX_MESSAGE_BYTES,
      maxFragments: MAX_FRAGMENTS,
      perMessageDeflate: false,
      followRedirects: false,
      ...(server.addresses === undefined ? {} : { lookup: pinned(server.addresses) }),
    }));
    socket.on(
      'message',
      guarded('a message of a LiveKit server', (data: Buffer, isBinary: boolean) => {
        this.#receive(data, isBinary);
      }),
    );
    // The library answers pings by itself.
    socket.on('ping', (data) => {
      this.#isWithinBudget(data.length);
    });
    socket.on('open', () => {
      this.#isOpened = true;
    });
    socket.on('unexpected-response', (request, response) => {
      void readText(response).then((text) => {
        const status = response.statusCode ?? 0;
        this.#lose(`HTTP ${status}`, refusalOf(status, text));
        request.destroy();
      });
    });
    socket.on('error', (error) => {
      this.#lose(error.message, undefined);
    });
    socket.on('close', (code) => {
      this.#lose(`closed ${code}`, undefined);
    });
  }

  /** The server took the handshake, and so has seen the request. */
  get isOpened(): boolean {
    return this.#isOpened;
  }

  /** Sends a message. Does nothing when the connection is not open. */
  send(message: NonNullable<ClientMessage>): void {
    if (this.#socket.readyState === WebSocket.OPEN) {
      this.#socket.send(new SignalRequest({ message }).toBinary());
    }
  }

  /** Pings the server, and takes a missing answer for a loss. As its answer to the join says. */
  keepAlive(intervalSeconds: number, timeoutSeconds: number): void {
    clearInterval(this.#pinger);
    const intervalMs = Math.min(60, Math.max(1, intervalSeconds)) * 1000;
    const timeoutMs = Math.min(120, Math.max(5, timeoutSeconds)) * 1000;
    this.#heardMs = monotonicMs();
    this.#pinger = every(intervalMs, 'the ping of a LiveKit server', () => {
      if (monotonicMs() - this.#heardMs > timeoutMs) {
        this.#lose('no answer to pings', undefined);
        return;
      }
      this.send({ case: 'pingReq', value: new Ping({ timestamp: BigInt(wallMs()) }) });
    });
  }

  /** Closes it. The listener is told nothing more. */
  close(): void {
    this.#free();
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (this.#isOver || !this.#isWithinBudget(data.length) || !isBinary) {
      return;
    }
    this.#heardMs = monotonicMs();
    const message = readServerSignal(data);
    if (message === undefined) {
      this.#lose('a malformed message', undefined);
      return;
    }
    this.#listener.message(message);
  }

  #isWithinBudget(bytes: number): boolean {
    const isTaken = this.#budget.take(bytes, monotonicMs());
    if (!isTaken) {
      this.#lose('too many messages', undefined);
    }
    return isTaken;
  }

  #lose(reason: string, refusal: string | undefined): void {
    if (!this.#isOver) {
      this.#free();
      this.#listener.lost(reason, refusal);
    }
  }

  #free(): void {
    this.#isOver = true;
    clearInterval(this.#pinger);
    if (this.#socket.readyState === WebSocket.OPEN) {
      this.#socket.close(1000);
    } else if (this.#socket.readyState === WebSocket.CONNECTING) {
      this.#socket.terminate();
    }
  }
}

/** @returns undefined: another try may succeed */
function refusalOf(status: number, text: string): string | undefined {
  if (status < 400 || status >= 500 || status === 429) {
    return undefined;
  }
  const quoted = `HTTP ${status} ${text}`.trim();
  return status === 404
    ? `${quoted} (its server has no /rtc/v1: LiveKit servers have it since 1.9.1)`
    : quoted;
}

/** Connects to the addresses that were checked, whatever the name resolves to now. */
const pinned =
  (addresses: readonly HostAddress[]): LookupFunction =>
  (_host, options, done) => {
    const [first] = addresses;
    if (options.all === true) {
      done(null, [...addresses]);
    } else {
      done(null, first!.address, first!.family);
    }
  };

/** The beginning of a response's body as a line of printable text. */
function readText(response: NodeJS.ReadableStream & { destroy(): void }): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const settle = (): void => {
      clearTimeout(timer);
      response.destroy();
      resolve(text.replaceAll(/[^ -~]+/g, ' ').slice(0, 200));
    };
    const timer = after(REFUSAL_TIMEOUT_MS, 'the refusal of a LiveKit server', settle);
    response.on('data', (piece: Buffer) => {
      text += piece.toString('latin1');
      if (text.length > MAX_REFUSAL_BYTES) {
        settle();
      }
    });
    response.on('end', settle);
    response.on('error', settle);
  });
}

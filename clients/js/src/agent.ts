// The agent's side of a session that is watched elsewhere: for Node 22 and later, and other
// runtimes with WebSockets. It sends speech and commands, and is told what the face does.
import {
  type Command,
  Emitter,
  SessionError,
  type SessionEvents,
  type SessionState,
  type Timed,
  nextStart,
} from './events.ts';
import { type ServiceOptions, type TokenOptions, request } from './rest.ts';
import { RETRYABLE, Retry } from './retry.ts';
import { drained, sendOn } from './socket.ts';
import type { SpeechSource } from './speech.ts';
import { type SpeakOptions, SpeechQueue } from './speech-queue.ts';

export { ARKIT_BLEND_SHAPES } from './blend-shapes.ts';
export { type Command, SessionError, type SessionState } from './events.ts';
export { RequestError, type ServiceOptions, createToken, getIceServers, request } from './rest.ts';
export { type SpeechChunk, type SpeechSource, decodeSpeech } from './speech.ts';
export type { SpeakOptions } from './speech-queue.ts';

/** Options of `createSession`: those of a token, and of the two connections. */
export interface SessionRequest extends TokenOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** How long each side may take to come, and later be away, in seconds; default: 60. */
  readonly graceSeconds?: number;
  /** The motion of the face, as events: blend shapes, visemes, or both. */
  readonly motion?: 'none' | 'arkit' | 'visemes' | 'all';
}

/** The reply of `POST /sessions`. */
export interface CreatedSession {
  readonly sessionId: string;
  /** For `Agent`. Secret. */
  readonly agentUrl: string;
  /** For the page of the viewer: it can only watch. */
  readonly viewerUrl: string;
  readonly tokens: { readonly agent: string; readonly viewer: string };
  readonly iceServers: { readonly urls: string | string[]; readonly username?: string }[];
}

/** Opens a session with a connection for an agent and one for a viewer. @throws RequestError */
export async function createSession(options: SessionRequest): Promise<CreatedSession> {
  const { baseUrl, apiKey, apiKeyHeader, signal, ...json } = options;
  const service = { baseUrl, apiKey, apiKeyHeader, signal } as ServiceOptions;
  return await request<CreatedSession>('/sessions', { ...service, json });
}

/** How much of an utterance was heard. */
export interface Heard {
  readonly heardMs: number;
  /** Speech that will not be heard. */
  readonly droppedMs: number;
}

/** Options of an agent. */
export interface AgentOptions {
  /** From `createSession`. */
  readonly agentUrl: string | URL;
  /** Connect again when the socket is lost; default: true. */
  readonly reconnect?: boolean;
  /** For how long, in seconds: that of `createSession`; default: 60. */
  readonly graceSeconds?: number;
  /** Closes the socket. */
  readonly signal?: AbortSignal;
}

/** The details of an agent's events by their names. */
export interface AgentEvents extends Omit<SessionEvents, 'conversation' | 'autoplay'> {
  /** Somebody watches, or nobody. Speech waits while nobody does. */
  viewer: Timed & { readonly connected: boolean };
}

/** Its events are in `AgentEvents`. */
export class Agent extends Emitter<AgentEvents> {
  state: SessionState = 'connecting';
  /** The id of the session. */
  id: string | null = null;
  /** Whether somebody watches. */
  isWatched = false;

  readonly #options: AgentOptions;
  readonly #retry: Retry;
  readonly #speech: SpeechQueue;
  #socket: WebSocket;
  #hasConnected = false;
  #error: SessionError | null = null;
  #flushes = 0;
  /** Replies that have not come, in order. */
  readonly #interrupts: PromiseWithResolvers<Heard>[] = [];
  readonly #marks = new Map<string, PromiseWithResolvers<AgentEvents['flushed']>>();

  constructor(options: AgentOptions) {
    super();
    if (typeof WebSocket === 'undefined') {
      throw new Error('An agent needs WebSocket, which this runtime lacks. Use Node 22 or later.');
    }
    this.#options = options;
    this.#retry = new Retry((options.graceSeconds ?? 60) * 1000);
    this.#speech = new SpeechQueue({
      ready: async () => {
        await this.connected().catch(() => {});
      },
      send: (message) => sendOn(this.#socket, message),
      drained: () => drained(this.#socket),
    });
    this.#socket = this.#connect();
    options.signal?.addEventListener('abort', () => this.close(), { once: true });
    if (options.signal?.aborted) {
      this.close();
    }
  }

  /** Resolves when the socket is open. @throws SessionError that ended it before */
  async connected(): Promise<this> {
    while (this.state === 'connecting' || this.state === 'reconnecting') {
      await nextStart(this, 'state');
    }
    if (this.state === 'ended') {
      throw this.#error ?? new SessionError('CLOSED');
    }
    return this;
  }

  /**
   * Appends speech to what the face will say. It may come much faster than real time.
   * @returns true when all of it was sent, false when it was interrupted or the session ended
   * @throws Error when the source fails
   */
  async speak(source: SpeechSource, options?: SpeakOptions): Promise<boolean> {
    return await this.#speech.speak(source, options);
  }

  /**
   * Falls silent, and forgets all speech so far.
   * @returns how much of the utterance was heard: cut the reply there
   * @throws SessionError when the connection is lost before the reply
   */
  async interrupt(): Promise<Heard> {
    this.#speech.drop();
    const reply = Promise.withResolvers<Heard>();
    this.#interrupts.push(reply);
    this.command({ type: 'interrupt' });
    return await reply.promise;
  }

  /**
   * The speech so far is an utterance.
   * @returns when it is over: how much was heard, and whether it was interrupted
   * @throws SessionError when the connection is lost before
   */
  async flush(id = `utterance-${++this.#flushes}`): Promise<AgentEvents['flushed']> {
    await this.#speech.sent();
    const reply = Promise.withResolvers<AgentEvents['flushed']>();
    this.#marks.set(id, reply);
    this.command({ type: 'flush', id });
    return await reply.promise;
  }

  /**
   * Tells the face what to do. A command that cannot be obeyed gives the event `rejected`.
   * @throws SessionError CONNECTION_LOST when the socket is not open
   */
  command(command: Command): void {
    if (!sendOn(this.#socket, JSON.stringify(command))) {
      this.#forget();
      throw new SessionError('CONNECTION_LOST');
    }
  }

  /** Ends the session once what was sent has been spoken. */
  async finish(): Promise<void> {
    await this.#speech.sent();
    sendOn(this.#socket, 'DONE');
  }

  /** Closes the socket. The session waits for its grace time: another agent may come. */
  close(): void {
    this.#end('closed', null);
    this.#socket.close();
  }

  #connect(): WebSocket {
    const socket = new WebSocket(this.#options.agentUrl);
    socket.onmessage = ({ data }) => this.#receive(JSON.parse(String(data)));
    socket.onclose = () =>
      this.#lost(new SessionError(this.#hasConnected ? 'CONNECTION_LOST' : 'SOCKET_FAILED'));
    return socket;
  }

  #receive({ type, ...detail }: { type: string; [field: string]: unknown }): void {
    if (this.state === 'ended') {
      return;
    }
    switch (type) {
      case 'session':
        this.id = detail['session_id'] as string;
        this.#hasConnected = true;
        this.#retry.succeeded();
        this.#become('idle');
        return;
      case 'stopped':
        this.#end((detail['reason'] as string) || 'stop', null);
        return;
      case 'error': {
        const { code, message } = detail as { code: string; message?: string };
        this.#end('error', new SessionError(code, message));
        return;
      }
      case 'viewer':
        this.isWatched = detail['connected'] as boolean;
        break;
      case 'speaking':
        this.#become('speaking');
        break;
      case 'silent':
        this.#become('idle');
        break;
      case 'interrupted':
        this.#interrupts.shift()?.resolve(detail as unknown as Heard);
        break;
      case 'flushed': {
        const id = detail['id'] as string;
        this.#marks.get(id)?.resolve(detail as unknown as AgentEvents['flushed']);
        this.#marks.delete(id);
        break;
      }
      default:
    }
    this.emit(type as 'started', detail as unknown as AgentEvents['started']);
  }

  /** Replies do not come any more. */
  #forget(): void {
    const error = new SessionError('CONNECTION_LOST');
    for (const reply of [...this.#interrupts.splice(0), ...this.#marks.values()]) {
      reply.reject(error);
    }
    this.#marks.clear();
  }

  #lost(error: SessionError): void {
    this.#forget();
    if (this.state === 'ended') {
      return;
    }
    const { reconnect = true } = this.#options;
    const next =
      reconnect && this.#hasConnected && RETRYABLE.includes(error.code)
        ? this.#retry.next(() => {
            this.#socket = this.#connect();
          })
        : undefined;
    if (next === undefined) {
      this.#end('lost', error);
    } else {
      this.#become('reconnecting');
      this.emit('reconnecting', { error, ...next });
    }
  }

  #become(state: SessionState): void {
    if (this.state !== state && this.state !== 'ended') {
      this.state = state;
      this.emit('state', state);
    }
  }

  #end(reason: string, error: SessionError | null): void {
    if (this.state !== 'ended') {
      this.#error = error;
      this.#speech.drop();
      this.#retry.close();
      this.#become('ended');
      this.#forget();
      this.emit('end', { reason, error });
    }
  }
}

/**
 * Connects, and resolves when the socket is open.
 * @throws SessionError
 * @throws Error in a runtime without WebSocket (Node before 22)
 */
export const connectAgent = async (options: AgentOptions): Promise<Agent> =>
  await new Agent(options).connected();

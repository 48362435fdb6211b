// Sessions of clients of this server that other servers run, since there is no room here, or this
// server drains. Media goes from the other server to the client directly.
import { WebSocket } from 'ws';
import { ServiceError } from '../../base/errors.ts';
import { every } from '../../base/guard.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, sleep, wallMs } from '../../base/time.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import { MAX_MESSAGE_BYTES, type Socket, type SocketHandlers } from '../http/socket.ts';
import type { SocketRequest } from '../http/socket.ts';
import { EarlyMessageMemory } from '../sessions/early-messages.ts';
import type { MessageWriter } from '../sessions/server-messages.ts';
import type { Elsewhere, SocketSession } from '../sessions/session-ports.ts';
import type { SessionTokens } from '../sessions/session-tokens.ts';
import type { NodeRecord } from './node-record.ts';
import type { NodeRegistry } from './node-registry.ts';
import { RelayedSession } from './relayed-session.ts';
import { type RelayTickets, TICKET_HEADER } from './relay-tickets.ts';
import type { RoomiestNodes } from './roomiest-nodes.ts';
import { nodeOf } from './session-directory.ts';

/** Options of Relay. */
export interface RelayOptions {
  readonly nodes: RoomiestNodes;
  readonly registry: Pick<NodeRegistry, 'find' | 'nodeIdOf'>;
  /** Id of this server. */
  readonly nodeId: string;
  readonly tickets: RelayTickets;
  readonly tokens: Pick<SessionTokens, 'find'>;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Other servers that are asked for one session. */
const MAX_TRIES = 3;
const HANDSHAKE_TIMEOUT_MS = 2000;
/** How often the other servers are pinged. */
const CHECK_MS = 2000;
/** How often a drain looks whether all sessions are over. */
const DRAIN_POLL_MS = 50;

/** Passes clients on, and takes those that other servers pass on. */
export class Relay implements Elsewhere {
  readonly #options: RelayOptions;
  readonly #sessions = new Set<RelayedSession>();
  readonly #memory = new EarlyMessageMemory();
  readonly #timer: NodeJS.Timeout;
  readonly #count: (outcome: 'opened' | 'unreachable' | 'refused' | 'lost') => void;
  readonly #onMessage: (direction: 'in' | 'out', bytes: number) => void;
  /** When the drain of this server ends, monotonic; undefined: it does not drain. */
  #drainEndMs: number | undefined = undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    const { metrics } = options;
    const outcomes = {
      opened: metrics.counter('mouthpiece_relays_total', { outcome: 'opened' }),
      unreachable: metrics.counter('mouthpiece_relays_total', { outcome: 'unreachable' }),
      refused: metrics.counter('mouthpiece_relays_total', { outcome: 'refused' }),
      lost: metrics.counter('mouthpiece_relays_total', { outcome: 'lost' }),
    };
    this.#count = (outcome) => {
      outcomes[outcome].add();
    };
    const bytes = {
      in: metrics.counter('mouthpiece_relay_bytes_total', { direction: 'in' }),
      out: metrics.counter('mouthpiece_relay_bytes_total', { direction: 'out' }),
    };
    this.#onMessage = (direction, count) => {
      bytes[direction].add(count);
    };
    const sessions = metrics.gauge('mouthpiece_relayed_sessions');
    metrics.onScrape(() => {
      sessions.set(this.#sessions.size);
    });
    this.#timer = every(CHECK_MS, 'the check of relayed sessions', () => {
      const nowMs = monotonicMs();
      for (const session of this.#sessions) {
        session.check(nowMs);
      }
    }).unref();
  }

  async open(
    socket: Socket,
    request: SocketRequest,
    write: MessageWriter,
  ): Promise<SocketSession | undefined> {
    if (request.header(TICKET_HEADER) !== '' || request.rawQuery === undefined) {
      return undefined; // it was passed on already
    }
    if ((await this.#options.tokens.find(request.query.get('session_token') ?? '')) === undefined) {
      throw new ServiceError('INVALID_SESSION_TOKEN');
    }
    socket.trust();
    const tried = new Set<string>();
    const next = (): Promise<WebSocket | undefined> => this.#connect(request, tried);
    const upstream = await next();
    if (upstream === undefined) {
      return undefined;
    }
    return this.#start(socket, write, upstream, tried, () => {
      this.#count('refused');
      return next();
    });
  }

  async openLeg(
    sessionId: string,
    socket: Socket,
    request: SocketRequest,
    write: MessageWriter,
  ): Promise<SocketSession | undefined> {
    if (request.header(TICKET_HEADER) !== '' || request.rawQuery === undefined) {
      return undefined;
    }
    const node = await this.#otherNodeOf(sessionId);
    if (node === undefined) {
      return undefined;
    }
    socket.trust();
    const upstream = await this.#tryNode(node, request);
    if (upstream === undefined) {
      throw new ServiceError('NODE_UNREACHABLE');
    }
    return this.#start(socket, write, upstream, new Set([node.id]));
  }

  /** Whether another server runs a session. @throws ServiceError STORE_UNAVAILABLE */
  async runsElsewhere(sessionId: string): Promise<boolean> {
    return (await this.#otherNodeOf(sessionId)) !== undefined;
  }

  async #otherNodeOf(sessionId: string): Promise<NodeRecord | undefined> {
    const { registry, nodeId } = this.#options;
    const node = await nodeOf(registry, sessionId);
    return node?.id === nodeId ? undefined : node;
  }

  /**
   * @param asked ids of servers, that of `upstream` last
   * @param next connects to another server after a refusal; undefined: it is a leg
   */
  #start(
    socket: Socket,
    write: MessageWriter,
    upstream: WebSocket,
    asked: ReadonlySet<string>,
    next?: () => Promise<WebSocket | undefined>,
  ): RelayedSession {
    const session = new RelayedSession(
      {
        socket,
        write,
        isLeg: next === undefined,
        next: next ?? (() => Promise.resolve(undefined)),
        memory: this.#memory,
        onMessage: this.#onMessage,
        onEnd: (ended, lost) => {
          this.#sessions.delete(ended);
          if (lost !== undefined) {
            this.#count('lost');
            const node = [...asked].at(-1);
            this.#options.log.warn({ node, why: lost }, 'the server of a relayed session is lost');
          }
        },
      },
      upstream,
    );
    this.#sessions.add(session);
    if (this.#drainEndMs !== undefined) {
      this.#announceEnd(session, this.#drainEndMs);
    }
    return session;
  }

  /** The same handlers, for clients that other servers pass on too. */
  accepting<Data>(handlers: SocketHandlers<Data>): SocketHandlers<Data> {
    return {
      ...handlers,
      admit: (request) => {
        const ticket = request.header(TICKET_HEADER);
        const target = targetOf(request);
        if (ticket !== '' && !this.#options.tickets.redeem(ticket, target, wallMs())) {
          throw new ServiceError('INVALID_RELAY_TICKET');
        }
        handlers.admit?.(request);
      },
      open: (socket, request) => {
        const isRelayed = request.header(TICKET_HEADER) !== '';
        const client = request.header('x-forwarded-for');
        handlers.open(socket, isRelayed && client !== '' ? { ...request, ip: client } : request);
      },
    };
  }

  /** Tells all sessions that this server stops, and ends them as SessionService.drain does. */
  async drain(drainMs: number, isHurried: () => boolean): Promise<void> {
    const endMs = (this.#drainEndMs = monotonicMs() + drainMs);
    for (const session of this.#sessions) {
      this.#announceEnd(session, endMs);
    }
    while (this.#sessions.size > 0 && monotonicMs() < endMs && !isHurried()) {
      await sleep(DRAIN_POLL_MS);
    }
    for (const session of [...this.#sessions]) {
      session.end('server_stopped');
    }
  }

  close(): void {
    clearInterval(this.#timer);
    for (const session of [...this.#sessions]) {
      session.end('server_stopped');
    }
  }

  #announceEnd(session: RelayedSession, endMs: number): void {
    const seconds = Math.max(0, Math.round((endMs - monotonicMs()) / 1000));
    session.announceEnd(seconds);
  }

  /** Connects to the next server that was not tried. @returns undefined when there is none */
  async #connect(request: SocketRequest, tried: Set<string>): Promise<WebSocket | undefined> {
    const { nodes } = this.#options;
    while (tried.size < MAX_TRIES) {
      const node = await nodes.next(tried);
      if (node === undefined) {
        return undefined;
      }
      tried.add(node.id);
      const upstream = await this.#tryNode(node, request);
      if (upstream !== undefined) {
        return upstream;
      }
    }
    return undefined;
  }

  /** @returns undefined when the server does not answer */
  async #tryNode(node: NodeRecord, request: SocketRequest): Promise<WebSocket | undefined> {
    const { log } = this.#options;
    try {
      const upstream = await this.#handshake(node, request);
      this.#count('opened');
      log.info({ node: node.id, ip: request.ip }, 'a session is passed on to another server');
      return upstream;
    } catch (error) {
      this.#count('unreachable');
      log.warn(
        { node: node.id, url: node.url, err: (error as Error).message },
        'another server cannot be reached: set NODE_URL there to where the others reach it',
      );
      return undefined;
    }
  }

  #handshake(node: NodeRecord, request: SocketRequest): Promise<WebSocket> {
    const target = targetOf(request);
    const { protocol, host } = new URL(request.serverOrigin);
    return new Promise((resolve, reject) => {
      const upstream = new WebSocket(`${node.url.replace(/^http/, 'ws')}${target}`, {
        handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
        maxPayload: MAX_MESSAGE_BYTES,
        perMessageDeflate: false,
        followRedirects: false,
        autoPong: false,
        headers: {
          [TICKET_HEADER]: this.#options.tickets.issue(node.id, target, wallMs()),
          // As the client reached this server: links for it must lead here.
          host,
          'x-forwarded-proto': protocol.slice(0, -1),
          'x-forwarded-for': request.ip,
          ...traceHeaders(request),
        },
      });
      upstream.on('open', () => {
        upstream.pause(); // until the session listens
        resolve(upstream);
      });
      upstream.on('error', reject);
    });
  }
}

/** Of W3C Trace Context, so that a trace goes on at the other server. Others are not passed on. */
const traceHeaders = (request: SocketRequest): Record<string, string> =>
  Object.fromEntries(
    ['traceparent', 'tracestate']
      .map((name) => [name, request.header(name)] as const)
      .filter(([, value]) => /^[ -~]{1,512}$/.test(value)),
  );

const targetOf = ({ path, rawQuery = '' }: SocketRequest): string => `${path}?${rawQuery}`;

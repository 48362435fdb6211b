// A listener on a free port with a table of routes of the test's own, without any store.
import net from 'node:net';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { ServiceError } from '../../../src/base/errors.ts';
import { BodyBudget } from '../../../src/front/http/body-budget.ts';
import { BODY_PACE } from '../../../src/front/http/body-reader.ts';
import {
  CLIENT_LIMITS,
  ClientLimits,
  type ClientLimitSettings,
  type Refusal,
} from '../../../src/front/http/client-limits.ts';
import type { HttpContext } from '../../../src/front/http/http-context.ts';
import { listen, type Listener } from '../../../src/front/http/listener.ts';
import type { Route } from '../../../src/front/http/route.ts';
import { Router, type RemovedPath } from '../../../src/front/http/router.ts';
import { SocketRoutes, type SocketOptions } from '../../../src/front/http/socket.ts';

export interface TestHttp {
  readonly url: string;
  readonly port: number;
  readonly sockets: SocketRoutes;
  /** What was logged, as JSON lines. */
  readonly logged: () => string;
  readonly refusals: readonly Refusal[];
  readonly listener: Listener;
  readonly requests: { route: string; method: string; status: number }[];
  close(): Promise<void>;
}

export async function serve(
  routes: readonly Route[],
  removed: readonly RemovedPath[] = [],
  socketOptions: Partial<SocketOptions> = {},
  given: Partial<HttpContext> = {},
  clientLimits: Partial<ClientLimitSettings> = {},
  maxConnections = 1000,
): Promise<TestHttp> {
  let logged = '';
  const log = pino(
    { level: 'trace' },
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        logged += chunk.toString();
        done();
      },
    }),
  );
  const refusals: Refusal[] = [];
  const onRefused = (reason: Refusal): void => {
    refusals.push(reason);
  };
  const limits = new ClientLimits({ ...CLIENT_LIMITS, ...clientLimits }, onRefused);
  const defaults = { allowedOrigins: [], maxConnections: 10, limits, log };
  const sockets = new SocketRoutes({ ...defaults, ...socketOptions });
  const requests: TestHttp['requests'] = [];
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    settings: 'HOST and PORT',
    sockets,
    maxConnections,
    context: {
      router: new Router(routes, removed),
      log,
      apiKeyHeaders: ['x-service-api-key', 'x-other-key'],
      secure: false,
      limits,
      bodyBudget: new BodyBudget(),
      bodyPace: BODY_PACE,
      authenticate: (key) =>
        key === 'right'
          ? Promise.resolve({ ownerId: 'o', keyId: 'k', keyName: 'n', isOperator: false })
          : Promise.reject(new ServiceError('INVALID_API_KEY')),
      onRequest: ({ route, method, status }) => {
        requests.push({ route, method, status });
      },
      ...given,
    },
  });
  const { port } = listener;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    sockets,
    logged: () => logged,
    requests,
    refusals,
    listener,
    close: () => listener.close(100),
  };
}

/** Sends raw bytes and gives back all that comes until the server closes, or `until` matches. */
export async function raw(
  port: number,
  text: string,
  until: RegExp,
  timeoutMs = 5000,
): Promise<string> {
  return await new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    let got = '';
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no match for ${until} in: ${got.slice(0, 500)}`));
    }, timeoutMs);
    const done = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(got);
    };
    socket.on('data', (data) => {
      got += data.toString('latin1');
      if (until.test(got)) {
        done();
      }
    });
    socket.on('error', done);
    socket.on('close', done);
    socket.write(text, 'latin1');
  });
}

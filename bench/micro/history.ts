// GET /history/sessions with a long history: how long the whole of it takes, one day of it, and
// whether other requests wait meanwhile.
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { createLogger } from '../../src/base/log.ts';
import { newUuid } from '../../src/base/ids.ts';
import { wallSeconds } from '../../src/base/time.ts';
import { historyRoutes } from '../../src/front/api/history.ts';
import { systemRoutes } from '../../src/front/api/system.ts';
import { BodyBudget } from '../../src/front/http/body-budget.ts';
import { BODY_PACE } from '../../src/front/http/body-reader.ts';
import { CLIENT_LIMITS, ClientLimits } from '../../src/front/http/client-limits.ts';
import { listen } from '../../src/front/http/listener.ts';
import { Router } from '../../src/front/http/router.ts';
import { SocketRoutes } from '../../src/front/http/socket.ts';
import { History } from '../../src/front/history/history.ts';
import { connectStore } from '../../src/front/process/open-store.ts';
import { quantile } from '../harness.ts';

export interface HistoryFigures {
  readonly records: number;
  readonly writesPerSecond: number;
  /** The whole history over HTTP. */
  readonly wholeMs: number;
  readonly wholeBytes: number;
  /** A hundredth of it by time range. */
  readonly sliceMs: number;
  /**
   * 99th percentile of /readyz (which asks Redis) while the whole history is read again and again.
   */
  readonly othersP99Ms: number;
}

const OWNER = 'bench';

export async function measureHistory(records: number): Promise<HistoryFigures> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-bench-'));
  const log = createLogger('silent');
  const opened = await connectStore({ redis: undefined, dataDir }, log);
  const history = new History(opened.store, 30);
  const limits = new ClientLimits(CLIENT_LIMITS, () => {});
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    settings: 'HOST and PORT',
    maxConnections: 1000,
    sockets: new SocketRoutes({ allowedOrigins: [], maxConnections: 1, limits, log }),
    context: {
      router: new Router([
        ...historyRoutes(history),
        ...systemRoutes({
          storage: () => true,
          room: () => 1,
          readiness: { redis: () => opened.store.ping() },
          metrics: () => Promise.resolve({ contentType: 'text/plain', body: '' }),
        }),
      ]),
      limits,
      bodyBudget: new BodyBudget(),
      bodyPace: BODY_PACE,
      log,
      apiKeyHeaders: ['x-service-api-key'],
      secure: false,
      onRequest: () => {},
      authenticate: () =>
        Promise.resolve({ ownerId: OWNER, keyId: 'k', keyName: 'n', isOperator: false }),
    },
  });
  const url = `http://127.0.0.1:${listener.port}`;
  try {
    const now = wallSeconds();
    const writesMs = await fill(history, records, now);
    const whole = await timed(`${url}/history/sessions`);
    const slices = [];
    for (let i = 0; i < 20; i++) {
      slices.push(
        (await timed(`${url}/history/sessions?startTime=${now - Math.ceil(records / 100)}`)).ms,
      );
    }
    return {
      records,
      writesPerSecond: records / (writesMs / 1000),
      wholeMs: whole.ms,
      wholeBytes: whole.bytes,
      sliceMs: quantile(slices, 0.5),
      othersP99Ms: await othersMeanwhile(url),
    };
  } finally {
    await listener.close(0);
    await opened.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** One session a second, the last of them just now. */
async function fill(history: History, records: number, now: number): Promise<number> {
  const startMs = performance.now();
  for (let first = 0; first < records; first += 500) {
    await Promise.all(
      Array.from({ length: Math.min(500, records - first) }, (_record, i) => {
        const startTime = now - first - i;
        return history.write(
          {
            id: newUuid(),
            userId: OWNER,
            sessionTokenId: 't'.repeat(32),
            face_id: 'ava',
            kind: 'p2p',
            endUserAggregator: 'team',
            apiKeyName: 'bench',
            sessionTotalTime: 1,
            startTime,
            endTime: startTime + 1,
          },
          now,
        );
      }),
    );
  }
  return performance.now() - startMs;
}

async function timed(url: string): Promise<{ ms: number; bytes: number }> {
  const startMs = performance.now();
  const bytes = (await (await fetch(url)).arrayBuffer()).byteLength;
  return { ms: performance.now() - startMs, bytes };
}

async function othersMeanwhile(url: string): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 3; round++) {
    const reading = timed(`${url}/history/sessions`);
    const state = { done: false };
    void reading.finally(() => {
      state.done = true;
    });
    while (!state.done) {
      times.push((await timed(`${url}/readyz`)).ms);
    }
    await reading;
  }
  return quantile(times, 0.99);
}

if (process.argv[1] === import.meta.filename) {
  const figures = await measureHistory(Number(process.argv[2] ?? 100_000));
  for (const [name, value] of Object.entries(figures)) {
    console.log(`${name.padEnd(16)} ${value.toFixed(1)}`);
  }
}

// The watchdog of workers: ends a worker that hangs, and none because the main thread or the whole
// machine stalled.
import assert from 'node:assert/strict';
import inspector from 'node:inspector';
import { test } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import { sleep } from '../../../src/base/time.ts';
import { WorkerPool } from '../../../src/front/placement/worker-pool.ts';
import { Watchdog } from '../../../src/front/placement/watchdog.ts';

import type { FromWorker } from '../../../src/link/messages.ts';
import { Metrics } from '../../../src/metrics/metrics.ts';
import { native } from '../../../src/native/addon.ts';
import { DEFAULT_FACES, readAnyDefaultFace } from '../../../src/front/faces/default-faces.ts';
import { patience } from '../../harness/machine.ts';

const OPTIONS = { startDeadlineMs: 30_000, silenceDeadlineMs: 10_000, checkIntervalMs: 1000 };

/**
 * Checks at the given times.
 * @param heartbeats the worker's count at a time
 * @returns when the worker would be ended, and why
 */
function watch(
  times: Iterable<number>,
  heartbeats: (nowMs: number) => number,
  isReady = true,
): [number, string] | undefined {
  const watchdog = new Watchdog(OPTIONS, 0);
  for (const nowMs of times) {
    const end = watchdog.check(nowMs, heartbeats(nowMs), isReady);
    if (end !== undefined) {
      return [nowMs, end];
    }
  }
  return undefined;
}

function* everySecond(fromMs: number, untilMs: number): Generator<number> {
  for (let ms = fromMs; ms <= untilMs; ms += 1000) {
    yield ms;
  }
}

test('a worker without a heartbeat is ended after its deadline, and no other', () => {
  assert.equal(
    watch(everySecond(1000, 100_000), (ms) => Math.floor(ms / 250)),
    undefined,
  );
  assert.deepEqual(
    watch(everySecond(1000, 100_000), (ms) => Math.floor(Math.min(ms, 20_000) / 250)),
    [30_000, 'unresponsive'],
  );
});

test('a stall of the main thread for a minute ends no worker, even if the workers stalled too', () => {
  const times = [...everySecond(1000, 5000), 65_000, ...everySecond(65_100, 100_000)];
  assert.equal(
    watch(times, (ms) => Math.floor(ms / 250)),
    undefined,
  );
  assert.equal(
    watch(times, (ms) => (ms <= 65_000 ? 20 : 21 + Math.floor((ms - 65_000) / 250))),
    undefined,
    'the machine slept',
  );
  // Repeated stalls, with a heartbeat in each.
  assert.equal(
    watch([20_000, 40_000, 60_000, 80_000, 100_000], (ms) => ms),
    undefined,
  );
});

test('a worker that hangs is detected although the main thread stalls', () => {
  const times = [...everySecond(1000, 3000), 18_000, ...everySecond(19_000, 40_000)];
  const [atMs] = watch(times, () => 7) ?? assert.fail('not detected');
  assert.ok(atMs > 20_000 && atMs <= 28_000, `after ${atMs} ms`);
});

test('a start has its own deadline, for which a stall does not count either', () => {
  assert.deepEqual(
    watch(everySecond(1000, 100_000), () => 0, false),
    [30_000, 'start_failed'],
  );
  assert.equal(
    watch([1000, 60_000, ...everySecond(61_000, 80_000)], () => 0, false),
    undefined,
  );
});

test('real threads: a stall of the main thread ends no worker, a hanging worker is replaced', async () => {
  const silenceDeadlineMs = 2000 * patience();
  const pool = await WorkerPool.start({
    cpus: [native.allowedCpus().at(-1) ?? undefined],
    isRealtime: false,
    media: {
      bindAddress: '127.0.0.1',
      announcedAddresses: ['127.0.0.1'],
      ports: { first: 0, last: 0 },
      maxSessionsPerWorker: 4,
      maxLoad: 0.8,
      videoBitrateKbps: 500,
      maxVideoBitrateKbps: 500,
      motion: 'natural',
      audioBitrateKbps: 24,
    },
    calibrationFace: readAnyDefaultFace(DEFAULT_FACES),
    wav2lip: undefined,
    silenceDeadlineMs,
    metrics: new Metrics(),
    log: createLogger('silent'),
  });
  const session = new inspector.Session();
  session.connect();
  try {
    const first = pool.handles[0]!;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, silenceDeadlineMs * 1.5);
    await sleep(silenceDeadlineMs);
    assert.equal(pool.handles[0], first);
    assert.equal(first.isReady, true, 'the stall did not end the worker');

    const ends: string[] = [];
    void first.gone.then((end) => {
      ends.push(end);
    });
    let told = 0;
    first.extraCost.set('slow', 0.5);
    first.attach({
      id: 'bad',
      renderer: 'slow',
      weight: 1,
      receive: () => {
        throw new Error('an exception of one session ends no other');
      },
    });
    const attached = {
      id: 's',
      renderer: 'slow',
      weight: 1,
      receive: (message: FromWorker) => {
        if (message.type === 'ended' && message.reason === 'worker_lost') {
          told++;
        }
      },
    };
    first.attach(attached);
    assert.deepEqual([first.sessions, first.extraPromised], [2, 1]);
    first.detach(attached);
    first.detach(attached);
    assert.deepEqual([first.sessions, first.extraPromised], [1, 0.5]);
    first.attach(attached);
    session.on('NodeWorker.attachedToWorker', ({ params }) => {
      const message = JSON.stringify({
        id: 1,
        method: 'Runtime.evaluate',
        // It hangs without the core that other tests want.
        params: { expression: 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)' },
      });
      session.post('NodeWorker.sendMessageToWorker', { sessionId: params.sessionId, message });
    });
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
    await sleep(100);
    session.post('NodeWorker.disable');
    const untilMs = performance.now() + 6 * silenceDeadlineMs + 20_000;
    while ((pool.handles[0] === first || !pool.handles[0].isReady) && performance.now() < untilMs) {
      await sleep(50);
    }
    assert.deepEqual(ends, ['unresponsive']);
    assert.equal(told, 1, 'its session is told once');
    assert.deepEqual([first.sessions, first.extraPromised], [0, 0]);
    assert.equal(pool.size, 1, 'there is a new one');
  } finally {
    session.disconnect();
    await pool.stop();
  }
});

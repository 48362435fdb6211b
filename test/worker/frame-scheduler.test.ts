// The frame scheduler with real sessions on a made-up clock.
import assert from 'node:assert/strict';
import { afterEach, beforeAll, test, vi } from 'vitest';
import { monotonicMs } from '../../src/base/time.ts';
import type { FromWorker } from '../../src/link/messages.ts';
import { FRAME_MS } from '../../src/media/timeline.ts';
import { SpeechModel } from '../../src/pipeline/inference/speech-model.ts';
import { SLOTS_PER_FRAME } from '../../src/worker/frame-clock.ts';
import { FrameScheduler } from '../../src/worker/frame-scheduler.ts';
import type { WorkerSession } from '../../src/worker/worker-session.ts';
import { joinSession, sinkPeer, workerContext } from './sessions.ts';

interface Shown {
  readonly session: WorkerSession;
  readonly frame: number;
  readonly lateMs: number;
}

interface Bench {
  readonly sessions: readonly WorkerSession[];
  readonly scheduler: FrameScheduler;
  readonly shown: Shown[];
  readonly posted: FromWorker[];
  /** Lets the clock and the timers run. */
  readonly run: (ms: number) => Promise<void>;
  /** The next run of the pipeline takes so long. */
  readonly stall: (ms: number) => void;
}

let model: SpeechModel;
beforeAll(async () => {
  model = await SpeechModel.load({ maxBatch: 8 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** `count` connected sessions in a scheduler whose pipeline only takes notes. */
async function start(count: number): Promise<Bench> {
  const context = workerContext(model, sinkPeer);
  const sessions: WorkerSession[] = [];
  for (let n = 0; n < count; n++) {
    const { session } = await joinSession(`${n}0000000-0000-4000-8000-00000000000c`, context);
    sessions.push(session);
  }
  const [startMs, posted, shown] = [monotonicMs(), [] as FromWorker[], [] as Shown[]];
  let [stalledMs, nextStallMs] = [0, 0];
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'Date'],
    now: 0,
  });
  const nowMs = (): number => startMs + Date.now() + stalledMs;
  const scheduler = new FrameScheduler({
    pipeline: {
      prepareSpeech: () => {},
      run: (due, dueCount) => {
        for (const session of due.slice(0, dueCount)) {
          const lateMs = session.clock.lateMs(nowMs());
          shown.push({ session, frame: session.clock.frame, lateMs });
        }
        stalledMs += nextStallMs;
        nextStallMs = 0;
        return Promise.resolve();
      },
    },
    metrics: context.metrics,
    post: (message) => {
      posted.push(message);
    },
    threadCpuMs: () => (nowMs() - startMs) / 2,
    costPerSession: 0.05,
    nowMs,
  });
  for (const session of sessions) {
    scheduler.add(session);
  }
  return {
    sessions,
    scheduler,
    shown,
    posted,
    run: async (ms) => {
      await vi.advanceTimersByTimeAsync(ms);
    },
    stall: (ms) => {
      nextStallMs = ms;
    },
  };
}

const end = ({ sessions, scheduler }: Bench): void => {
  for (const session of sessions) {
    session.end('done');
  }
  scheduler.stop();
};

test('sessions take different slots, and each frame is shown once and on time', async () => {
  const bench = await start(SLOTS_PER_FRAME + 1);
  await bench.run(1000);
  assert.deepEqual(
    bench.sessions.map(({ clock }) => clock.slot),
    [0, 1, 2, 3, 0],
  );
  for (const session of bench.sessions) {
    const own = bench.shown.filter((entry) => entry.session === session);
    assert.deepEqual(
      own.map(({ frame }) => frame),
      own.map((_, i) => i),
      'no frame twice and none left out',
    );
    assert.ok(own.length >= 29 && own.length <= 31, `${own.length} frames in a second`);
    // Timers count whole milliseconds.
    assert.ok(own.slice(1).every(({ lateMs }) => lateMs >= 0 && lateMs <= 1));
    assert.equal(session.stats.framesSkipped, 0);
  }
  end(bench);
});

test('after a stall a late frame is dropped and reported, and the next one is on time', async () => {
  const bench = await start(1);
  const [session] = bench.sessions as [WorkerSession];
  await bench.run(500);
  bench.scheduler.reportLoad();
  const before = bench.shown.at(-1)!.frame;
  bench.stall(FRAME_MS * 2.8);
  await bench.run(200);
  const frames = bench.shown.filter(({ frame }) => frame > before);
  const [first, second, third] = frames as [Shown, Shown, Shown];
  assert.equal(first.frame, before + 1, 'the stall is after this one');
  // Two frames pass in the stall; the second is 0.8 frames late when it ends, and dropped.
  assert.equal(second.frame, first.frame + 3);
  assert.equal(third.frame, second.frame + 1);
  assert.ok(second.lateMs <= 1, `late by ${second.lateMs} ms`);
  assert.equal(session.stats.framesSkipped, 2);
  bench.scheduler.reportLoad();
  const [calm, stalled] = bench.posted.filter((message) => message.type === 'load');
  assert.equal(calm!.latenessP99Ms < 2, true);
  assert.ok(Math.abs(stalled!.latenessP99Ms - FRAME_MS * 0.8) < 2);
  end(bench);
});

test('a session that is over leaves, and without sessions no timer is left', async () => {
  const bench = await start(2);
  await bench.run(200);
  bench.sessions[0]!.end('done');
  await bench.run(200);
  assert.equal(bench.scheduler.size, 1);
  assert.equal(bench.shown.at(-1)!.session, bench.sessions[1]);
  bench.scheduler.remove(bench.sessions[1]!);
  await bench.run(50);
  assert.equal(vi.getTimerCount(), 0);
  const { length } = bench.shown;
  bench.scheduler.add(bench.sessions[1]!);
  await bench.run(100);
  assert.ok(bench.shown.length > length, 'it starts again with the next session');
  end(bench);
});

test('an audio packet leaves every 20 ms, whatever the slot', async () => {
  const bench = await start(2);
  await bench.run(1000);
  for (const { audio } of bench.sessions) {
    assert.ok(audio.nextPacketMs >= 980 && audio.nextPacketMs <= 1040, `${audio.nextPacketMs}`);
  }
  end(bench);
});

// The frame loop without a network: what it allocates per frame, and that a session that breaks
// ends alone.
import assert from 'node:assert/strict';
import { beforeAll, test } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { monotonicMs } from '../../src/base/time.ts';
import type { FromWorker } from '../../src/link/messages.ts';
import {
  SPEECH_RING_SAMPLES,
  type SpeechRingWriter,
  createSpeechRing,
} from '../../src/link/speech-ring.ts';
import { FRAME_MS } from '../../src/media/timeline.ts';
import { SharedMetrics, createSharedMetrics } from '../../src/metrics/shared-metrics.ts';
import { SpeechModel } from '../../src/pipeline/inference/speech-model.ts';
import { createWorkerMetrics } from '../../src/worker/worker-metrics.ts';
import type { Endpoint } from '../../src/webrtc/endpoint.ts';
import type { Peer } from '../../src/webrtc/peer.ts';
import { native } from '../../src/native/addon.ts';
import { FramePipeline } from '../../src/worker/frame-pipeline.ts';
import type { WorkerContext } from '../../src/worker/worker-context.ts';
import { WorkerSession } from '../../src/worker/worker-session.ts';
import { FrameScheduler } from '../../src/worker/frame-scheduler.ts';
import { SLOTS_PER_FRAME } from '../../src/worker/frame-clock.ts';
import { VideoTrack } from '../../src/pipeline/encode/video-track.ts';
import { patience } from '../harness/machine.ts';
import { offer, ava, joinSession, sinkPeer, workerContext } from '../worker/sessions.ts';

let model: SpeechModel;
beforeAll(async () => {
  model = await SpeechModel.load({ maxBatch: 8 });
});

const messages: FromWorker[] = [];
const contextOf = (onVideo: (length: number) => number): WorkerContext =>
  workerContext(
    model,
    { ...sinkPeer, sendVideo: (_frame, length) => onVideo(length) },
    (message) => {
      messages.push(message);
    },
  );

async function openSession(
  id: string,
  context: WorkerContext,
): Promise<{ session: WorkerSession; writer: SpeechRingWriter }> {
  const opened = await joinSession(id, context);
  opened.session.clock.start(0, 0);
  return opened;
}

/** Runs frames `from` to `to` of all sessions on a made-up clock. */
async function runFrames(
  pipeline: FramePipeline,
  sessions: readonly WorkerSession[],
  from: number,
  to: number,
  each: () => void = () => {},
): Promise<void> {
  for (let frame = from; frame < to; frame++) {
    for (const session of sessions) {
      if (session.isOver) {
        continue;
      }
      session.beginTick(frame * FRAME_MS);
      session.clock.advance(frame * SLOTS_PER_FRAME, frame * FRAME_MS);
    }
    const due = sessions.filter((session) => !session.isOver);
    pipeline.prepareSpeech(due, due.length, frame * FRAME_MS);
    for (const session of due) {
      session.sendDueAudio(frame * FRAME_MS);
    }
    await pipeline.run(due, due.length);
    each();
  }
}

const speech = Int16Array.from({ length: SPEECH_RING_SAMPLES - 1 }, (_, i) =>
  Math.round(
    9000 *
      Math.sin(i * (0.05 + 0.03 * Math.sin(i / 4000))) *
      (Math.floor(i / 5000) % 3 === 0 ? 0 : 1),
  ),
);

test('a speaking frame allocates next to nothing', async () => {
  const context = contextOf(() => 3);
  const pipeline = new FramePipeline(model, context.metrics, 8);
  const opened = await Promise.all(
    ['a', 'b', 'c', 'd'].map((id) =>
      openSession(`0000000${id}-0000-4000-8000-000000000000`, context),
    ),
  );
  for (const { writer } of opened) {
    writer.write(speech, monotonicMs());
  }
  const sessions = opened.map(({ session }) => session);
  await runFrames(pipeline, sessions, 0, 150); // compiled, encoders past their first refinement
  let allocated = 0;
  let last = process.memoryUsage().heapUsed;
  await runFrames(pipeline, sessions, 150, 350, () => {
    const used = process.memoryUsage().heapUsed;
    if (used > last) {
      allocated += used - last;
    } // a collection in between makes it smaller, never larger
    last = used;
  });
  const perFrame = allocated / 200 / sessions.length;
  console.log(
    `${(perFrame / 1024).toFixed(2)} KiB a frame and session on the JavaScript heap, the ` +
      `probe's own included`,
  );
  // What is left are numbers that V8 boxes and the promise of the model's run; no buffer is among
  // it (sampled with the heap profiler).
  assert.ok(
    perFrame < 12 * 1024,
    `${perFrame} bytes a frame: a picture would be 393,216, a coded frame some 2,500, the ` +
      'PCM 1,067',
  );
  for (const session of sessions) {
    session.end('done');
  }
});

test('a session whose transport throws ends alone and is told', async () => {
  messages.length = 0;
  let broken = false;
  const good = contextOf(() => 1);
  const bad = contextOf(() => {
    if (broken) {
      throw new Error('the transport broke');
    }
    return 1;
  });
  const { session: healthy } = await openSession('00000001-0000-4000-8000-000000000000', good);
  const { session: ill } = await openSession('00000002-0000-4000-8000-000000000000', bad);
  const pipeline = new FramePipeline(model, good.metrics, 8);
  await runFrames(pipeline, [ill, healthy], 0, 3);
  broken = true;
  await runFrames(pipeline, [ill, healthy], 3, 6);
  assert.equal(ill.isOver, true);
  assert.equal(healthy.isOver, false);
  assert.equal(healthy.stats.framesSent, 6);
  assert.deepEqual(
    messages.filter(({ type }) => type === 'ended'),
    [{ type: 'ended', sessionId: ill.id, reason: 'error' }],
  );
  healthy.end('done');
});

test(
  'a client that takes no picture is told when it speaks and gets the sound, and nothing is ' +
    'understood, drawn or coded for it',
  async () => {
    messages.length = 0;
    const heard: number[] = [];
    const decoder = new native.OpusDecoder({ sampleRate: 16_000, channels: 1 });
    const pcm = new Int16Array(320);
    const peer: Peer = {
      ...sinkPeer,
      videoCodec: undefined,
      sendVideo: () => {
        throw new Error('a picture was sent');
      },
      sendAudio: (packet, length) => {
        decoder.decode(packet.subarray(0, length), pcm);
        heard.push(Math.max(...pcm));
        return 1;
      },
    };
    const context = workerContext(model, peer, (message) => {
      messages.push(message);
    });
    const { session, writer } = await joinSession('00000003-0000-4000-8000-000000000000', context);
    assert.equal(session.isLive, true);
    session.clock.start(0, 0);
    writer.write(speech.subarray(0, 32_000), monotonicMs());
    await runFrames(new FramePipeline(model, context.metrics, 8), [session], 0, 120);
    assert.ok(
      heard.filter((peak) => peak > 3000).length > 50,
      'two seconds of speech, a third of it silent',
    );
    assert.deepEqual(
      messages.map(({ type }) => type),
      ['answer', 'connected', 'speak', 'silent'],
    );
    assert.equal(session.frames.video, undefined);
    assert.deepEqual(
      [session.stats.framesSent, session.stats.stageMs.inference, session.stats.stageMs.render],
      [0, 0, 0],
    );
    session.end('done');
  },
);

test('a join takes little time of the worker, and its first frame is a key frame', async () => {
  const sent: { length: number; isKey: boolean }[] = [];
  const context = contextOf(() => 1);
  const peer: Peer = {
    ...sinkPeer,
    sendVideo: (_frame: Uint8Array, length: number, isKey: boolean) => {
      sent.push({ length, isKey });
      return 1;
    },
  };
  const join = { ...context, endpoint: { createPeer: () => peer } as unknown as Endpoint };
  const costs: { join: number; here: number }[] = [];
  const pipeline = new FramePipeline(model, context.metrics, 8);
  for (let i = 0; i < 9; i++) {
    sent.length = 0;
    const startMs = native.threadCpuMs();
    const { session } = await openSession(`0000010${i}-0000-4000-8000-000000000000`, join);
    const joinedMs = native.threadCpuMs();
    await runFrames(pipeline, [session], 0, 1);
    assert.equal(session.stats.latenessMs.last, 0, 'the first frame is not late for anybody');
    await runFrames(pipeline, [session], 1, 4);
    assert.ok(session.stats.latenessMs.last > 0);
    assert.deepEqual(
      sent.map(({ isKey }) => isKey),
      [true, false, false, false],
    );
    assert.ok(sent[0]!.length > 3 * sent[2]!.length, 'the first frame is a whole picture');
    const beforeMs = native.threadCpuMs();
    const video = new VideoTrack('vp8', 600);
    video.encode(session.frames.renderer.picture, session.frames.renderer.dirty);
    costs.push({ join: joinedMs - startMs, here: native.threadCpuMs() - beforeMs });
    video.close();
    session.end('done');
  }
  const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1]!;
  const [joinMs, hereMs] = [
    median(costs.map((cost) => cost.join)),
    median(costs.map((cost) => cost.here)),
  ];
  console.log(
    `a join takes ${joinMs.toFixed(2)} ms of the worker's thread; setting the encoder up ` +
      `and coding the first picture would take ${hereMs.toFixed(2)} ms more`,
  );
  assert.ok(joinMs < hereMs, `${joinMs} ms against ${hereMs}`);
});

test('a session that ends before its encoder is ready leaves nothing behind', async () => {
  const context = contextOf(() => 1);
  const session = new WorkerSession(
    {
      sessionId: '00000200-0000-4000-8000-000000000000',
      face: { faceId: 'ava', bytes: ava },
      emotion: 0,
      renderer: 'rig',
      handleSilence: true,
      startFrame: 0,
      maxIdleMs: 1e9,
      maxLengthMs: 1e9,
      outlivesPeers: false,
      speechRing: createSpeechRing(),
    },
    context,
  );
  messages.length = 0;
  const offered = session.offer(offer, { offerId: 0, isNewPeer: true });
  await Promise.resolve();
  await Promise.resolve();
  session.end('client_closed');
  await offered;
  assert.equal(session.frames.video, undefined);
  assert.deepEqual(
    messages.filter(({ type }) => type === 'ended' || type === 'failed').map(({ type }) => type),
    ['ended'],
  );
});

test('the scheduler releases sessions that have ended', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const context = contextOf(() => 1);
  const scheduler = new FrameScheduler({
    pipeline: new FramePipeline(model, context.metrics, 8),
    metrics: context.metrics,
    post: () => {},
    threadCpuMs: () => 0,
    costPerSession: 0.05,
  });
  const gone = await (async () => {
    const opened = await Promise.all(
      ['0', '1', '2', '3', '4', '5'].map((id) =>
        openSession(`0000030${id}-0000-4000-8000-000000000000`, context),
      ),
    );
    for (const { session } of opened) {
      scheduler.add(session);
    }
    await delay(200);
    for (const { session } of opened) {
      session.end('done');
      scheduler.remove(session);
    }
    return opened.map(({ session }) => new WeakRef(session));
  })();
  const { session: stays } = await openSession('00000309-0000-4000-8000-000000000000', context);
  scheduler.add(stays);
  for (let i = 0; i < 20 && gone.some((ref) => ref.deref() !== undefined); i++) {
    await delay(50);
    collect();
  }
  const kept = gone.filter((ref) => ref.deref() !== undefined).length;
  stays.end('done');
  scheduler.stop();
  assert.equal(
    kept,
    0,
    `${kept} of ${gone.length} sessions are kept, each with its speech ring of 2 MB`,
  );
});

test(
  'after a stall, frames that are too late are dropped, never two in a row, and the rest is ' +
    'soon on time',
  async () => {
    const metrics = createWorkerMetrics(new SharedMetrics(createSharedMetrics()));
    const drawn: { id: string; frame: number; lateMs: number; atMs: number }[] = [];
    const busy = (ms: number): void => {
      for (const endMs = monotonicMs() + ms; monotonicMs() < endMs;) {}
    };
    let hiccupMs = 0;
    /** Twenty-six milliseconds of work for each frame's thirty-three. */
    const pipeline = {
      prepareSpeech: (): void => {},
      run: (due: readonly WorkerSession[], count: number) => {
        for (const session of due.slice(0, count)) {
          busy(3.3);
          const atMs = monotonicMs();
          session.stats.latenessMs.record(session.clock.lateMs(atMs));
          drawn.push({
            id: session.id,
            frame: session.clock.frame,
            lateMs: session.stats.latenessMs.last,
            atMs,
          });
        }
        busy(hiccupMs);
        hiccupMs = 0;
        return Promise.resolve();
      },
    };
    const context = contextOf(() => 1);
    const scheduler = new FrameScheduler({
      pipeline,
      metrics,
      post: () => {},
      threadCpuMs: () => 0,
      costPerSession: 0.05,
    });
    for (let n = 0; n < 8; n++) {
      const { session } = await joinSession(`${n}0000000-0000-4000-8000-00000000000b`, context);
      scheduler.add(session);
    }
    await delay(400);
    hiccupMs = 70;
    const fromMs = monotonicMs();
    await delay(500);
    scheduler.stop();
    const after = drawn.filter(({ atMs }) => atMs > fromMs + 70);
    const skipped = new Set(
      after
        .filter(
          ({ id, frame }) => !drawn.some((other) => other.id === id && other.frame === frame - 1),
        )
        .map(({ id }) => id),
    );
    assert.ok(skipped.size > 0, 'nothing was left out');
    for (const id of skipped) {
      const frames = drawn.filter((entry) => entry.id === id).map(({ frame }) => frame);
      // Two were missed in the hiccup itself, one more is left out.
      for (const [i, frame] of frames.entries()) {
        assert.ok(i === 0 || frame - frames[i - 1]! <= 5 * patience(), frames.join(' '));
      }
    }
    // Measured 11 ms, and 24 where every frame is drawn however late.
    const recovering = after.filter(
      ({ atMs }) => atMs > fromMs + 70 + FRAME_MS && atMs < fromMs + 70 + 3 * FRAME_MS,
    );
    const meanMs = recovering.reduce((sum, { lateMs }) => sum + lateMs, 0) / recovering.length;
    assert.ok(
      meanMs < (FRAME_MS / 2) * patience(),
      `${recovering.length} frames late by ${meanMs.toFixed(1)} ms on average`,
    );
  },
);

// The time from speech to SPEAK and to sound, in ticks of a made-up clock: what the scheduler, the
// speech stream and the packets of sound add, at every phase of frames and packets.
import assert from 'node:assert/strict';
import { afterEach, beforeAll, beforeEach, test, vi } from 'vitest';
import type { SpeechRingWriter } from '../../src/link/speech-ring.ts';
import { FRAME_MS, SPEECH_RATE } from '../../src/media/timeline.ts';
import { SpeechModel } from '../../src/pipeline/inference/speech-model.ts';
import { FrameScheduler } from '../../src/worker/frame-scheduler.ts';
import { TICK_MS } from '../../src/worker/frame-clock.ts';
import type { WorkerSession } from '../../src/worker/worker-session.ts';
import { joinSession, sinkPeer, workerContext } from './sessions.ts';

let model: SpeechModel;
beforeAll(async () => {
  model = await SpeechModel.load({ maxBatch: 8 });
});
beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'Date'],
    now: 0,
  });
});
afterEach(() => {
  vi.useRealTimers();
});

const PIECE_MS = 20;
const tone = (ms: number): Int16Array =>
  Int16Array.from({ length: (ms * SPEECH_RATE) / 1000 }, (_, i) => (i % 40 < 20 ? 6000 : -6000));
const UTTERANCE_MS = 300;
/** From one utterance to the next, by which the session rests again; 1 ms more each time. */
const PERIOD_MS = 1201;
/** Utterances, so that frames, packets and ticks are met in every phase: they repeat in 100 ms. */
const UTTERANCES = 100;

interface Latencies {
  readonly speak: number[];
  readonly sound: number[];
}

/** One session, or several that hear the same, each with its ring. */
async function startSessions(count: number): Promise<{
  sessions: WorkerSession[];
  writers: SpeechRingWriter[];
  pictures: { session: WorkerSession; mediaMs: number }[];
  soundMs: number[];
  speakMs: number[];
  stop: () => void;
}> {
  const nowMs = (): number => Date.now();
  const [soundMs, speakMs] = [[] as number[], [] as number[]];
  const pictures: { session: WorkerSession; mediaMs: number }[] = [];
  const peer = {
    ...sinkPeer,
    sendAudio: (...[, , , , isTalkSpurtStart]: Parameters<typeof sinkPeer.sendAudio>): number => {
      if (isTalkSpurtStart) {
        soundMs.push(nowMs());
      }
      return 1;
    },
  };
  const context = workerContext(model, peer, ({ type }) => {
    if (type === 'speak') {
      speakMs.push(nowMs());
    }
  });
  const scheduler = new FrameScheduler({
    // As the frame pipeline, without features, model and pictures, which take no time here.
    pipeline: {
      prepareSpeech: (due, dueCount, tickMs) => {
        for (const { stream, clock, audio } of due.slice(0, dueCount)) {
          stream.prepareFrame(clock.frameMs, clock.epochMs + audio.nextPacketMs, tickMs);
        }
      },
      run: (due, dueCount) => {
        for (const session of due.slice(0, dueCount)) {
          const { stream, clock } = session;
          session.announce(session.state.update(stream, nowMs()));
          pictures.push({ session, mediaMs: clock.pictureMediaMs });
        }
        return Promise.resolve();
      },
    },
    metrics: context.metrics,
    post: () => {},
    threadCpuMs: () => 0,
    costPerSession: 0.05,
    nowMs,
  });
  const sessions: WorkerSession[] = [];
  const writers: SpeechRingWriter[] = [];
  for (let n = 0; n < count; n++) {
    const joined = await joinSession(`${n}0000000-0000-4000-8000-00000000001a`, context);
    sessions.push(joined.session);
    writers.push(joined.writer);
    scheduler.add(joined.session);
  }
  const stop = (): void => {
    for (const session of sessions) {
      session.end('done');
    }
    scheduler.stop();
  };
  return { sessions, writers, pictures, soundMs, speakMs, stop };
}

async function measure(pieceMs: number): Promise<Latencies> {
  const { sessions, writers, pictures, soundMs, speakMs, stop } = await startSessions(1);
  const arrivals: number[] = [];
  await vi.advanceTimersByTimeAsync(500);
  for (let i = 0; i < UTTERANCES; i++) {
    const startMs = Date.now();
    arrivals.push(startMs);
    for (let sentMs = 0; sentMs < UTTERANCE_MS; sentMs += pieceMs) {
      writers[0]!.write(tone(pieceMs), Date.now());
      await vi.advanceTimersByTimeAsync(pieceMs < UTTERANCE_MS ? pieceMs : 0);
    }
    await vi.advanceTimersByTimeAsync(startMs + PERIOD_MS - Date.now());
  }
  assert.equal(sessions[0]!.stream.underruns, 0);
  assert.equal(speakMs.length, UTTERANCES, 'one SPEAK for each utterance');
  assert.equal(soundMs.length, UTTERANCES);
  for (let i = 1; i < pictures.length; i++) {
    assert.ok(pictures[i]!.mediaMs > pictures[i - 1]!.mediaMs, 'RTP times of pictures grow');
  }
  stop();
  const since = (times: readonly number[]): number[] => times.map((ms, i) => ms - arrivals[i]!);
  return { speak: since(speakMs), sound: since(soundMs) };
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

test('a burst is in the next picture and packet, and these at the next ticks', async () => {
  const { speak, sound } = await measure(UTTERANCE_MS);
  console.log(`burst: SPEAK ${mean(speak).toFixed(1)} ms, sound ${mean(sound).toFixed(1)} ms`);
  assert.ok(Math.max(...speak) <= Math.ceil(TICK_MS), `SPEAK after ${Math.max(...speak)} ms`);
  // Packets leave every 20 ms; a tick that sends one takes what arrived before it.
  assert.ok(mean(sound) <= 12, `sound after ${mean(sound)} ms`);
});

test('paced speech is heard when it can go on without a gap, not in a later packet', async () => {
  const { speak, sound } = await measure(PIECE_MS);
  console.log(`paced: SPEAK ${mean(speak).toFixed(1)} ms, sound ${mean(sound).toFixed(1)} ms`);
  // Half a frame, the look-ahead and the margin are 97 ms, and 83 when the margin has shrunk. The
  // packet in which these have passed left 10 ms before in the mean, at the tick after its time.
  assert.ok(mean(speak) <= 72, `SPEAK after ${mean(speak)} ms`);
  assert.ok(mean(sound) <= 80, `sound after ${mean(sound)} ms`);
  assert.ok(Math.max(...sound) <= 97 + 2 * TICK_MS);
});

test('of many that begin at once, a few are shown outside their slot and none waits longer', async () => {
  const { sessions, writers, pictures, speakMs, stop } = await startSessions(12);
  await vi.advanceTimersByTimeAsync(1003);
  const [startMs, before] = [Date.now(), pictures.length];
  for (const writer of writers) {
    writer.write(tone(UTTERANCE_MS), startMs);
  }
  await vi.advanceTimersByTimeAsync(FRAME_MS + 2);
  assert.equal(speakMs.length, sessions.length);
  assert.ok(Math.max(...speakMs) - startMs <= FRAME_MS + 2);
  const extra = pictures.length - before - sessions.length;
  assert.ok(extra > 0 && extra <= 8, `${extra} pictures more than one for each`);
  stop();
});

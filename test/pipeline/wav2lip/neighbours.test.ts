// A session with a network of its own beside others on one worker: they do not wait for it, and its
// lips stay in step with its sound.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import { monotonicMs } from '../../../src/base/time.ts';
import { FPS, FRAME_MS, SPEECH_RATE } from '../../../src/media/timeline.ts';
import { native } from '../../../src/native/addon.ts';
import { SpeechModel } from '../../../src/pipeline/inference/speech-model.ts';
import type { Peer } from '../../../src/webrtc/peer.ts';
import { FramePipeline } from '../../../src/worker/frame-pipeline.ts';
import type { WorkerSession } from '../../../src/worker/worker-session.ts';
import { FrameScheduler } from '../../../src/worker/frame-scheduler.ts';
import {
  WAV2LIP_COLUMNS,
  WAV2LIP_MELS,
  Wav2LipMel,
} from '../../../src/pipeline/wav2lip/wav2lip-mel.ts';
import type { Wav2LipRenderer } from '../../../src/pipeline/wav2lip/wav2lip-renderer.ts';
import { patience } from '../../harness/machine.ts';
import { joinSession, sinkPeer, workerContext } from '../../worker/sessions.ts';
import { startInference } from './inference.ts';
import { smallNetwork } from './small-network.ts';

/** What one session's peer received, by media time. */
interface Seen {
  readonly light: { readonly mediaMs: number; readonly value: number }[];
  readonly sound: Int16Array;
}

const SECONDS = 6;
/** Before them only the neighbours speak: the machine's own share of their lateness. */
const ALONE_SECONDS = 2;
/**
 * Offset of a pixel that is skin in every face: the middle of the box's lower half, below the
 * mouth.
 */
const CHIN = 345 * 512 + 255;

/** Bursts of noise of random lengths, so that only one delay fits them. */
function bursts(): Int16Array {
  let seed = 1;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const pcm = new Int16Array(SECONDS * SPEECH_RATE);
  for (let at = 0, isLoud = true; at < pcm.length; isLoud = !isLoud) {
    const end = Math.min(pcm.length, at + Math.round((0.1 + 0.25 * random()) * SPEECH_RATE));
    for (; at < end; at++) {
      pcm[at] = Math.round((isLoud ? 9000 : 60) * (random() - 0.5));
    }
  }
  return pcm;
}

/**
 * Two ordinary sessions, and one with a network of `layers` that begins to speak after
 * ALONE_SECONDS, for SECONDS.
 */
async function speakTogether(
  t: TestContext,
  layers: number,
): Promise<{
  neighbours: WorkerSession[];
  guest: WorkerSession;
  seen: Seen;
  aloneMs: number[];
  cpuMsPerFrame: number;
  networkMs: number;
}> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-beside-'));
  t.onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const file = path.join(folder, 'network.onnx');
  writeFileSync(file, smallNetwork(96, { layers }));
  const client = await startInference(t, file, { maxFrameMs: Number.POSITIVE_INFINITY });
  const model = await SpeechModel.load({ maxBatch: 8 });
  const seen: Seen = {
    light: [],
    sound: new Int16Array((ALONE_SECONDS + SECONDS + 4) * SPEECH_RATE),
  };
  const decoder = new native.OpusDecoder({ sampleRate: SPEECH_RATE, channels: 1 });
  const packet = new Int16Array(SPEECH_RATE / 50);
  let guest: WorkerSession | undefined;
  const watching: Peer = {
    ...sinkPeer,
    sendVideo: (_frame, _length, _isKey, mediaMs) => {
      seen.light.push({ mediaMs, value: guest!.frames.renderer.picture[CHIN]! });
      return 1;
    },
    sendAudio: (opus, bytes, mediaMs) => {
      decoder.decode(opus.subarray(0, bytes), packet);
      seen.sound.set(packet, Math.round((mediaMs * SPEECH_RATE) / 1000));
      return 1;
    },
  };
  const context = { ...workerContext(model, sinkPeer), inferenceClient: client };
  const scheduler = new FrameScheduler({
    pipeline: new FramePipeline(model, context.metrics, 8),
    metrics: context.metrics,
    post: () => {},
    threadCpuMs: () => native.threadCpuMs(),
    costPerSession: 0.05,
  });
  const joined = [
    await joinSession(
      '00000001-0000-4000-8000-000000000000',
      { ...context, endpoint: workerContext(model, watching).endpoint },
      'wav2lip',
    ),
    await joinSession('00000002-0000-4000-8000-000000000000', context),
    await joinSession('00000003-0000-4000-8000-000000000000', context),
  ] as const;
  guest = joined[0].session;
  const pcm = bursts();
  const neighbours = joined.slice(1).map(({ session }) => session);
  for (const { session, writer } of joined) {
    scheduler.add(session);
    if (session !== guest) {
      writer.write(pcm, monotonicMs());
    }
  }
  await delay(ALONE_SECONDS * 1000);
  const aloneMs = neighbours.map(({ stats }) => stats.latenessMs.percentile(0.5));
  for (const { stats } of neighbours) {
    stats.latenessMs.clear();
  }
  const framesSent = (): number =>
    joined.reduce((sum, { session }) => sum + session.stats.framesSent, 0);
  const [beforeMs, framesBefore] = [native.threadCpuMs(), framesSent()];
  joined[0].writer.write(pcm, monotonicMs());
  await delay(SECONDS * 1000);
  const [cpuMs, frames] = [native.threadCpuMs() - beforeMs, framesSent() - framesBefore];
  scheduler.stop();
  for (const { session } of joined) {
    session.end('done');
  }
  await model.close();
  return {
    guest,
    neighbours,
    aloneMs,
    seen,
    cpuMsPerFrame: cpuMs / frames,
    networkMs: (client.costPerSession * 1000) / FPS,
  };
}

/**
 * @returns milliseconds by which the picture is ahead of its sound: the delay at which the
 *   brightness that the network draws and the loudness of the sound correlate best
 */
function lipsAheadMs({ light, sound }: Seen): number {
  const mel = new Wav2LipMel();
  const window = new Float32Array(WAV2LIP_MELS * WAV2LIP_COLUMNS);
  const agreement = (offsetMs: number): number => {
    const pairs = light
      .filter(
        ({ mediaMs }) =>
          mediaMs > (ALONE_SECONDS + 1) * 1000 && mediaMs < (ALONE_SECONDS + SECONDS - 0.5) * 1000,
      )
      .map(({ mediaMs, value }) => [value, loudness.get(Math.round(mediaMs + offsetMs))!] as const);
    const [meanA, meanB] = [0, 1].map(
      (i) => pairs.reduce((sum, pair) => sum + pair[i]!, 0) / pairs.length,
    ) as [number, number];
    const sum = (of: (a: number, b: number) => number): number =>
      pairs.reduce((total, [a, b]) => total + of(a - meanA, b - meanB), 0);
    return sum((a, b) => a * b) / Math.sqrt(sum((a) => a * a) * sum((_, b) => b * b));
  };
  // The mel keeps three seconds: read it while the sound is pushed, one value per millisecond.
  const loudness = new Map<number, number>();
  for (let ms = 0; ms < (sound.length * 1000) / SPEECH_RATE; ms++) {
    mel.push(sound.subarray(ms * 16, ms * 16 + 16), 16);
    const middleMs = ms - 200;
    mel.window(middleMs + FRAME_MS / 2, window);
    loudness.set(
      middleMs,
      window.reduce((sum, value) => sum + value, 0),
    );
  }
  let best = 0;
  for (let offset = -150; offset <= 150; offset++) {
    if (agreement(offset) > agreement(best)) {
      best = offset;
    }
  }
  console.log(`light and loudness agree to ${agreement(best).toFixed(2)} at ${best} ms`);
  assert.ok(agreement(best) > 0.8, 'the lips follow the sound');
  return best;
}

test('a network that takes longer than a frame delays no neighbour', async (t) => {
  const { neighbours, aloneMs, guest, cpuMsPerFrame, networkMs } = await speakTogether(t, 25);
  console.log(
    `${networkMs.toFixed(1)} ms a patch; ${cpuMsPerFrame.toFixed(2)} ms of the worker's ` +
      'thread a frame; lateness ' +
      `p50 ${neighbours.map(({ stats }) => stats.latenessMs.percentile(0.5).toFixed(1)).join(', ')} ` +
      `ms, alone ${aloneMs.map((ms) => ms.toFixed(1)).join(', ')} ` +
      `ms; ${(guest.frames.audioRenderer as Wav2LipRenderer).repeatedFrames} frames repeated`,
  );
  assert.ok(networkMs > 15, `the network must be slow for this: ${networkMs} ms`);
  assert.ok(guest.stats.stageMs.inference > 0);
  assert.ok(cpuMsPerFrame < networkMs / 6, 'the worker does not run it');
  for (const [i, { stats }] of neighbours.entries()) {
    const p50Ms = stats.latenessMs.percentile(0.5);
    assert.ok(
      p50Ms < aloneMs[i]! + 3 * patience(),
      `median lateness ${p50Ms} ms, alone ${aloneMs[i]} ms`,
    );
  }
});

test('lips that are made on another thread stay in step with their sound', async (t) => {
  const { guest, seen } = await speakTogether(t, 2);
  const aheadMs = lipsAheadMs(seen);
  console.log(
    `${guest.stats.stageMs.inference.toFixed(1)} ms a ` +
      `patch, ${(guest.frames.audioRenderer as Wav2LipRenderer).repeatedFrames} repeated`,
  );
  assert.ok(
    aheadMs >= -15 * patience() && aheadMs <= 45,
    `the picture is ${aheadMs} ms before its sound`,
  );
});

// The output of the renderer, checked from outside: streams, timestamps and segments with ffprobe;
// lips against sound by pixels and samples.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { afterAll, beforeAll, test } from 'vitest';
import {
  inspectAudio,
  openAudio,
  type AudioInput,
} from '../../../src/jobs/video/audio/open-audio.ts';
import {
  framesInSegment,
  frameCount,
  isSegmentStart,
  playlist,
  segmentCount,
  segmentName,
} from '../../../src/jobs/video/hls.ts';
import { renderVideo } from '../../../src/jobs/video/render-video.ts';
import renderTask from '../../../src/jobs/video/render-video-task.ts';
import { FPS, FRAME_MS } from '../../../src/media/timeline.ts';
import { SpeechModel } from '../../../src/pipeline/inference/speech-model.ts';
import { closestLips, findMouth, locate } from '../../harness/lipsync.ts';
import { probeFile, topBoxes, watchFile, type MediaInfo } from '../../harness/media-file.ts';
import { framesBetween, type ShownFrame } from '../../harness/probe.ts';
import { ROOT } from '../../harness/server.ts';
import { concat, silence, synthesize, type Speech } from '../../harness/speech.ts';

let folder = '';
let model: SpeechModel;
let face: SharedArrayBuffer;
let speech: Speech;

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-render-'));
  model = await SpeechModel.load({ maxBatch: 1 });
  // For the same movement the measured lag differs by some milliseconds from face to face.
  const bytes = await readFile(path.join(ROOT, 'models/build/faces/mei.face'));
  face = new SharedArrayBuffer(bytes.length);
  new Uint8Array(face).set(bytes);
  speech = await synthesize(
    'My mother bought a big apple pie. Papa made warm bread and butter by the window.',
  );
});
afterAll(async () => {
  await model.close();
  await rm(folder, { recursive: true, force: true });
});

interface Made {
  readonly mp4: string;
  readonly hls: string;
  readonly frames: number;
  readonly segments: readonly Buffer[];
  readonly folder: string;
}

async function make(name: string, audio: AudioInput): Promise<Made> {
  const place = path.join(folder, name);
  await mkdir(place);
  const { samples, rate } = await inspectAudio(audio);
  const frames = frameCount(samples, rate);
  const segments: Buffer[] = [];
  await renderVideo({
    model,
    face,
    emotion: 0,
    motion: 'natural',
    startFrame: 0,
    seed: 7,
    sound: await openAudio(audio),
    frames,
    mp4File: path.join(place, 'output.mp4'),
    onInit: (bytes) => writeFile(path.join(place, 'init.mp4'), bytes),
    onSegment: async (bytes, index) => {
      assert.equal(index, segments.length);
      segments.push(Buffer.from(bytes));
      await writeFile(path.join(place, segmentName(index)), bytes);
    },
  });
  await writeFile(path.join(place, 'output.m3u8'), playlist(frames, segments.length));
  return {
    mp4: path.join(place, 'output.mp4'),
    hls: path.join(place, 'output.m3u8'),
    frames,
    segments,
    folder: place,
  };
}

const pcm = (samples: Int16Array<ArrayBuffer>): AudioInput => ({
  bytes: new Uint8Array(samples.buffer),
  format: 'pcm16',
  rate: 16_000,
  channels: 1,
});

function assertTimes({ packets }: MediaInfo, frames: number, soundSeconds: number): void {
  for (const type of ['video', 'audio'] as const) {
    const own = packets.filter(({ codec_type }) => codec_type === type);
    for (const [n, packet] of own.entries()) {
      if (n > 0) {
        assert.ok(
          packet.dts > own[n - 1]!.dts,
          `${type} packet ${n} is not later than the one before`,
        );
      }
      assert.equal(packet.pts, packet.dts);
    }
    const last = own.at(-1)!;
    const seconds = type === 'video' ? frames / FPS : soundSeconds;
    assert.ok(
      Math.abs(last.pts + last.seconds - seconds) < 1 / FPS,
      `${type} ends at ${last.pts + last.seconds} instead of ${seconds} s`,
    );
  }
  const video = packets.filter(({ codec_type }) => codec_type === 'video');
  assert.equal(video.length, frames);
  for (const [frame, { isKey }] of video.entries()) {
    assert.equal(isKey, isSegmentStart(frame), `frame ${frame}`);
  }
}

test('segments: the first is short, and together they cover the whole video, at any length', () => {
  for (const frames of [1, 29, 30, 31, 89, 90, 91, 150, 151, 18_000]) {
    const count = segmentCount(frames);
    const lengths = Array.from({ length: count }, (_, index) => framesInSegment(index, frames));
    assert.equal(
      lengths.reduce((sum, length) => sum + length, 0),
      frames,
    );
    assert.ok(lengths.every((length) => length > 0 && length <= 60));
    assert.match(playlist(frames, count), /TYPE:VOD[^]*ENDLIST\n$/);
    assert.ok(!playlist(frames, count - 1).includes('ENDLIST'));
  }
});

test('MP4 and HLS: streams, timestamps, index in front, independent segments', async () => {
  const stereo = Int16Array.from(
    { length: 2 * speech.pcm.length },
    (_, i) => speech.pcm[i >> 1]! >> (i & 1),
  );
  const made = await make('streams', {
    bytes: new Uint8Array(stereo.buffer),
    format: 'pcm16',
    rate: 16_000,
    channels: 2,
  });
  const seconds = speech.durationMs / 1000;
  const mp4 = await probeFile(made.mp4);
  assert.deepEqual(
    [mp4.video.codec_name, mp4.video.width, mp4.video.height, mp4.video.avg_frame_rate],
    ['h264', 512, 512, '30/1'],
  );
  assert.deepEqual(
    [mp4.audio.codec_name, mp4.audio.profile, mp4.audio.sample_rate, mp4.audio.channels],
    ['aac', 'LC', '48000', 2],
  );
  assert.ok(Math.abs(mp4.seconds - seconds) < 1 / FPS, `${mp4.seconds} s instead of ${seconds}`);
  assert.equal(Number(mp4.video.start_time), 0);
  assert.equal(Number(mp4.audio.start_time), 0);
  assertTimes(mp4, made.frames, seconds);
  assert.deepEqual(topBoxes(await readFile(made.mp4)), ['ftyp', 'moov', 'free', 'mdat']);

  const hls = await probeFile(made.hls);
  assert.ok(Math.abs(hls.seconds - seconds) < 1 / FPS);
  assertTimes(hls, made.frames, seconds);
  assert.equal(made.segments.length, segmentCount(made.frames));
  const init = await readFile(path.join(made.folder, 'init.mp4'));
  assert.deepEqual(topBoxes(init), ['ftyp', 'moov']);
  for (const [index, segment] of made.segments.entries()) {
    assert.deepEqual(topBoxes(segment).slice(0, 2), ['moof', 'mdat']);
    const alone = path.join(made.folder, `alone-${index}.mp4`);
    await writeFile(alone, Buffer.concat([init, segment]));
    const { packets } = await probeFile(alone);
    const video = packets.filter(({ codec_type }) => codec_type === 'video');
    assert.ok(video[0]!.isKey);
    assert.equal(video.length, framesInSegment(index, made.frames));
  }
});

test('the same request gives the same bytes', async () => {
  const samples = speech.pcm.slice(0, 24_000);
  const [first, second] = [await make('first', pcm(samples)), await make('second', pcm(samples))];
  const digest = (made: Made): string[] =>
    made.segments.map((segment) => createHash('sha256').update(segment).digest('hex'));
  assert.deepEqual(digest(first), digest(second));
});

test('one sample gives one frame', async () => {
  const made = await make('single', pcm(Int16Array.of(1000)));
  const { seconds, packets } = await probeFile(made.mp4);
  assert.ok(seconds < 0.07);
  assert.equal(packets.filter(({ codec_type }) => codec_type === 'video').length, 1);
  await probeFile(made.hls);
});

/**
 * Length of the next test in seconds. TEST_STATIC_SECONDS=600 tests the longest video that the
 * service accepts; it takes two minutes.
 */
const SYNC_SECONDS = Number(process.env['TEST_STATIC_SECONDS'] ?? 32);

test('a task whose receiver goes away before the first piece ends, and holds no thread', async () => {
  const { port1, port2 } = new MessageChannel();
  const task = renderTask({
    audio: { bytes: Buffer.alloc(32_000), format: 'pcm16', rate: 16_000, channels: 1 },
    face,
    emotion: 0,
    motion: 'natural',
    startFrame: 0,
    seed: 7,
    frames: 10, // one segment: all pieces come after the last frame
    mp4File: path.join(folder, 'unwanted.mp4'),
    port: port2,
  });
  port1.close();
  await assert.rejects(task, /closed its port/);
});

test('lips and sound are in sync at start and end; the mouth is closed when nobody speaks', async () => {
  const quietMs = SYNC_SECONDS * 1000 - 1200 - 2 * speech.durationMs;
  const made = await make(
    'sync',
    pcm(concat(silence(500), speech.pcm, silence(quietMs), speech.pcm, silence(700))),
  );
  for (const file of [made.mp4, made.hls]) {
    const recording = await watchFile(file);
    assert.equal(recording.frames.length, made.frames);
    const starts = [500, 500 + speech.durationMs + quietMs];
    const quiet = { fromMs: starts[0]! + speech.durationMs + 1000, toMs: starts[1]! - 1000 };
    const mouth = findMouth(
      recording,
      { fromMs: starts[0]!, toMs: starts[0]! + speech.durationMs },
      quiet,
    );
    for (const startMs of starts) {
      const from = Math.round((startMs - 400) * 16);
      const heardMs =
        recording.soundStartMs +
        (from +
          locate(recording.sound.subarray(from, from + speech.pcm.length + 12_800), speech.pcm)
            .sample) /
          16;
      assert.ok(
        Math.abs(heardMs - startMs) < 1,
        `the sound of ${startMs} ms is heard at ${heardMs} ms`,
      );
      const { lagMs, correlation } = closestLips(recording, mouth, speech, startMs);
      assert.ok(
        correlation > 0.6,
        `lips follow the speech at ${startMs} ms with r = ${correlation.toFixed(2)} only`,
      );
      assert.ok(
        Math.abs(lagMs) <= FRAME_MS,
        `at ${startMs} ms the sound is ${lagMs.toFixed(0)} ms behind the lips`,
      );
      console.info(
        `${path.basename(file)}, speech at ${(startMs / 1000).toFixed(1)} s: ` +
          `heard ${(heardMs - startMs).toFixed(2)} ms late, ${lagMs.toFixed(0)} ms behind ` +
          `the lips (r ${correlation.toFixed(2)})`,
      );
    }
    // How much the mouth differs from rest: the least mean difference to a frame of the nearest
    // rest, since the head sways.
    const between = (fromMs: number, toMs: number): readonly ShownFrame[] =>
      framesBetween(recording, fromMs, toMs);
    const unrest = (frames: readonly ShownFrame[], rest: readonly ShownFrame[]): number =>
      frames.reduce(
        (sum, frame) =>
          sum +
          Math.min(
            ...rest.map((other) =>
              mouth.pixels.reduce(
                (total, pixel) => total + Math.abs(frame.luma[pixel]! - other.luma[pixel]!),
                0,
              ),
            ),
          ),
        0,
      ) / frames.length;
    const [early, late] = [
      between(quiet.fromMs, quiet.fromMs + 10_000),
      between(quiet.toMs - 10_000, quiet.toMs),
    ];
    const spoken = unrest(between(starts[0]! + 300, starts[0]! + speech.durationMs - 300), early);
    const endMs = made.frames * FRAME_MS;
    for (const [fromMs, toMs, rest] of [
      [0, 300, early],
      [starts[1]! - 500, starts[1]! - 200, late],
      [endMs - 300, endMs, late],
    ] as const) {
      const share = unrest(between(fromMs, toMs), rest) / spoken;
      console.info(
        `unrest of the mouth from ${fromMs} to ${toMs} ms: ${share.toFixed(2)} of that in speech`,
      );
      assert.ok(
        share < 0.45,
        `between ${fromMs} and ${toMs} ms the mouth is unlike one at rest ` +
          `by ${share.toFixed(2)} of what it is in speech`,
      );
    }
  }
});

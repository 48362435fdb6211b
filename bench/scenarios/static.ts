// Static video: when it can be watched, when it is complete, and how many seconds of video a second
// of work makes.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../report/stats.ts';
import {
  type Context,
  type Outcome,
  type Scenario,
  type Server,
  atLeast,
  atMost,
  number,
} from '../scenario.ts';
import { Interval } from '../server-view.ts';
import { OUTSIDE_NOTE, benchSpeech, firstFace, look } from './setup.ts';

interface Made {
  readonly playableMs: number;
  readonly completeMs: number;
  readonly mp4Bytes: number;
}

/** Polls until a GET answers 200 and `isEnough` likes the body. */
async function until(
  url: string,
  deadlineMs: number,
  isEnough: (body: string) => boolean = () => true,
): Promise<void> {
  for (;;) {
    const response = await fetch(url);
    const body = await response.text();
    if (response.ok && isEnough(body)) {
      return;
    }
    if (performance.now() > deadlineMs) {
      throw new Error(`${url} answered ${response.status} until the time limit`);
    }
    await delay(50);
  }
}

async function make(
  server: Server,
  faceId: string,
  audio: Buffer,
  limitSeconds: number,
): Promise<Made> {
  const startMs = performance.now();
  const response = await fetch(`${server.url}/static/audio`, {
    method: 'POST',
    headers: { 'x-service-api-key': server.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ faceId, audioBase64: audio.toString('base64') }),
  });
  const body = (await response.json()) as { hls_url?: string; mp4_url?: string };
  if (body.hls_url === undefined || body.mp4_url === undefined) {
    throw new Error(`POST /static/audio answered ${response.status}: ${JSON.stringify(body)}`);
  }
  const absolute = (url: string): string => new URL(url, server.url).href;
  const deadlineMs = startMs + limitSeconds * 1000;
  await until(absolute(body.hls_url), deadlineMs, (playlist) => playlist.includes('#EXTINF'));
  const playableMs = performance.now() - startMs;
  for (;;) {
    const head = await fetch(absolute(body.mp4_url), { method: 'HEAD' });
    if (head.ok) {
      return {
        playableMs,
        completeMs: performance.now() - startMs,
        mp4Bytes: Number(head.headers.get('content-length')),
      };
    }
    if (performance.now() > deadlineMs) {
      throw new Error(`the MP4 was not there after ${limitSeconds} s`);
    }
    await delay(50);
  }
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const server = await context.server({ WORKERS: '1', JOB_THREADS: '1' });
  const speech = readFileSync((await benchSpeech()).file);
  const seconds = number(options, 'seconds');
  const audio = Buffer.alloc(Math.round(seconds * 32_000));
  for (let at = 0; at < audio.length; at += speech.length) {
    speech.copy(audio, at);
  }
  const faceId = await firstFace(server);
  const made: Made[] = [];
  const before = await look(server);
  for (let i = 0; i < number(options, 'videos'); i++) {
    const one = await make(server, faceId, audio, 60 + seconds * 4);
    made.push(one);
    context.record('request to playable video', one.playableMs, 'ms');
    context.record('request to complete video', one.completeMs, 'ms');
    context.progress(
      `video ${i + 1}: playable after ${(one.playableMs / 1000).toFixed(2)} s, complete ` +
        `after ${(one.completeMs / 1000).toFixed(2)} ` +
        `s, ${((seconds * 1000) / one.completeMs).toFixed(1)}x real ` +
        `time, ${(one.mp4Bytes / 1024).toFixed(0)} kB`,
    );
  }
  const after = await look(server);
  const cpuSeconds =
    before === undefined || after === undefined
      ? Number.NaN
      : new Interval(before, after).increase('process_cpu_seconds_total');
  const perCpuSecond = (seconds * made.length) / cpuSeconds;
  const playable = quantile(
    made.map(({ playableMs }) => playableMs),
    0.5,
  );
  const speed =
    (seconds * 1000) /
    quantile(
      made.map(({ completeMs }) => completeMs),
      0.5,
    );
  return {
    figures: {
      seconds,
      playableMs: playable,
      completeMs: quantile(
        made.map(({ completeMs }) => completeMs),
        0.5,
      ),
      realtimeFactor: speed,
      perCpuSecond,
      mp4Bytes: made.at(-1)!.mp4Bytes,
    },
    bounds: [
      atMost('until it can be watched', playable, number(options, 'playable'), 'ms'),
      atLeast('video made per time', speed, number(options, 'factor'), 'x'),
      ...(Number.isFinite(perCpuSecond)
        ? [
            atLeast(
              'video made per CPU time of the whole server',
              perCpuSecond,
              number(options, 'factor'),
              'x',
            ),
          ]
        : []),
    ],
    tables: [
      {
        title: `${seconds} s of speech`,
        columns: ['video', 'playable ms', 'complete ms', 'x real time'],
        rows: made.map(({ playableMs, completeMs }, index) => [
          String(index + 1),
          playableMs,
          completeMs,
          (seconds * 1000) / completeMs,
        ]),
      },
    ],
    plots: [],
    notes: [
      'From the request to the first HLS segment in the playlist, and to the whole MP4; ' +
        "uploading and the queue included. The first video includes starting the job's " +
        'thread.',
      'Job threads run at the lowest priority: on a busy machine it is the CPU time that ' +
        'tells what a core makes of an idle one.',
      ...(after === undefined ? [OUTSIDE_NOTE] : []),
    ],
  };
}

export const staticVideo: Scenario = {
  name: 'static',
  about: 'Static video: time until it plays, real-time factor.',
  options: { seconds: 60, videos: 3, playable: 1000, factor: 8 },
  small: { seconds: 3, videos: 1, playable: 30_000, factor: 0.2 },
  run,
};

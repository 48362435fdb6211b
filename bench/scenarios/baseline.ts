// Mouthpiece beside the plain alternative that one would build: aiortc sends the same pictures,
// with the same encoder settings, to the same number of the same peers.
import { execFile } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { lastCpu } from '../cpus.ts';
import { PICTURE_SIZE } from '../../src/media/picture.ts';
import { native } from '../../src/native/addon.ts';
import { findPython, startBaseline } from '../baseline/server.ts';
import { Fleet } from '../peers/fleet.ts';
import {
  type Context,
  type Outcome,
  type Scenario,
  type Server,
  atMost,
  number,
} from '../scenario.ts';
import { OUT, benchSpeech, look, settle, startFleet } from './setup.ts';

const TALK = { cycleSeconds: 10, speechSeconds: 10, pace: 'burst' } as const;
/** libvpx's cpu-used in our encoder's default. */
const CPU_USED = -12;
const MAX_PICTURES = 240;
/** From one point of the figures over time to the next. */
const STEP_MS = 2000;
/** USER_HZ: the unit of /proc/PID/stat, 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** CPU seconds of a whole process so far (proc(5): utime and stime). */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

const residentMb = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? Number.NaN) /
  1024;

interface Side {
  readonly name: string;
  readonly cores: number;
  readonly framesPerSession: number;
  readonly mb: number;
  readonly emptyMb: number;
}

async function measure(
  context: Context,
  name: string,
  pid: number,
  fleet: Fleet,
  emptyMb: number,
): Promise<Side> {
  const { options } = context;
  await settle(options);
  const take = async (): Promise<{ cpu: number; frames: number; atMs: number }> => {
    const { peers } = await fleet.figures();
    const frames = peers.reduce((sum, peer) => sum + peer.frames, 0);
    return { cpu: cpuSeconds(pid), frames, atMs: performance.now() };
  };
  const first = await take();
  const since = (
    before: typeof first,
    after: typeof first,
  ): Pick<Side, 'cores' | 'framesPerSession'> => {
    const elapsed = (after.atMs - before.atMs) / 1000;
    return {
      cores: (after.cpu - before.cpu) / elapsed,
      framesPerSession: (after.frames - before.frames) / elapsed / fleet.size,
    };
  };
  const holdMs = number(options, 'hold') * 1000;
  const steps = Math.max(1, Math.round(holdMs / STEP_MS));
  let last = first;
  for (let step = 1; step <= steps; step++) {
    await delay(Math.max(0, first.atMs + (step * holdMs) / steps - performance.now()));
    const now = await take();
    const { cores, framesPerSession } = since(last, now);
    context.record(`${name}: CPU`, cores, 'cores');
    context.record(`${name}: frames a second of a session`, framesPerSession, '/s');
    last = now;
  }
  return { name, ...since(first, last), mb: residentMb(pid), emptyMb };
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const python = findPython();
  if (python === undefined) {
    context.progress('skipped: aiortc is not installed (Debian: python3-aiortc)');
    return {
      figures: {},
      bounds: [],
      tables: [],
      plots: [],
      notes: ['Skipped: aiortc is not installed here (Debian: python3-aiortc).'],
    };
  }
  if (context.target !== undefined) {
    throw new Error('baseline measures a server of its own: leave --target out');
  }
  const sessions = number(options, 'sessions');
  const server: Server = await context.server({ WORKERS: '1', MAX_WORKER_LOAD: '1' });
  const emptyMb = residentMb(server.pid!);
  const fleet = await startFleet(context, server, { processes: 1 });
  const kept = (await fleet.open(TALK, true)).peer;
  while (fleet.size < sessions) {
    await fleet.openPatiently(TALK);
  }
  const ours = await measure(context, 'mouthpiece', server.pid!, fleet, emptyMb);
  context.progress(
    `mouthpiece  ${ours.cores.toFixed(2)} cores, ${ours.framesPerSession.toFixed(1)} fps`,
  );
  const after = (await look(server))!;
  const kbps =
    ((after.sum('mouthpiece_send_rate_target_bytes_per_second_sum') /
      after.sum('mouthpiece_send_rate_target_bytes_per_second_count')) *
      8) /
    1000;
  const [coded, pictures] = [
    path.join(OUT, `baseline-${process.pid}.ivf`),
    path.join(OUT, `baseline-${process.pid}.yuv`),
  ];
  context.defer(() => {
    for (const file of [coded, pictures]) {
      rmSync(file, { force: true });
    }
  });
  await fleet.dump(kept, coded);
  await fleet.end();
  await server.stop();

  await promisify(execFile)('ffmpeg', [
    '-v',
    'error',
    '-y',
    '-i',
    coded,
    '-fps_mode',
    'passthrough',
    '-vf',
    `select=gte(n\\,60),scale=${PICTURE_SIZE}:${PICTURE_SIZE}`,
    '-frames:v',
    String(MAX_PICTURES),
    '-pix_fmt',
    'yuv420p',
    '-f',
    'rawvideo',
    pictures,
  ]);
  const speech = await benchSpeech();
  const allowed = native.allowedCpus();
  const cpu = lastCpu();
  const plain = await startBaseline(python, {
    pictures,
    speech: speech.file,
    kbps,
    cpuUsed: CPU_USED,
    cpus: cpu === undefined ? undefined : String(cpu),
  });
  context.defer(() => plain.stop());
  const plainEmptyMb = residentMb(plain.pid);
  const spare = allowed.filter((one) => one !== cpu);
  const plainFleet = await Fleet.start({
    target: plain,
    codec: 'vp8',
    faceId: 'baseline',
    speechFile: speech.file,
    token: {},
    processes: 1,
    ...(spare.length > 0 ? { cpus: spare.join(',') } : {}),
  });
  context.defer(() => plainFleet.end());
  while (plainFleet.size < sessions) {
    await plainFleet.open();
  }
  const theirs = await measure(context, 'aiortc', plain.pid, plainFleet, plainEmptyMb);
  context.progress(
    `aiortc      ${theirs.cores.toFixed(2)} cores, ${theirs.framesPerSession.toFixed(1)} fps`,
  );

  // A side that cannot keep up sends fewer frames: CPU is compared for each frame that arrived.
  const msPerFrame = ({ cores, framesPerSession }: Side): number =>
    (cores * 1000) / (framesPerSession * sessions);
  const ratio = msPerFrame(ours) / msPerFrame(theirs);
  const row = (side: Side): (string | number)[] => [
    side.name,
    side.cores / sessions,
    msPerFrame(side),
    side.framesPerSession,
    (side.mb - side.emptyMb) / sessions,
    side.emptyMb,
  ];
  return {
    figures: {
      sessions,
      kbps,
      oursMsPerFrame: msPerFrame(ours),
      aiortcMsPerFrame: msPerFrame(theirs),
      ratio,
      oursFps: ours.framesPerSession,
      aiortcFps: theirs.framesPerSession,
      oursMbPerSession: (ours.mb - ours.emptyMb) / sessions,
      aiortcMbPerSession: (theirs.mb - theirs.emptyMb) / sessions,
    },
    bounds: [
      atMost(
        "CPU of a frame against aiortc's, which draws nothing and hears nothing",
        ratio,
        number(options, 'ratio'),
        'x',
      ),
    ],
    tables: [
      {
        title:
          `${sessions} sessions, VP8 ${PICTURE_SIZE}x${PICTURE_SIZE}, ${kbps.toFixed(0)} ` +
          `kbit/s, cpu-used ${CPU_USED}`,
        columns: ['', 'cores/session', 'CPU ms/frame', 'fps', 'MB/session', 'MB empty'],
        rows: [row(ours), row(theirs)],
      },
    ],
    plots: [],
    notes: [
      'CPU of the whole process. Mouthpiece listens to speech, draws the face and encodes; ' +
        'aiortc only encodes the same pictures, decoded from what a peer of ours received, ' +
        'and plays a file of the same speech.',
      'aiortc runs on the one core that the worker had: with it, one Python process is the ' +
        'natural unit.',
    ],
  };
}

export const baseline: Scenario = {
  name: 'baseline',
  about:
    'CPU and memory of a session beside those of a plain aiortc server that streams the ' +
    'same pictures (optional: python3-aiortc).',
  options: { sessions: 6, settle: 4, hold: 15, ratio: 1 },
  small: { sessions: 1, settle: 1, hold: 2, ratio: 20 },
  run,
};

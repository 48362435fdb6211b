// How many sessions a core carries: adds peers until a bound on lateness, latency or loss breaks,
// and compares their cost with the bare encode.
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { lastCpu } from '../cpus.ts';
import type { BareEncode } from '../bare-encode.ts';
import type { Fleet, FleetSummary } from '../peers/fleet.ts';
import type { TalkPlan } from '../peers/protocol.ts';
import { quantile } from '../report/stats.ts';
import {
  type Context,
  type Options,
  type Outcome,
  type Scenario,
  type Server,
  number,
} from '../scenario.ts';
import { Interval } from '../server-view.ts';
import { type Step, capacityReport } from './capacity-report.ts';
import { compareWithP2p } from './room-cost.ts';
import { OUT, codecOf, kindOf, look, settle, startFleet } from './setup.ts';

const STAGES = [
  'drain',
  'features',
  'inference',
  'render',
  'encode',
  'packetize',
  'send',
  'audio',
] as const;
const CYCLE_SECONDS = 10;
const REFUSALS_TO_BELIEVE = 8;
const PROBE: TalkPlan = { cycleSeconds: 3, speechSeconds: 2, pace: 'burst' };

interface Counted {
  readonly frames: number;
  readonly gaps: number;
  readonly missed: number;
  readonly packets: number;
}

const countAll = ({ peers }: FleetSummary): Counted => ({
  frames: peers.reduce((sum, peer) => sum + peer.frames, 0),
  gaps: peers.reduce((sum, peer) => sum + peer.gapsOver300, 0),
  missed: peers.reduce((sum, peer) => sum + peer.packetsMissed, 0),
  packets: peers.reduce((sum, peer) => sum + peer.videoPackets, 0),
});

async function hold(context: Context, server: Server, fleet: Fleet): Promise<Step> {
  await settle(context.options);
  const [before, countedBefore] = [await look(server), countAll(await fleet.figures())];
  const startMs = performance.now();
  await delay(number(context.options, 'hold') * 1000);
  const after = await look(server);
  const summary = await fleet.figures();
  const seconds = (performance.now() - startMs) / 1000;
  const counted = countAll(summary);
  const inside =
    before !== undefined && after !== undefined ? new Interval(before, after) : undefined;
  const frames = inside?.increase('mouthpiece_frames_sent_total') ?? Number.NaN;
  const skipped = inside?.increase('mouthpiece_frames_skipped_total') ?? Number.NaN;
  const cores = inside?.rate('mouthpiece_worker_cpu_seconds_total') ?? Number.NaN;
  const missed = counted.missed - countedBefore.missed;
  // Of the recent frames only: each peer keeps its last few thousand delays, in order until it has
  // that many.
  const delays = summary.peers.flatMap(({ delaysMs }) => delaysMs.slice(-Math.round(seconds * 30)));
  const step = {
    sessions: fleet.size,
    cores,
    msPerFrame: (cores * seconds * 1000) / frames,
    latenessP50Ms:
      (inside?.quantile('mouthpiece_frame_lateness_seconds', 0.5) ?? Number.NaN) * 1000,
    latenessP99Ms:
      (inside?.quantile('mouthpiece_frame_lateness_seconds', 0.99) ?? Number.NaN) * 1000,
    skippedShare: skipped / (frames + skipped),
    lipsP99Ms: (inside?.quantile('mouthpiece_audio_to_lips_seconds', 0.99) ?? Number.NaN) * 1000,
    framesPerSession: (counted.frames - countedBefore.frames) / seconds / fleet.size,
    delayP99Ms: quantile(delays, 0.99),
    gapsOver300: counted.gaps - countedBefore.gaps,
    missedShare: missed / (counted.packets - countedBefore.packets + missed),
    rssMb: (after?.sum('process_resident_memory_bytes') ?? Number.NaN) / 2 ** 20,
    stages: Object.fromEntries(
      STAGES.map((stage) => [
        stage,
        inside?.rate('mouthpiece_stage_duration_seconds_sum', { stage }) ?? Number.NaN,
      ]),
    ),
    loadLoopP99Ms: summary.loopDelayP99Ms,
  };
  return { ...step, broken: whatBroke(step, context) };
}

function whatBroke(step: Omit<Step, 'broken'>, { options }: Context): string | undefined {
  if (step.latenessP99Ms > number(options, 'lateness')) {
    return `p99 lateness ${step.latenessP99Ms.toFixed(1)} ms`;
  }
  if (step.skippedShare > number(options, 'skipped')) {
    return `${(step.skippedShare * 100).toFixed(1)} % of the frames skipped`;
  }
  if (step.lipsP99Ms > number(options, 'lips')) {
    return `p99 audio to lips ${step.lipsP99Ms.toFixed(0)} ms`;
  }
  if (step.framesPerSession < number(options, 'fps')) {
    return `${step.framesPerSession.toFixed(1)} frames a second arrive`;
  }
  if (step.missedShare > number(options, 'missed')) {
    return `${(step.missedShare * 100).toFixed(1)} % of the packets lost on the way`;
  }
  return undefined;
}

/**
 * What the peer received is decoded and encoded again by nothing but encoders, on the worker's
 * core, after the load has gone.
 */
async function bareEncode(
  context: Context,
  file: string,
  kbps: number,
  encoders: number,
): Promise<BareEncode> {
  const cpu = lastCpu();
  const command = [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    path.join(import.meta.dirname, '../bare-encode.ts'),
    file,
    codecOf(context.options),
    String(Math.round(kbps)),
    String(encoders),
    String(Math.ceil(number(context.options, 'bareFrames') / encoders)),
  ];
  const { stdout } = await promisify(execFile)('taskset', ['-c', String(cpu), ...command]);
  return JSON.parse(stdout) as BareEncode;
}

/** Sessions of the next step of the ramp, `--max` at most; undefined when it is there. */
export function rampTo(options: Options, sessions: number, isFirst: boolean): number | undefined {
  const max = number(options, 'max');
  if (isFirst) {
    return Math.min(max, number(options, 'from'));
  }
  return sessions >= max ? undefined : Math.min(max, sessions + number(options, 'step'));
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const speechSeconds = (CYCLE_SECONDS * number(options, 'speaking')) / 100;
  // Placement would refuse before quality suffers; here it is quality that is looked for.
  const server = await context.server({
    WORKERS: String(options['workers']),
    MAX_WORKER_LOAD: '1',
    MAX_SESSIONS_PER_WORKER: '1000',
    MOTION: String(options['motion']),
  });
  const plan: TalkPlan = { cycleSeconds: CYCLE_SECONDS, speechSeconds, pace: 'burst' };
  const kind = kindOf(options);
  const roomCost =
    kind === 'livekit' && server.pid !== undefined
      ? await compareWithP2p(context, server, plan)
      : undefined;
  const fleet = await startFleet(context, server, {
    processes: number(options, 'processes'),
    codec: codecOf(options),
    kind,
  });
  const isProbed = speechSeconds > 0 && number(options, 'max') > 1;
  const empty = await look(server);
  const { peer: kept } = await fleet.open(plan, true);
  // One that begins to speak every few seconds, so that audio to lips is measured at every level of
  // load.
  if (isProbed) {
    await fleet.open(PROBE);
  }
  const steps: Step[] = [];
  let refused: string | undefined = undefined;
  for (
    let wanted = rampTo(options, fleet.size, true);
    refused === undefined && wanted !== undefined;
    wanted = rampTo(options, fleet.size, false)
  ) {
    refused = await openUpTo(fleet, wanted, plan);
    const step = await hold(context, server, fleet);
    steps.push(step);
    context.record('peers: sessions', step.sessions, '');
    context.record('peers: frames a second of a session', step.framesPerSession, '/s');
    context.record('peers: frame delay p99', step.delayP99Ms, 'ms');
    context.record('peers: packets lost', step.missedShare * 100, '%');
    const inside = Number.isFinite(step.cores)
      ? `${step.cores.toFixed(2)} cores  lateness p50 ${step.latenessP50Ms.toFixed(1)} ` +
        `p99 ${step.latenessP99Ms.toFixed(1)} ms  lips p99 ${step.lipsP99Ms.toFixed(0)} ` +
        `ms  ${step.rssMb.toFixed(0)} MB  `
      : '';
    context.progress(
      `${String(step.sessions).padStart(4)} ` +
        `sessions  ${inside}${step.framesPerSession.toFixed(1)} fps  delay ` +
        `p99 ${step.delayP99Ms.toFixed(1)} ms  load generator ` +
        `+${step.loadLoopP99Ms.toFixed(0)} ms  ${step.broken ?? 'ok'}`,
    );
    if (step.broken !== undefined) {
      break;
    }
  }
  const good = steps.filter(({ broken }) => broken === undefined);
  const best = good.at(-1);
  if (server.pid === undefined) {
    // What encoding costs on this machine says nothing of the server's.
    await fleet.closeAll();
    return capacityReport(context, {
      steps,
      best,
      bare: undefined,
      refused,
      roomCost,
      emptyMb: (empty?.sum('process_resident_memory_bytes') ?? Number.NaN) / 2 ** 20,
    });
  }
  const after = await look(server);
  const kbps =
    after === undefined
      ? 600
      : ((after.sum('mouthpiece_send_rate_target_bytes_per_second_sum') /
          after.sum('mouthpiece_send_rate_target_bytes_per_second_count')) *
          8) /
        1000;
  const file = path.join(
    OUT,
    `capacity-${process.pid}.${codecOf(options) === 'vp8' ? 'ivf' : 'h264'}`,
  );
  await fleet.dump(kept, file);
  await fleet.closeAll();
  await server.stop();
  const bare = await bareEncode(context, file, kbps, (best ?? steps[0]!).sessions).finally(() => {
    rmSync(file, { force: true });
  });
  context.progress(
    `bare encode ${bare.msPerFrame.toFixed(3)} ms a frame at ${bare.kbps.toFixed(0)} kbit/s`,
  );
  return capacityReport(context, {
    steps,
    best,
    bare,
    refused,
    roomCost,
    emptyMb: (empty?.sum('process_resident_memory_bytes') ?? Number.NaN) / 2 ** 20,
  });
}

/** @returns the server's reason when it takes no more, else undefined. */
async function openUpTo(fleet: Fleet, wanted: number, plan: TalkPlan): Promise<string | undefined> {
  for (let refusals = 0; fleet.size < wanted;) {
    try {
      await fleet.open(plan);
    } catch (error) {
      refusals++;
      // Many connects at once make frames late for a moment, and placement pauses: that is not the
      // end of the ramp yet.
      if (refusals === REFUSALS_TO_BELIEVE) {
        return error instanceof Error ? error.message : String(error);
      }
      await delay(1000);
    }
  }
  return undefined;
}

export const capacity: Scenario = {
  name: 'capacity',
  about:
    'Adds sessions until lateness, latency or loss breaks its bound; cost of a session ' +
    'against the bare encode of its frames. --kind livekit: in rooms, and against p2p.',
  options: {
    codec: 'vp8',
    kind: 'p2p',
    motion: 'natural',
    rounds: 3,
    roomRatio: 1.1,
    speaking: 100,
    workers: 1,
    processes: 1,
    from: 4,
    step: 4,
    max: 200,
    settle: 4,
    hold: 15,
    lateness: 15,
    lips: 120,
    fps: 28,
    missed: 0.005,
    skipped: 0.002,
    expect: 16,
    ratio: 2,
    bareFrames: 4000,
  },
  small: {
    from: 2,
    step: 1,
    max: 2,
    settle: 1,
    hold: 2,
    expect: 2,
    ratio: 20,
    lateness: 250,
    lips: 1000,
    fps: 15,
    missed: 0.1,
    skipped: 0.1,
    rounds: 1,
    roomRatio: 5,
    bareFrames: 400,
  },
  run,
};

// What a session with a user's own network (WAV2LIP_MODEL) costs those beside it on its worker:
// lateness of their frames with it, and with one more of their own kind instead.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { SessionStatsReport } from '../../src/link/messages.ts';
import { Wav2LipFace } from '../../src/pipeline/wav2lip/wav2lip-face.ts';
import { measurePatchMs } from '../../src/pipeline/wav2lip/patch-generator.ts';
import { Wav2LipNetwork } from '../../src/pipeline/wav2lip/wav2lip-network.ts';
import { smallNetwork } from '../../test/pipeline/wav2lip/small-network.ts';
import type { TalkPlan } from '../peers/protocol.ts';
import { ROOT } from '../run.ts';
import {
  type Context,
  type Outcome,
  type Scenario,
  type Server,
  atMost,
  number,
} from '../scenario.ts';
import { LATENESS_NOTE, type Lateness, inWords, latenessAfter, statsOf } from './lateness.ts';
import { codecOf, settle, startFleet } from './setup.ts';

const PLAN: TalkPlan = { cycleSeconds: 10, speechSeconds: 10, pace: 'burst' };
const SIDE = 96;
const FACE = path.join(ROOT, 'models/build/faces/ava.face');
const TRIAL_LAYERS = 8;

interface Found extends Lateness {
  readonly guest: SessionStatsReport;
}

/**
 * Writes a network that takes about `runMs` a run on a core of this machine.
 * @returns its file and how long it took here
 */
async function networkOf(runMs: number, folder: string): Promise<{ file: string; tookMs: number }> {
  const file = path.join(folder, 'network.onnx');
  const timed = async (layers: number): Promise<number> => {
    writeFileSync(file, smallNetwork(SIDE, { layers }));
    return await measurePatchMs(
      await Wav2LipNetwork.load(file, ['cpu']),
      new Wav2LipFace(readFileSync(FACE), SIDE),
      Number.POSITIVE_INFINITY,
    );
  };
  const [none, some] = [await timed(0), await timed(TRIAL_LAYERS)];
  return {
    file,
    tookMs: await timed(Math.max(0, Math.round(((runMs - none) / (some - none)) * TRIAL_LAYERS))),
  };
}

/** Lateness of the neighbours, all speaking, while a guest with `model` speaks beside them. */
async function beside(context: Context, server: Server, model: string): Promise<Found> {
  const { options } = context;
  const set = { processes: 1, codec: codecOf(options) };
  const fleet = await startFleet(context, server, set);
  const guests = await startFleet(context, server, {
    ...set,
    token: { model, maxIdleTime: 86_400, maxSessionLength: 86_400 },
  });
  // Those with little room come first: a worker takes any first session, and the neighbours fit
  // beside it.
  const guest = await guests.openPatiently(PLAN);
  const ids: string[] = [];
  for (let i = 0; i < number(options, 'neighbours'); i++) {
    ids.push((await fleet.openPatiently(PLAN)).sessionId);
  }
  await settle(options);
  const found = await latenessAfter(number(options, 'hold'), server, ids, (name, ms, unit) => {
    context.record(`beside ${model}: ${name}`, ms, unit);
  });
  const guestStats = await statsOf(server, guest.sessionId);
  await Promise.all([fleet.end(), guests.end()]);
  context.progress(
    `beside ${model}: neighbours' ${inWords(found)}; its own ` +
      `p99 ${guestStats.frameLatenessMs.p99.toFixed(1)} ms, ${guestStats.framesSkipped} skipped`,
  );
  return { ...found, guest: guestStats };
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-neighbours-'));
  context.defer(() => {
    rmSync(folder, { recursive: true });
  });
  const { file, tookMs } = await networkOf(number(options, 'run'), folder);
  context.progress(`a network of ${tookMs.toFixed(1)} ms a run`);
  const server = await context.server({ WORKERS: '1', MAX_WORKER_LOAD: '1', WAV2LIP_MODEL: file });
  const rig = await beside(context, server, 'rig');
  const wav2lip = await beside(context, server, 'wav2lip');
  const row = (name: string, { p50Ms, p99Ms, skipped, guest }: Found): (string | number)[] => [
    name,
    p50Ms,
    p99Ms,
    skipped,
    guest.frameLatenessMs.p99,
    guest.framesSkipped,
  ];
  return {
    figures: {
      runMs: tookMs,
      rigP99Ms: rig.p99Ms,
      wav2lipP99Ms: wav2lip.p99Ms,
      rigP50Ms: rig.p50Ms,
      wav2lipP50Ms: wav2lip.p50Ms,
      skipped: wav2lip.skipped,
      guestP99Ms: wav2lip.guest.frameLatenessMs.p99,
    },
    bounds: [
      atMost(
        'p99 lateness of the neighbours beyond what one more of their own kind costs',
        wav2lip.p99Ms - rig.p99Ms,
        number(options, 'beyond'),
        'ms',
      ),
    ],
    tables: [
      {
        title:
          `${options['neighbours']} neighbours and a guest, all ` +
          `speaking, ${tookMs.toFixed(1)} ms a run`,
        columns: [
          'guest',
          'late p50 ms',
          'late p99 ms',
          'skipped',
          'guest late p99 ms',
          'guest skipped',
        ],
        rows: [row('rig', rig), row('wav2lip', wav2lip)],
      },
    ],
    plots: [],
    notes: [LATENESS_NOTE],
  };
}

export const neighbours: Scenario = {
  name: 'neighbours',
  about:
    'Lateness of sessions beside one with a network of its own (WAV2LIP_MODEL) that takes ' +
    '--run ms a frame.',
  options: { codec: 'vp8', neighbours: 3, run: 15, settle: 4, hold: 18, beyond: 5 },
  small: { neighbours: 1, run: 3, settle: 1, hold: 2, beyond: 250 },
  run,
};

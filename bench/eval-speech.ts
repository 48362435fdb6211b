// `npm run eval:speech`: the shipped speech model, through the real front end, against voices and
// people that it never heard in training.
//
//   npm run eval:speech -- [--json FILE] [--audio FOLDER] [--manifest FILE]
//
// The audio is made (synthesizers) or found (Debian's sound packages) at run time by
// models/training/evalset.py, which says what it had to skip. It needs python3-numpy,
// python3-scipy, wamerican, flite, festival with festvox-kdlpc16k, and for real people pocketsphinx,
// pocketsphinx-en-us, pocketsphinx-testdata, alsa-utils, asterisk-core-sounds-en-g722,
// ktuberling-data and ffmpeg.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { native } from '../src/native/addon.ts';
import { ARTICULATORS } from '../src/media/articulation.ts';
import {
  FPS,
  SPEECH_RATE,
  speechSampleOfFrame,
  speechSamplesInStep,
} from '../src/media/timeline.ts';
import { MANIFEST_URL } from '../src/pipeline/inference/model-file.ts';
import { SpeechModel } from '../src/pipeline/inference/speech-model.ts';
import { readArguments } from '../scripts/command-line.ts';
import {
  correlations,
  lagMs,
  motion,
  mouthMean,
  onsetLagMs,
  scoreClosures,
  type Track,
} from './speech-metrics.ts';

interface Item {
  readonly set: string;
  readonly condition: string;
  readonly file: string;
  readonly curves: number[][] | undefined;
  readonly closures: [number, number][];
}
interface Index {
  readonly lookaheadMs: number;
  readonly skipped: string[];
  readonly items: Item[];
}

const USAGE = `npm run eval:speech -- [options]

  --json FILE      writes the figures there as well
  --audio FOLDER   keeps the recordings there, and takes them from there the next time
  --manifest FILE  evaluates the model of another manifest.json than models/'s`;

const { values: options } = readArguments(USAGE, {
  json: { type: 'string' },
  audio: { type: 'string' },
  manifest: { type: 'string' },
});

function makeAudio(folder: string): void {
  const script = fileURLToPath(new URL('../models/training/evalset.py', import.meta.url));
  const python =
    process.env['PYTHON'] ?? (existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3');
  const done = spawnSync(python, [script, folder], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (done.status !== 0) {
    throw new Error(
      `${python} ${script} failed. It needs python3-numpy, python3-scipy and wamerican (Debian packages).`,
    );
  }
}

/** Runs one recording as a live stream would: step by step from a fresh state. */
async function articulate(model: SpeechModel, pcm: Int16Array): Promise<Float32Array[]> {
  const mel = new native.MelFrontEnd();
  const slot = model.createState();
  const frames: Float32Array[] = [];
  const steps = Math.floor((pcm.length * FPS) / SPEECH_RATE);
  for (let k = 0; k < steps; k++) {
    const count = speechSamplesInStep(k);
    const start = speechSampleOfFrame(k);
    mel.step(pcm.subarray(start, start + count), count, slot.mel, 0);
    await model.run([slot]);
    frames.push(slot.articulation.slice());
  }
  return frames;
}

const number = (value: number, digits = 2): string =>
  (Number.isFinite(value) ? value.toFixed(digits) : '-').padStart(6);

async function main(): Promise<void> {
  const folder = options.audio ?? mkdtempSync(join(tmpdir(), 'eval-speech-'));
  if (!existsSync(join(folder, 'index.json'))) {
    makeAudio(folder);
  }
  const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')) as Index;
  const model = await SpeechModel.load({
    manifestUrl:
      options.manifest === undefined ? MANIFEST_URL : pathToFileURL(resolve(options.manifest)),
  });
  if (model.lookaheadMs !== index.lookaheadMs) {
    throw new Error(
      `the model looks ${model.lookaheadMs} ms ahead, the references are ` +
        `for ${index.lookaheadMs} ms`,
    );
  }

  const groups = new Map<string, Track[]>();
  for (const item of index.items) {
    const bytes = readFileSync(join(folder, item.file));
    const pcm = new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
    const track: Track = {
      predicted: await articulate(model, pcm),
      reference: item.curves,
      closures: item.closures,
    };
    const key = `${item.set}|${item.condition}`;
    groups.set(key, [...(groups.get(key) ?? []), track]);
  }

  const results: Record<string, unknown>[] = [];
  console.log(
    `\n${'set'.padEnd(9)}${'condition'.padEnd(14)}  r(mouth)  closures P    R     F1   lag ` +
      `ms  onset ms  r(brow) r(nod)   r: ${ARTICULATORS.slice(0, 11).join(' ')}`,
  );
  for (const [key, tracks] of groups) {
    const [set, condition] = key.split('|') as [string, string];
    if (condition === 'not speech') {
      continue;
    }
    const r = correlations(tracks);
    const closures = scoreClosures(tracks, model.lookaheadMs);
    const row = {
      set,
      condition,
      r,
      mouth: mouthMean(r),
      closures,
      lagMs: lagMs(tracks),
      onsetLagMs: onsetLagMs(tracks),
    };
    results.push(row);
    console.log(
      `${set.padEnd(9)}${condition.padEnd(14)}  ${number(row.mouth, 3)}       ` +
        `${number(closures.precision)}${number(closures.recall)}${number(closures.f1)}  ` +
        `${number(row.lagMs, 0)}   ${number(row.onsetLagMs, 0)}    ` +
        `${number(r['brow']!)} ${number(r['nod']!)}   ${ARTICULATORS.slice(0, 11)
          .map((name) => r[name]!.toFixed(2))
          .join(' ')}`,
    );
  }
  console.log(`\n${'not speech'.padEnd(30)} largest mouth channel   frames with motion`);
  for (const [key, tracks] of groups) {
    const [set, condition] = key.split('|') as [string, string];
    if (condition !== 'not speech') {
      continue;
    }
    const moved = motion(tracks);
    results.push({ set, condition, ...moved });
    console.log(
      `${set.padEnd(30)} ${number(moved.peak, 3)}                  ${(100 * moved.moving).toFixed(1)} ` +
        '%',
    );
  }
  for (const line of index.skipped) {
    console.log(`skipped: ${line}`);
  }
  if (options.json !== undefined) {
    writeFileSync(
      options.json,
      `${JSON.stringify({ lookaheadMs: model.lookaheadMs, skipped: index.skipped, results }, null, 2)}\n`,
    );
  }
  await model.close();
  if (options.audio === undefined) {
    rmSync(folder, { recursive: true });
  }
}

await main();

// `npm run faces:make`: renders the portraits of the default faces (models/faces/<id>.webp) with
// the generator in models/faces/generator.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import sharp, { type WebpOptions } from 'sharp';
import { explain, readArguments } from './command-line.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const GENERATOR = path.join(ROOT, 'models/faces/generator');
const WORK = path.join(ROOT, 'models/build/portraits');
// No -march=native: the same compiler then gives the same pictures on every machine of an
// architecture.
const FLAGS = ['-std=c++20', '-O3', '-ffast-math'];
const WEBP: WebpOptions = { quality: 93, smartSubsample: true, effort: 6 };

const USAGE = `npm run faces:make -- [id...] [options]

Renders the default faces, or the named ones. Finished portraits are kept, so you can interrupt it.

  --size PIXELS   width and height (1024)
  --samples N     camera rays per pixel and axis (2)
  --rays N        rays from each of these hits to a lamp (6)
  --out FOLDER    output folder (models/faces)`;

const { values, positionals } = readArguments(USAGE, {
  size: { type: 'string', default: '1024' },
  samples: { type: 'string', default: '2' },
  rays: { type: 'string', default: '6' },
  out: { type: 'string', default: path.join(ROOT, 'models/faces') },
});

mkdirSync(WORK, { recursive: true });
const HEADS = path.join(GENERATOR, 'heads');
const sources = readdirSync(GENERATOR)
  .filter((file) => /\.(cc|h)$/.test(file))
  .toSorted();
const inputs = [
  ...sources.map((file) => path.join(GENERATOR, file)),
  ...readdirSync(HEADS)
    .toSorted()
    .map((file) => path.join(HEADS, file)),
];
const version = inputs
  .reduce(
    (hash, file) => hash.update(readFileSync(file)),
    createHash('sha256').update(FLAGS.join(' ')),
  )
  .digest('hex')
  .slice(0, 16);
const program = path.join(WORK, `portraits-${version}`);
if (!existsSync(program)) {
  execFileSync(
    'g++',
    [
      ...FLAGS,
      '-o',
      `${program}.part`,
      ...sources.filter((file) => file.endsWith('.cc')),
      '-lpthread',
    ],
    { cwd: GENERATOR, stdio: 'inherit' },
  );
  renameSync(`${program}.part`, program);
}

const all = execFileSync(program, ['list'], { encoding: 'utf8' }).trim().split('\n');
for (const id of positionals.length > 0 ? positionals : all) {
  if (!all.includes(id)) {
    explain(USAGE, `There is no character "${id}". Choose from: ${all.join(', ')}.`);
  }
  const quality = [values.size, values.samples, values.rays].join('-');
  const picture = path.join(WORK, `${id}-${version}-${quality}.ppm`);
  if (!existsSync(picture)) {
    const started = Date.now();
    await render([id, HEADS, picture, values.size, values.samples, `rays=${values.rays}`]);
    console.log(`${id}: rendered in ${Math.round((Date.now() - started) / 1000)} s`);
  }
  const { data, info } = await sharp(readPpm(picture), {
    raw: { width: Number(values.size), height: Number(values.size), channels: 3 },
  })
    .webp(WEBP)
    .toBuffer({ resolveWithObject: true });
  writeFileSync(path.join(values.out, `${id}.webp`), data);
  console.log(`${path.join(values.out, `${id}.webp`)}: ${Math.round(info.size / 1024)} KiB`);
}

/** Runs the generator at low priority, because it uses all cores for minutes. */
async function render(parameters: string[]): Promise<void> {
  const child = spawn(program, parameters, { stdio: 'inherit' });
  if (child.pid !== undefined) {
    os.setPriority(child.pid, os.constants.priority.PRIORITY_LOW);
  }
  const code = await new Promise<number | undefined>((resolve, reject) => {
    child.once('exit', resolve);
    child.once('error', reject);
  });
  if (code !== 0) {
    throw new Error(`the generator ended with code ${code}`);
  }
}

/** Reads a PPM of the generator: one header line, then RGB. */
function readPpm(file: string): Buffer {
  const bytes = readFileSync(file);
  return bytes.subarray(bytes.indexOf(10) + 1);
}

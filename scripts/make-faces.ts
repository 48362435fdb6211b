// `npm run faces:make`: makes the portraits of the default faces (models/faces/<id>.webp). The
// generator (models/faces/generator, C++) shapes a character, Blender's Cycles renders it
// (models/faces/render, Python).
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import sharp, { type WebpOptions } from 'sharp';
import { explain, readArguments } from './command-line.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const FACES = path.join(ROOT, 'models/faces');
const GENERATOR = path.join(FACES, 'generator');
const HEADS = path.join(GENERATOR, 'heads');
const RENDER = path.join(FACES, 'render');
const WORK = path.join(ROOT, 'models/build/portraits');
/** Blender as a Python module: one version, so that pictures do not change with it. */
const BLENDER = 'bpy==4.5.15';
/** The only version of Python that it is built for. */
const PYTHON = 'python3.11';
// No -march=native: the same compiler then gives the same characters on every machine of an
// architecture.
const FLAGS = ['-std=c++20', '-O3', '-ffast-math'];
const WEBP: WebpOptions = { quality: 93, smartSubsample: true, effort: 6 };

const USAGE = `npm run faces:make -- [id...] [options]

Renders the default faces, or the named ones: 2 to 5 minutes each on two cores. Finished portraits
are kept, so you can interrupt it. Needs ${PYTHON}, and installs Blender for it from PyPI once
(${BLENDER}, 1 GB).

  --size PIXELS   width and height (1024)
  --samples N     paths per pixel (32)
  --out FOLDER    output folder (models/faces)`;

const { values, positionals } = readArguments(USAGE, {
  size: { type: 'string', default: '1024' },
  samples: { type: 'string', default: '32' },
  out: { type: 'string', default: FACES },
});

mkdirSync(WORK, { recursive: true });
mkdirSync(values.out, { recursive: true });
const filesOf = (folder: string, pattern: RegExp): string[] =>
  readdirSync(folder)
    .filter((file) => pattern.test(file))
    .toSorted()
    .map((file) => path.join(folder, file));
const sources = filesOf(GENERATOR, /\.cc$/);
const shape = hashOf([...filesOf(GENERATOR, /\.(cc|h)$/), ...filesOf(HEADS, /\.bin$/)], FLAGS);
const version = hashOf(filesOf(RENDER, /\.(py|json)$/), [shape, BLENDER]);
const program = path.join(WORK, `characters-${shape}`);
if (!existsSync(program)) {
  const part = `${program}.part`;
  execFileSync('g++', [...FLAGS, '-o', part, ...sources, '-lpthread'], { stdio: 'inherit' });
  renameSync(part, program);
}

const all = execFileSync(program, ['list'], { encoding: 'utf8' }).trim().split('\n');
for (const id of positionals.length > 0 ? positionals : all) {
  if (!all.includes(id)) {
    explain(USAGE, `There is no character "${id}". Choose from: ${all.join(', ')}.`);
  }
  const picture = path.join(WORK, `${id}-${version}-${values.size}-${values.samples}.png`);
  if (!existsSync(picture)) {
    const started = Date.now();
    await makePicture(id, picture);
    console.log(`${id}: rendered in ${Math.round((Date.now() - started) / 1000)} s`);
  }
  const { data, info } = await sharp(picture).webp(WEBP).toBuffer({ resolveWithObject: true });
  writeFileSync(path.join(values.out, `${id}.webp`), data);
  console.log(`${path.join(values.out, `${id}.webp`)}: ${Math.round(info.size / 1024)} KiB`);
}

/** Shapes a character, and renders it. The map has three points in a pixel. */
async function makePicture(id: string, picture: string): Promise<void> {
  const scene = path.join(WORK, `${id}-scene`);
  mkdirSync(scene, { recursive: true });
  const part = picture.replace(/\.png$/, '.part.png');
  await runQuietly(program, [id, HEADS, scene, String(3 * Number(values.size))]);
  const options = ['--size', values.size, '--samples', values.samples];
  await runQuietly(blender(), [RENDER, scene, id, part, ...options]);
  renameSync(part, picture);
  rmSync(scene, { recursive: true });
}

/** @returns a Python that has Blender; installs it on first use */
function blender(): string {
  const folder = path.join(WORK, 'blender');
  const python = path.join(folder, 'bin/python');
  const installed = path.join(folder, BLENDER);
  if (!existsSync(installed)) {
    try {
      execFileSync(PYTHON, ['-m', 'venv', folder], { stdio: 'inherit' });
      execFileSync(python, ['-m', 'pip', 'install', '--quiet', BLENDER], { stdio: 'inherit' });
    } catch (error) {
      throw new Error(
        `Blender could not be installed. Install ${PYTHON} with its module venv (Debian 12: ` +
          '"apt-get install python3.11-venv"), and let it reach PyPI.',
        { cause: error },
      );
    }
    writeFileSync(installed, '');
  }
  return python;
}

/** Runs a program at low priority, because it uses all cores for minutes. */
async function runQuietly(command: string, parameters: string[]): Promise<void> {
  const child = spawn(command, parameters, { stdio: ['ignore', 'ignore', 'inherit'] });
  if (child.pid !== undefined) {
    os.setPriority(child.pid, os.constants.priority.PRIORITY_LOW);
  }
  const code = await new Promise<number | undefined>((resolve, reject) => {
    child.once('exit', resolve);
    child.once('error', reject);
  });
  if (code !== 0) {
    throw new Error(`${command} ended with code ${code}`);
  }
}

function hashOf(files: readonly string[], more: readonly string[]): string {
  const hash = createHash('sha256').update(more.join(' '));
  for (const file of files) {
    hash.update(readFileSync(file));
  }
  return hash.digest('hex').slice(0, 16);
}

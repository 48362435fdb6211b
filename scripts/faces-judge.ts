// `npm run faces:judge -- FOLDER`: makes faces from portraits, lets each speak the same text, and writes
// a contact sheet and a film of each, and a table of figures beside those of people.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { crc32 } from 'node:zlib';
import { FaceLandmarker } from '../src/jobs/face/detect/face-landmarker.ts';
import { createFace } from '../src/jobs/face/create-face.ts';
import { FaceError } from '../src/jobs/face/face-error.ts';
import { EMOTIONS, MOTIONS } from '../src/media/articulation.ts';
import { decodeFaceAsset } from '../src/media/face-asset.ts';
import { PICTURE_SIZE } from '../src/media/picture.ts';
import { native } from '../src/native/addon.ts';
import { RigRenderer } from '../src/pipeline/render/rig-renderer.ts';
import { explain, readArguments } from './command-line.ts';
import { makeClip, MOMENTS } from './judge/clip.ts';
import { COLUMNS, figuresOf, type Marks } from './judge/figures.ts';
import { filmFrames, writeFilm, writeSheet } from './judge/sheet.ts';

const SIZE = PICTURE_SIZE;
const LANDMARKS = path.join(import.meta.dirname, 'judge/landmarks.py');
/** The upper face counts as identical when its pixels change by less than this in the mean. */
const SAME = 0.02;
/** Landmarks of the forehead and of the nose's tip. */
const [FOREHEAD, NOSE] = [10, 4];

const USAGE = `npm run faces:judge -- FOLDER [options]

Makes a face of each JPEG, PNG and WebP file in FOLDER, lets it speak a text and be silent, and
writes NAME.png (the portrait and ten moments of the speech), NAME-film.png (a second and a half of
it, ten pictures a second) and judge.md, a table of figures beside those of people. Needs flite.
Landmarks are MediaPipe's, which knows nothing of this server:

  python3 -m venv VENV && VENV/bin/pip install mediapipe==0.10.14 'numpy<2'
  npm run faces:judge -- FOLDER --python VENV/bin/python

Without MediaPipe the table has only what can be measured without landmarks.

  --out FOLDER      output folder (./judge)
  --python FILE     a Python with MediaPipe (python3)
  --motion NAME     ${MOTIONS.join(', ')} (natural)
  --emotion NAME    ${EMOTIONS.join(', ')} (neutral)
  --seed N          of the motion (another one for each file name, the same each time)`;

/** What was seen of one face. */
interface Judged {
  readonly name: string;
  readonly warnings: readonly string[];
  readonly createMs: number;
  /** Percent of frames in which the upper face stays as it was, in speech and in silence. */
  readonly identical: readonly [number, number];
  readonly figures: readonly string[] | undefined;
}

const { values, positionals } = readArguments(USAGE, {
  out: { type: 'string', default: 'judge' },
  python: { type: 'string', default: 'python3' },
  motion: { type: 'string', default: 'natural' },
  emotion: { type: 'string', default: 'neutral' },
  seed: { type: 'string' },
});
const [folder] = positionals;
if (folder === undefined || positionals.length > 1) {
  explain(USAGE, 'Name one folder of portraits.');
}
const motion =
  MOTIONS.find((name) => name === values.motion) ??
  explain(USAGE, `--motion ${values.motion}: must be one of ${MOTIONS.join(', ')}`);
const emotion = EMOTIONS.indexOf(values.emotion as never);
if (emotion < 0) {
  explain(USAGE, `--emotion ${values.emotion}: must be one of ${EMOTIONS.join(', ')}`);
}
if (values.seed !== undefined && !/^\d{1,9}$/.test(values.seed)) {
  explain(USAGE, `--seed ${values.seed}: must be a whole number`);
}

const list = (): string[] => {
  try {
    return readdirSync(folder).filter((file) => /\.(jpe?g|png|webp)$/i.test(file));
  } catch (error) {
    return explain(USAGE, `Cannot read ${folder}: ${(error as Error).message}`);
  }
};
const hasTracker =
  spawnSync(values.python, ['-c', 'from mediapipe.python.solutions import face_mesh']).status === 0;
const files = list().toSorted();
if (files.length === 0) {
  explain(USAGE, `${folder} has no JPEG, PNG or WebP file.`);
}
if (!hasTracker) {
  console.error(`${values.python} has no MediaPipe with face_mesh: no landmarks. See --help.`);
}

mkdirSync(values.out, { recursive: true });
const clip = await makeClip();
const film = filmFrames(clip);
const landmarker = await FaceLandmarker.load();
const judged: Judged[] = [];
const refused: string[] = [];
for (const file of files) {
  try {
    const one = await judge(file);
    judged.push(one);
    console.log(`${file}: identical ${one.identical.map((n) => `${n.toFixed(0)} %`).join(', ')}`);
  } catch (error) {
    if (!(error instanceof FaceError)) {
      throw error;
    }
    refused.push(`${file}: ${error.code}`);
    console.log(`${file}: ${error.message} (${error.code})`);
  }
}
writeFileSync(path.join(values.out, 'judge.md'), table());
console.log(path.join(values.out, 'judge.md'));

async function judge(file: string): Promise<Judged> {
  const portrait = readFileSync(path.join(folder!, file));
  const startMs = performance.now();
  const { asset, warnings } = await createFace(portrait, { name: file, landmarker });
  const createMs = performance.now() - startMs;
  const { landmarks } = decodeFaceAsset(asset);
  const rows = [FOREHEAD, NOSE].map((index) =>
    Math.min(SIZE, Math.max(0, Math.round(landmarks[index * 3 + 1]!))),
  );
  const [top, bottom] = [Math.min(...rows) * SIZE, Math.max(...rows) * SIZE];
  const renderer = new RigRenderer(new native.FaceAsset(asset), {
    // With one seed for all, every sheet would show the same poses at the same moments.
    seed: values.seed === undefined ? crc32(file) : Number(values.seed),
    emotion,
    motion,
    startFrame: 0,
  });
  const tracker = hasTracker ? track() : undefined;
  const seen = new Map<number, Buffer>();
  const same: [number, number] = [0, 0];
  const rgba = new Uint8Array(SIZE * SIZE * 4);
  let before: Uint8Array | undefined;
  for (const [frame, { articulation, isSpeaking }] of clip.frames.entries()) {
    renderer.draw(frame, articulation, isSpeaking);
    const upper = renderer.picture.slice(top, bottom);
    if (before !== undefined && meanDifference(before, upper) < SAME) {
      same[isSpeaking ? 0 : 1]++;
    }
    before = upper;
    const isSeen = clip.moments.includes(frame) || film.includes(frame);
    if (tracker === undefined && !isSeen) {
      continue;
    }
    native.i420ToRgba(renderer.picture, SIZE, SIZE, rgba);
    const rgb = withoutAlpha(rgba);
    if (isSeen) {
      seen.set(frame, rgb);
    }
    await tracker?.write(rgb);
  }
  const marks = await tracker?.end();
  const name = path.parse(file).name;
  const picture = (index: number): Buffer => seen.get(index)!;
  await writeSheet(
    path.join(values.out, `${name}.png`),
    portrait,
    MOMENTS.map(([moment], i) => [moment, picture(clip.moments[i]!)]),
  );
  await writeFilm(path.join(values.out, `${name}-film.png`), film.map(picture), landmarks);
  return {
    name,
    warnings,
    createMs,
    identical: [
      (100 * same[0]) / clip.spoken,
      (100 * same[1]) / (clip.frames.length - clip.spoken),
    ],
    figures: marks && figuresOf(marks, clip),
  };
}

/** A tracker that takes frames and gives the landmarks of all at the end. */
function track(): { write: (rgb: Buffer) => Promise<void>; end: () => Promise<(Marks | null)[]> } {
  const child = spawn(values.python, [LANDMARKS, String(SIZE)], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  // A tracker that ends early fails the write that is under way.
  child.stdin.on('error', () => {});
  const output = text(child.stdout);
  return {
    write: (rgb) =>
      new Promise((resolve, reject) => {
        child.stdin.write(rgb, (error) => {
          if (error) {
            reject(error);
          } else {
            resolve();
          }
        });
      }),
    end: async () => {
      child.stdin.end();
      const lines = (await output).trim().split('\n');
      return lines.map((line) => JSON.parse(line) as Marks | null);
    },
  };
}

function withoutAlpha(rgba: Uint8Array): Buffer {
  const rgb = Buffer.allocUnsafe((rgba.length / 4) * 3);
  for (let from = 0, to = 0; from < rgba.length; from += 4, to += 3) {
    rgb[to] = rgba[from]!;
    rgb[to + 1] = rgba[from + 1]!;
    rgb[to + 2] = rgba[from + 2]!;
  }
  return rgb;
}

function meanDifference(a: Uint8Array, b: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) {
    sum += Math.abs(a[i]! - b[i]!);
  }
  return sum / (a.length || 1);
}

function table(): string {
  const head = ['face', 'made in', 'identical in speech', 'in silence'];
  const people = ['people', '', '0-10 %', ''];
  const columns = hasTracker ? COLUMNS : [];
  const rows = judged.map((one) => [
    [one.name, ...one.warnings].join(' '),
    `${(one.createMs / 1000).toFixed(1)} s`,
    ...one.identical.map((share) => `${share.toFixed(0)} %`),
    ...(hasTracker ? (one.figures ?? columns.map(() => 'lost')) : []),
  ]);
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  return [
    `MOTION ${motion}, ${EMOTIONS[emotion]!}, seed ${values.seed ?? 'by name'}. Angles in degrees, ` +
      "lengths in % of the distance between the eyes' outer corners.\n\n",
    line([...head, ...columns.map(({ name }) => name)]),
    line([...head, ...columns].map(() => '---')),
    line([...people, ...columns.map((column) => column.people)]),
    ...rows.map(line),
    ...(refused.length === 0 ? [] : ['\nRefused:\n\n', ...refused.map((one) => `- ${one}\n`)]),
  ].join('');
}

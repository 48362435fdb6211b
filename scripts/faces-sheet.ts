// `npm run faces:sheet -- <portrait|face>...`: draws contact sheets that show how a face moves.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import sharp from 'sharp';
import {
  ARTICULATION_SIZE,
  ARTICULATORS,
  type Emotion,
  EMOTIONS,
  POSE_INDEX,
  POSE_SIZE,
  type PoseChannel,
} from '../src/media/articulation.ts';
import { decodeFaceAsset, type FaceAssetParts } from '../src/media/face-asset.ts';
import { i420Bytes, macroblocks } from '../src/media/picture.ts';
import { FPS, FRAME_MS, speechSamplesInStep } from '../src/media/timeline.ts';
import { native } from '../src/native/addon.ts';
import { SpeechModel } from '../src/pipeline/inference/speech-model.ts';
import { RigRenderer } from '../src/pipeline/render/rig-renderer.ts';
import { createFace } from '../src/jobs/face/create-face.ts';
import { listDefaultFaces } from '../src/jobs/face/default-faces.ts';
import { FaceError } from '../src/jobs/face/face-error.ts';
import { inspectAudio, openAudio } from '../src/jobs/video/audio/open-audio.ts';
import { Soundtrack } from '../src/jobs/video/soundtrack.ts';
import { explain, readArguments } from './command-line.ts';
import {
  articulationOf,
  SENTENCE_MS,
  sentenceAt,
  type Shape,
  VISEMES,
} from '../src/pipeline/render/visemes.ts';

/** The part of the face on a sheet. */
type Zoom = 'face' | 'mouth' | 'eyes';
/** A tile to draw. */
interface Shot {
  readonly label: string;
  readonly articulation: Float32Array;
  readonly pose: Float32Array;
  readonly emotion: Emotion;
}
/** A tile with a finished picture, I420. */
interface Drawn {
  readonly label: string;
  readonly picture: Uint8Array;
}
/** A part of a picture, pixels. */
interface Window {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Tiles of the built-in sentence. */
const SPOKEN_FRAMES = 48;
/** Limit for a recording: frames rendered, and tiles kept of them. */
const MAX_HEARD_FRAMES = 600;
const HEARD_TILES = 72;
/** Silence rendered after a recording. */
const TAIL_SECONDS = 0.4;

const poseOf = (channels: Partial<Record<PoseChannel, number>> = {}): Float32Array => {
  const pose = new Float32Array(POSE_SIZE);
  for (const [name, value] of Object.entries(channels)) {
    pose[POSE_INDEX[name as PoseChannel]] = value;
  }
  return pose;
};

const shot = (
  label: string,
  shape: Shape = {},
  channels: Partial<Record<PoseChannel, number>> = {},
  emotion: Emotion = 'neutral',
): Shot => ({ label, articulation: articulationOf(shape), pose: poseOf(channels), emotion });

const HEAD_EXTREMES: readonly Partial<Record<PoseChannel, number>>[] = [
  { yaw: 0.06 },
  { yaw: -0.06 },
  { pitch: 0.05 },
  { pitch: -0.05 },
  { roll: 0.05 },
  { roll: -0.05 },
  { shiftX: 6, shiftY: 3 },
  { breath: 1 },
];

function shapeShots(): Shot[] {
  const driven = ARTICULATORS.filter((name) => name !== 'nod' && name !== 'speech');
  return [
    shot('neutral'),
    ...driven.flatMap((name) => [shot(`${name} .5`, { [name]: 0.5 }), shot(name, { [name]: 1 })]),
    ...Object.entries(VISEMES).map(([name, shape]) => shot(`"${name}"`, shape)),
    ...[0.25, 0.5, 0.75, 1].map((b) => shot(`blink ${b}`, {}, { blinkLeft: b, blinkRight: b })),
    ...(
      [
        [-1, 0],
        [1, 0],
        [0, -1],
        [0, 1],
      ] as const
    ).map(([x, y]) => shot(`gaze ${x},${y}`, {}, { gazeX: x, gazeY: y })),
    ...EMOTIONS.slice(1).flatMap((emotion) => [
      shot(emotion, {}, {}, emotion),
      shot(`${emotion} "eh"`, VISEMES.eh, {}, emotion),
    ]),
    ...HEAD_EXTREMES.map((channels) =>
      shot(
        Object.entries(channels)
          .map(([k, v]) => `${k} ${v}`)
          .join(' '),
        VISEMES.eh,
        channels,
      ),
    ),
  ];
}

function spokenShots(emotion: Emotion): Shot[] {
  const step = Math.max(FRAME_MS, SENTENCE_MS / SPOKEN_FRAMES);
  return Array.from({ length: Math.floor(SENTENCE_MS / step) }, (_, i) => ({
    label: `${Math.round(i * step)} ms`,
    articulation: sentenceAt(i * step),
    pose: poseOf({ yaw: 0.03 * Math.sin(i * 0.2), shiftY: Math.sin(i * 0.3) }),
    emotion,
  }));
}

function formatOf(clip: string): 'wav' | 'mp3' | 'ogg' {
  const format = path.extname(clip).slice(1);
  if (format === 'wav' || format === 'mp3' || format === 'ogg') {
    return format;
  }
  throw new Error(`--speech ${clip}: must be a .wav, .mp3 or .ogg file`);
}

/** Renders a recording as a session would, and keeps evenly spaced frames. */
async function heardShots(asset: Uint8Array, clip: string, emotion: Emotion): Promise<Drawn[]> {
  const model = await SpeechModel.load();
  const input = { bytes: readFileSync(clip), format: formatOf(clip), rate: 0, channels: 0 };
  const { samples, rate } = await inspectAudio(input);
  const frames = Math.min(MAX_HEARD_FRAMES, Math.ceil((samples / rate + TAIL_SECONDS) * FPS));
  const soundtrack = new Soundtrack(await openAudio(input));
  const [mel, state] = [new native.MelFrontEnd(), model.createState()];
  const renderer = new RigRenderer(new native.FaceAsset(asset), {
    seed: 1,
    emotion: EMOTIONS.indexOf(emotion),
    startFrame: 0,
  });
  const pcm = new Int16Array(speechSamplesInStep(0) + 1);
  const drawn: Drawn[] = [];
  for (let step = 0; step < frames; step++) {
    const count = speechSamplesInStep(step);
    await soundtrack.readSpeech(pcm, count);
    mel.step(pcm, count, state.mel, 0);
    await model.run([state]);
    renderer.draw(step, state.articulation, true);
    drawn.push({
      label: `${Math.round((step + 1) * FRAME_MS - model.lookaheadMs)} ms`,
      picture: renderer.picture.slice(),
    });
  }
  soundtrack.close();
  await model.close();
  const every = Math.ceil(drawn.length / HEARD_TILES);
  return drawn.filter((_, i) => i % every === 0);
}

/** The part of each picture that a sheet shows. */
function windowOf({ width, height, landmarks }: FaceAssetParts, zoom: Zoom): Window {
  const at = (index: number): [number, number] => [
    landmarks[index * 3]!,
    landmarks[index * 3 + 1]!,
  ];
  const [[left], [right, top], [, chin]] = [at(234), at(454), at(152)];
  const faceWidth = right - left;
  const around = (x: number, y: number, w: number, h: number): Window => {
    const [cw, ch] = [Math.min(width, Math.round(w)), Math.min(height, Math.round(h))];
    return {
      left: Math.round(Math.max(0, Math.min(width - cw, x - w / 2))),
      top: Math.round(Math.max(0, Math.min(height - ch, y - h / 2))),
      width: cw,
      height: ch,
    };
  };
  const middle = (a: number, b: number): [number, number] => [
    (at(a)[0] + at(b)[0]) / 2,
    (at(a)[1] + at(b)[1]) / 2,
  ];
  if (zoom === 'mouth') {
    const [x, y] = middle(61, 291);
    return around(x, y + 0.06 * faceWidth, 0.72 * faceWidth, 0.62 * faceWidth);
  }
  if (zoom === 'eyes') {
    return around(...middle(33, 263), 0.85 * faceWidth, 0.42 * faceWidth);
  }
  return around(
    (left + right) / 2,
    (top + chin) / 2 - 0.15 * faceWidth,
    1.55 * faceWidth,
    1.9 * faceWidth,
  );
}

const label = (text: string, width: number): Buffer =>
  Buffer.from(
    `<svg width="${width}" height="20"><rect width="100%" height="20" fill="black"/><text ` +
      'x="4" y="15" font-family="sans-serif" font-size="14" ' +
      `fill="white">${text.replaceAll('"', '&quot;')}</text></svg>`,
  );

async function writeSheet(
  asset: Uint8Array,
  shots: readonly (Shot | Drawn)[],
  zoom: Zoom,
  columns: number,
  tileWidth: number,
  file: string,
): Promise<void> {
  const parts = decodeFaceAsset(asset);
  const { width, height } = parts;
  const window = windowOf(parts, zoom);
  const tileHeight = Math.round((tileWidth * window.height) / window.width);
  const face = new native.FaceAsset(asset);
  const canvas = new Uint8Array(i420Bytes(width, height));
  const dirty = new Uint8Array(macroblocks(width, height));
  const rgba = new Uint8Array(width * height * 4);
  const tiles: { input: Buffer; left: number; top: number }[] = [];
  const draw = ({ articulation, pose, emotion }: Shot): Uint8Array => {
    const renderer = new native.FaceRenderer(face);
    renderer.setEmotion(EMOTIONS.indexOf(emotion), 1);
    // Emotions fade in: render until the transition is complete.
    if (emotion !== 'neutral') {
      for (let i = 0; i < 60; i++) {
        renderer.render(new Float32Array(ARTICULATION_SIZE), pose, canvas, dirty);
      }
    }
    renderer.render(articulation, pose, canvas, dirty);
    return canvas;
  };
  for (const [index, tile] of shots.entries()) {
    const picture = 'picture' in tile ? tile.picture : draw(tile);
    native.i420ToRgba(picture, width, height, rgba);
    const input = await sharp(rgba, { raw: { width, height, channels: 4 } })
      .extract(window)
      .resize(tileWidth, tileHeight, { kernel: 'cubic' })
      .extend({ top: 20, background: 'black' })
      .composite([{ input: label(tile.label, tileWidth), left: 0, top: 0 }])
      .removeAlpha()
      .png()
      .toBuffer();
    tiles.push({
      input,
      left: (index % columns) * tileWidth,
      top: Math.floor(index / columns) * (tileHeight + 20),
    });
  }
  const rows = Math.ceil(shots.length / columns);
  await sharp({
    create: {
      width: columns * tileWidth,
      height: rows * (tileHeight + 20),
      channels: 3,
      background: 'black',
    },
  })
    .composite(tiles)
    .toFormat(path.extname(file) === '.webp' ? 'webp' : 'png', { quality: 80 })
    .toFile(file);
  process.stdout.write(`${file}\n`);
}

/**
 * The asset of a portrait. Reports a refused portrait and returns undefined, so that the other
 * inputs are still drawn.
 */
async function assetOf(portrait: Buffer, file: string): Promise<Uint8Array | undefined> {
  try {
    return (await createFace(portrait, { name: path.basename(file) })).asset;
  } catch (error) {
    if (!(error instanceof FaceError)) {
      throw error;
    }
    process.stderr.write(`${file}: ${error.message} (${error.code})\n`);
    process.exitCode = 1;
    return undefined;
  }
}

const faces = listDefaultFaces();
const USAGE = `npm run faces:sheet -- <portrait|face>... [options]

Draws contact sheets: neutral, each articulator, visemes, blinks, gaze, emotions, extremes of the
head pose, and a spoken sentence. A portrait is a JPEG, PNG or WebP file; a face is an asset file or
one of ${faces.map(({ id }) => id).join(', ')}.

  --out FOLDER       output folder (.)
  --zoom PART        face, mouth or eyes; can be repeated (all three)
  --emotion NAME     during speech: ${EMOTIONS.join(', ')}
  --speech FILE      also draw the frames of a recording, driven by the speech model
  --format NAME      png or webp (png)`;

/** The bytes of the file, or of the portrait of the default face of this name. */
function read(input: string): Buffer {
  const face = faces.find(({ id }) => id === input);
  try {
    return readFileSync(
      face === undefined || existsSync(input)
        ? input
        : path.join(import.meta.dirname, '../models/faces', face.file),
    );
  } catch (error) {
    return explain(USAGE, `Cannot read ${input}: ${(error as Error).message}`);
  }
}

const { values, positionals } = readArguments(USAGE, {
  out: { type: 'string', default: '.' },
  zoom: { type: 'string', multiple: true },
  emotion: { type: 'string', default: 'neutral' },
  speech: { type: 'string' },
  format: { type: 'string', default: 'png' },
});
if (positionals.length === 0) {
  explain(USAGE, 'Name a portrait or a face.');
}
const zooms = values.zoom ?? ['face', 'mouth', 'eyes'];
for (const [name, given, known] of [
  ['zoom', zooms, ['face', 'mouth', 'eyes']],
  ['emotion', [values.emotion], EMOTIONS],
  ['format', [values.format], ['png', 'webp']],
] as const) {
  const wrong = given.find((value) => !(known as readonly string[]).includes(value));
  if (wrong !== undefined) {
    explain(USAGE, `--${name} ${wrong}: must be one of ${known.join(', ')}`);
  }
}
mkdirSync(values.out, { recursive: true });
for (const input of positionals) {
  const bytes = read(input);
  const asset =
    bytes.subarray(0, 6).toString('latin1') === 'MPFACE' ? bytes : await assetOf(bytes, input);
  if (asset === undefined) {
    continue;
  }
  const stem = path.join(values.out, path.basename(input).replace(/\.\w+$/, ''));
  for (const zoom of zooms as Zoom[]) {
    await writeSheet(
      asset,
      shapeShots(),
      zoom,
      8,
      zoom === 'face' ? 220 : 250,
      `${stem}-${zoom}.${values.format}`,
    );
    if (values.speech !== undefined) {
      await writeSheet(
        asset,
        await heardShots(asset, values.speech, values.emotion as Emotion),
        zoom,
        9,
        200,
        `${stem}-heard-${zoom}.${values.format}`,
      );
    }
    if (zoom !== 'eyes') {
      await writeSheet(
        asset,
        spokenShots(values.emotion as Emotion),
        zoom,
        8,
        250,
        `${stem}-spoken-${zoom}.${values.format}`,
      );
    }
  }
}

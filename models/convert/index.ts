// Converts the networks of face creation at set-up: BlazeFace, FaceMesh and Selfie Segmentation of
// MediaPipe, from the npm packages that contain them, to ONNX files.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { encodeOnnx, type OnnxGraph } from './onnx.ts';
import { readTfjsModel } from './tfjs.ts';
import { readTfliteModel } from './tflite.ts';

/**
 * BlazeFace (back camera, 256x256 input) detects faces. FaceMesh (192x192 input) locates 468
 * landmarks of one face. Selfie Segmentation (general, 256x256 input) tells people from their
 * background. All are under Apache-2.0, see NOTICE.
 */
export const FACE_MODELS = ['blazeface', 'facemesh', 'selfie'] as const;

const STAMP = 'face-models.json';
/** The code that the outputs depend on. */
const CODE = ['onnx.ts', 'tfjs.ts', 'tflite.ts', 'weights.ts', 'index.ts'];

export interface ConvertOptions {
  /** Made when it does not exist. */
  readonly outDir: string;
  readonly log?: (line: string) => void;
}

/** Where a network comes from. */
interface Source {
  readonly files: readonly string[];
  readonly read: () => OnnxGraph;
}

/**
 * Writes `blazeface.onnx`, `facemesh.onnx` and `selfie.onnx` to `outDir`. Skips files that the same
 * code made from the same input. The same input gives the same bytes.
 * @throws Error when a package lacks a model or uses an operator that the converter does not know
 */
export async function convertFaceModels({ outDir, log = () => {} }: ConvertOptions): Promise<void> {
  const sources = modelSources();
  const inputs = hashOf([
    ...FACE_MODELS.flatMap((name) => sources[name].files),
    ...CODE.map((file) => path.join(import.meta.dirname, file)),
  ]);
  mkdirSync(outDir, { recursive: true });
  const stamp = path.join(outDir, STAMP);
  if (
    existsSync(stamp) &&
    isCurrent(JSON.parse(readFileSync(stamp, 'utf8')) as Stamp, inputs, outDir)
  ) {
    return;
  }
  const outputs: Record<string, string> = {};
  for (const name of FACE_MODELS) {
    const file = path.join(outDir, `${name}.onnx`);
    const bytes = encodeOnnx(sources[name].read());
    // Rename atomically: an interrupted or concurrent set-up never leaves a partial file under the
    // final name.
    writeFileSync(`${file}.${process.pid}.tmp`, bytes);
    renameSync(`${file}.${process.pid}.tmp`, file);
    outputs[name] = createHash('sha256').update(bytes).digest('hex');
    log(`made ${path.relative(process.cwd(), file)} (${Math.round(bytes.length / 1024)} KiB)`);
  }
  writeFileSync(stamp, JSON.stringify({ inputs, outputs } satisfies Stamp, null, 2));
}

/** SHA-256 of all inputs together, and of each output. */
interface Stamp {
  inputs: string;
  outputs: Record<string, string>;
}

const isCurrent = (stamp: Stamp, inputs: string, outDir: string): boolean =>
  stamp.inputs === inputs &&
  FACE_MODELS.every(
    (name) =>
      existsSync(path.join(outDir, `${name}.onnx`)) &&
      hashOf([path.join(outDir, `${name}.onnx`)]) === stamp.outputs[name],
  );

function hashOf(files: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of files) {
    hash.update(readFileSync(file));
  }
  return hash.digest('hex');
}

function modelSources(): Record<(typeof FACE_MODELS)[number], Source> {
  const landmarks = path.resolve(packageFolder('@vladmandic/human'), '../models');
  const tfjs = (name: string): Source => ({
    files: ['json', 'bin'].map((type) => path.join(landmarks, `${name}.${type}`)),
    read: () => readTfjsModel(path.join(landmarks, `${name}.json`)),
  });
  const selfie = path.join(
    packageFolder('@mediapipe/selfie_segmentation'),
    'selfie_segmentation.tflite',
  );
  return {
    blazeface: tfjs('blazeface'),
    facemesh: tfjs('facemesh'),
    selfie: { files: [selfie], read: () => readTfliteModel(selfie) },
  };
}

/**
 * The folder of a package's entry point, which is resolved but not loaded: a package need not
 * export its package.json.
 */
const packageFolder = (name: string): string =>
  path.dirname(createRequire(import.meta.url).resolve(name));

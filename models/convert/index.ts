// Converts the face networks at set-up: BlazeFace and FaceMesh of MediaPipe, from the npm package
// that contains them, to ONNX files.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { encodeOnnx } from './onnx.ts';
import { readTfjsModel } from './tfjs.ts';

/**
 * BlazeFace (back camera, 256x256 input) detects faces. FaceMesh (192x192 input) locates 468
 * landmarks of one face. Both are under Apache-2.0, see NOTICE.
 */
export const LANDMARK_MODELS = ['blazeface', 'facemesh'] as const;

const STAMP = 'landmarks.json';

export interface ConvertOptions {
  /** Made when it does not exist. */
  readonly outDir: string;
  readonly log?: (line: string) => void;
}

/**
 * Writes `blazeface.onnx` and `facemesh.onnx` to `outDir`. Skips files that the same code made from
 * the same input. The same input gives the same bytes.
 * @throws Error when the package lacks a model or uses an operator that the converter does not know
 */
export async function convertLandmarkModels({
  outDir,
  log = () => {},
}: ConvertOptions): Promise<void> {
  const folder = modelFolder();
  const inputs = hashOf([
    ...LANDMARK_MODELS.flatMap((name) => [
      path.join(folder, `${name}.json`),
      path.join(folder, `${name}.bin`),
    ]),
    ...['onnx.ts', 'tfjs.ts', 'index.ts'].map((file) => path.join(import.meta.dirname, file)),
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
  for (const name of LANDMARK_MODELS) {
    const file = path.join(outDir, `${name}.onnx`);
    const bytes = encodeOnnx(readTfjsModel(path.join(folder, `${name}.json`)));
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
  LANDMARK_MODELS.every(
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

/**
 * The folder of the models. The package does not export its package.json, so the folder is found
 * from its entry point, which is resolved but not loaded.
 */
function modelFolder(): string {
  const entry = createRequire(import.meta.url).resolve('@vladmandic/human');
  return path.resolve(path.dirname(entry), '../models');
}

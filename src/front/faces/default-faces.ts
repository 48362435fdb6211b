// The faces that every installation has: those that the manifest lists and the set-up has built.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { fileExists } from '../store/blobs.ts';

/** Where default faces come from. */
export interface DefaultFaceFiles {
  /** JSON file that lists them. */
  readonly manifestFile: string;
  /** Directory of the built assets (`<id>.face`) and previews (`<id>.jpg`). */
  readonly builtDir: string;
}

/** A default face with its files. */
export interface DefaultFace {
  readonly id: string;
  readonly name: string;
  readonly assetFile: string;
  readonly previewFile: string;
}

const MODELS = path.resolve(import.meta.dirname, '../../../models');

/** The default faces of this package. */
export const DEFAULT_FACES: DefaultFaceFiles = {
  manifestFile: path.join(MODELS, 'faces/faces.json'),
  builtDir: path.join(MODELS, 'build/faces'),
};

const manifest = z.object({ faces: z.array(z.object({ id: z.string(), name: z.string() })) });

/** The faces of the manifest whose assets exist. */
export async function loadDefaultFaces({
  manifestFile,
  builtDir,
}: DefaultFaceFiles): Promise<DefaultFace[]> {
  const { faces } = manifest.parse(JSON.parse(await readFile(manifestFile, 'utf8')));
  const listed = faces.map(({ id, name }) => ({
    id,
    name,
    assetFile: path.join(builtDir, `${id}.face`),
    previewFile: path.join(builtDir, `${id}.jpg`),
  }));
  const exists = await Promise.all(listed.map((face) => fileExists(face.assetFile)));
  return listed.filter((_face, index) => exists[index]);
}

/**
 * The asset of some default face, the same one each time: workers measure the cost of a session
 * with it.
 * @throws Error when the set-up has not built any face
 */
export function readAnyDefaultFace({ builtDir }: DefaultFaceFiles): SharedArrayBuffer {
  const name = existsSync(builtDir)
    ? readdirSync(builtDir)
        .filter((file) => file.endsWith('.face'))
        .sort()[0]
    : undefined;
  if (name === undefined) {
    throw new Error('There is no default face. Run: npm run setup');
  }
  const bytes = readFileSync(path.join(builtDir, name));
  const shared = new SharedArrayBuffer(bytes.length);
  new Uint8Array(shared).set(bytes);
  return shared;
}

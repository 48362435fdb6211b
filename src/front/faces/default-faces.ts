// The faces every installation has: what the manifest lists and the set-up has made.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { fileExists } from '../store/blobs.ts';

export interface DefaultFace {
  readonly id: string;
  readonly name: string;
  readonly assetFile: string;
  readonly previewFile: string;
}

const manifest = z.object({ faces: z.array(z.object({ id: z.string(), name: z.string() })) });

/** @returns the faces of `manifestFile` whose assets lie in `builtDir`. */
export async function loadDefaultFaces(
  manifestFile: string,
  builtDir: string,
): Promise<DefaultFace[]> {
  const { faces } = manifest.parse(JSON.parse(await readFile(manifestFile, 'utf8')));
  const listed = faces.map(({ id, name }) => ({
    id,
    name,
    assetFile: path.join(builtDir, `${id}.face`),
    previewFile: path.join(builtDir, `${id}.jpg`),
  }));
  const made = await Promise.all(listed.map((face) => fileExists(face.assetFile)));
  return listed.filter((_face, index) => made[index]);
}

// The default faces, listed in models/faces/faces.json. Set-up makes their assets from the
// portraits there, in the same way as an upload.
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { createFace } from './create-face.ts';
import { FaceLandmarker } from './detect/face-landmarker.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const FACES = path.join(ROOT, 'models/faces');
const STAMP = 'faces.stamp.json';

const Manifest = z
  .object({
    faces: z
      .array(
        z
          .object({
            /** Stable and readable: clients store it. */
            id: z.string().regex(/^[a-z][a-z0-9-]{1,31}$/),
            name: z.string().min(1),
            /** The portrait, relative to models/faces. */
            file: z.string().regex(/^[\w-]+\.(png|webp|jpg)$/),
            description: z.string().min(1),
          })
          .strict(),
      )
      .min(1),
  })
  .strict();

/** One entry of faces.json. */
export type DefaultFace = z.infer<typeof Manifest>['faces'][number];

/**
 * Reads models/faces/faces.json.
 * @throws ZodError when the file is malformed
 */
export const listDefaultFaces = (): DefaultFace[] =>
  Manifest.parse(JSON.parse(readFileSync(path.join(FACES, 'faces.json'), 'utf8'))).faces;

/** Where default faces are written, and who is told. */
export interface BuildOptions {
  /** Made when it does not exist. */
  readonly outDir: string;
  /** Gets one line for each face that was made. */
  readonly log?: (line: string) => void;
}

/**
 * Writes `<id>.face` and `<id>.jpg` (preview) for every default face. Skips a face whose portrait
 * and dependencies are unchanged.
 * @throws FaceError when a portrait is refused
 * @throws Error when the landmark models are missing
 */
export async function buildDefaultFaces({ outDir, log = () => {} }: BuildOptions): Promise<void> {
  mkdirSync(outDir, { recursive: true });
  const stampFile = path.join(outDir, STAMP);
  const stamps = existsSync(stampFile)
    ? (JSON.parse(readFileSync(stampFile, 'utf8')) as Record<string, string>)
    : {};
  const dependencies = hashOf(dependencyFiles());
  let landmarker: FaceLandmarker | undefined;
  for (const { id, name, file } of listDefaultFaces()) {
    const portrait = path.join(FACES, file);
    const stamp = hashOf([portrait], dependencies, name);
    const asset = path.join(outDir, `${id}.face`);
    const preview = path.join(outDir, `${id}.jpg`);
    if (stamps[id] === stamp && existsSync(asset) && existsSync(preview)) {
      continue;
    }
    landmarker ??= await FaceLandmarker.load();
    const face = await createFace(readFileSync(portrait), { name, landmarker });
    replace(asset, face.asset);
    replace(preview, face.preview);
    stamps[id] = stamp;
    replace(stampFile, JSON.stringify(stamps, null, 2));
    log(`made face ${id}${face.warnings.length > 0 ? ` (${face.warnings.join(', ')})` : ''}`);
  }
}

/** Replaces a file by an atomic rename, so that nobody reads half an asset. */
function replace(file: string, content: Uint8Array | string): void {
  writeFileSync(`${file}.${process.pid}.tmp`, content);
  renameSync(`${file}.${process.pid}.tmp`, file);
}

/**
 * The files besides the portrait that an asset depends on: the code in this folder and its
 * subfolders, the asset format, and the face networks.
 */
export const dependencyFiles = (): string[] => [
  ...readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .toSorted()
    .map((file) => path.join(import.meta.dirname, file)),
  path.join(ROOT, 'src/media/face-asset.ts'),
  path.join(ROOT, 'models/build/face-models.json'),
];

function hashOf(files: readonly string[], ...more: string[]): string {
  const hash = createHash('sha256');
  for (const file of files) {
    hash.update(readFileSync(file));
  }
  return hash.update(more.join('\0')).digest('hex');
}

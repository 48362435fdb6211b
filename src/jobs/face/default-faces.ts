// The faces that every installation has: listed in models/faces/faces.json, made from their portraits at set-up like any upload.
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
            /** Stable and readable: clients write it down. */
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

export type DefaultFace = z.infer<typeof Manifest>['faces'][number];

/** @returns what models/faces/faces.json lists. @throws ZodError when it is malformed */
export const listDefaultFaces = (): DefaultFace[] =>
  Manifest.parse(JSON.parse(readFileSync(path.join(FACES, 'faces.json'), 'utf8'))).faces;

export interface BuildOptions {
  readonly outDir: string;
  readonly log?: (line: string) => void;
}

/**
 * Writes `<id>.face` and `<id>.jpg` (preview) for every default face, and leaves alone those whose portrait and makers are unchanged.
 * @throws FaceError when a portrait is refused, Error when the landmark models are missing
 */
export async function buildDefaultFaces({ outDir, log = () => {} }: BuildOptions): Promise<void> {
  mkdirSync(outDir, { recursive: true });
  const stampFile = path.join(outDir, STAMP);
  const stamps = existsSync(stampFile)
    ? (JSON.parse(readFileSync(stampFile, 'utf8')) as Record<string, string>)
    : {};
  const makers = hashOf(dependencyFiles());
  let finder: FaceLandmarker | undefined;
  for (const { id, name, file } of listDefaultFaces()) {
    const portrait = path.join(FACES, file);
    const stamp = hashOf([portrait], makers, name);
    const asset = path.join(outDir, `${id}.face`);
    const preview = path.join(outDir, `${id}.jpg`);
    if (stamps[id] === stamp && existsSync(asset) && existsSync(preview)) {
      continue;
    }
    finder ??= await FaceLandmarker.load();
    const face = await createFace(readFileSync(portrait), { name, landmarker: finder });
    replace(asset, face.asset);
    replace(preview, face.preview);
    stamps[id] = stamp;
    replace(stampFile, JSON.stringify(stamps, null, 2));
    log(`made face ${id}${face.warnings.length > 0 ? ` (${face.warnings.join(', ')})` : ''}`);
  }
}

/** A rename is atomic: nobody ever reads half an asset. */
function replace(file: string, content: Uint8Array | string): void {
  writeFileSync(`${file}.${process.pid}.tmp`, content);
  renameSync(`${file}.${process.pid}.tmp`, file);
}

/** Whatever changes an asset's bytes beside its portrait: this folder's code, the format, the landmark models. */
const dependencyFiles = (): string[] => [
  ...readdirSync(import.meta.dirname)
    .filter((file) => file.endsWith('.ts'))
    .toSorted()
    .map((file) => path.join(import.meta.dirname, file)),
  path.join(ROOT, 'src/media/face-asset.ts'),
  path.join(ROOT, 'models/build/landmarks.json'),
];

function hashOf(files: readonly string[], ...more: string[]): string {
  const hash = createHash('sha256');
  for (const file of files) {
    hash.update(readFileSync(file));
  }
  return hash.update(more.join('\0')).digest('hex');
}

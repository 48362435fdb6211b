// Reads model files that the manifest lists, and refuses a file with other bytes.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { z } from 'zod';

const shape = z.array(z.union([z.number().int().positive(), z.literal('batch')]));

const manifestSchema = z.object({
  models: z.record(
    z.string(),
    z.object({
      file: z.string(),
      sha256: z.string().regex(/^[0-9a-f]{64}$/),
      bytes: z.number().int().positive(),
      inputs: z.record(z.string(), shape),
      outputs: z.record(z.string(), shape),
      lookaheadMs: z.number().nonnegative().optional(),
    }),
  ),
});

/** What the manifest says of one model. */
export type ModelEntry = z.infer<typeof manifestSchema>['models'][string];

/** A model file that has the size and the SHA-256 of its entry. */
export interface ModelFile {
  readonly entry: ModelEntry;
  readonly bytes: Buffer;
}

/** The manifest of the models in the repository. */
export const MANIFEST_URL = new URL('../../../models/manifest.json', import.meta.url);

/**
 * @param name key in the manifest's `models`
 * @throws Error that says what is wrong with the file, and what to do
 */
export async function readModelFile(
  name: string,
  manifestUrl: URL = MANIFEST_URL,
): Promise<ModelFile> {
  const manifest = manifestSchema.safeParse(JSON.parse(await readFile(manifestUrl, 'utf8')));
  if (!manifest.success) {
    throw new Error(
      `${manifestUrl.pathname} is not a valid model manifest: ${z.prettifyError(manifest.error)}`,
    );
  }
  const entry = manifest.data.models[name];
  if (entry === undefined) {
    throw new Error(`${manifestUrl.pathname} lists no model called "${name}".`);
  }
  const url = new URL(entry.file, manifestUrl);
  let bytes: Buffer;
  try {
    bytes = await readFile(url);
  } catch (error) {
    throw new Error(
      `The model file ${url.pathname} cannot be read. Restore it from the repository.`,
      { cause: error },
    );
  }
  const fault = faultOf(bytes, entry);
  if (fault !== undefined) {
    throw new Error(`The model file ${basename(url.pathname)} ${fault}`);
  }
  return { entry, bytes };
}

function faultOf(bytes: Buffer, entry: ModelEntry): string | undefined {
  const head = bytes.subarray(0, 64).toString('latin1');
  if (head.startsWith('version https://git-lfs')) {
    return 'is a Git LFS pointer, not the model itself. Run `git lfs pull`.';
  }
  if (head.startsWith('/annex/objects') || head.includes('.git/annex')) {
    return 'is a git-annex pointer, not the model itself. Run `git annex get`.';
  }
  if (bytes.length < entry.bytes) {
    return `is cut short: ${bytes.length} of ${entry.bytes} bytes. Fetch it again.`;
  }
  if (
    bytes.length > entry.bytes ||
    createHash('sha256').update(bytes).digest('hex') !== entry.sha256
  ) {
    return (
      'does not have the SHA-256 that the manifest lists. Fetch it again. ' +
      'If you trained it yourself, run models/training/export.py.'
    );
  }
  return undefined;
}

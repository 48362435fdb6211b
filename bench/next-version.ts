// A source tree of another version than this one: what an upgrade starts in place of a server.
import { cp, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { packageVersion } from '../src/version.ts';
import { ROOT } from './run.ts';

/** What a server tells of itself after the upgrade. */
export const NEXT_VERSION = `${packageVersion()}-next`;

/** Copies the sources of this checkout, with another version; all else is linked. */
export async function copyWithNextVersion(): Promise<{ tree: string; remove(): Promise<void> }> {
  const tree = await mkdtemp(path.join(os.tmpdir(), 'mouthpiece-next-'));
  await cp(path.join(ROOT, 'src'), path.join(tree, 'src'), { recursive: true });
  const description = { name: 'mouthpiece', version: NEXT_VERSION, type: 'module' };
  await writeFile(path.join(tree, 'package.json'), JSON.stringify(description));
  for (const name of await readdir(ROOT)) {
    if (!['src', 'package.json', '.git', 'data'].includes(name)) {
      await symlink(path.join(ROOT, name), path.join(tree, name));
    }
  }
  return { tree, remove: () => rm(tree, { recursive: true }) };
}

// Small files the server makes for itself in its data directory on first start: keys and its identity.
import { link, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { newUuid } from '../../base/ids.ts';

/** So much must still fit: on a full disk the server would seem well until the first write that matters. */
const ROOM_BYTES = 1 << 20;

/** Makes the data directory if need be, and sees whether something can be written there. @throws Error with one line to act on when it cannot be used */
export async function prepareDataDir(dataDir: string): Promise<void> {
  try {
    await makeDirectory(dataDir);
    const trial = path.join(dataDir, `.trial-${newUuid().slice(0, 8)}`);
    try {
      await writeFile(trial, new Uint8Array(ROOM_BYTES));
    } finally {
      await rm(trial, { force: true });
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const advice =
      code === 'ENOSPC' || code === 'EDQUOT'
        ? 'The disk is full: make room, or name a directory elsewhere.'
        : 'Name a directory that this user may write to.';
    throw new Error(`DATA_DIR=${dataDir} cannot be used (${code}). ${advice}`, { cause: error });
  }
}

/** With its parents. Node's own `recursive` tries for ever where a parent is there and nothing can be made in it, as in /proc, whose answer is ENOENT. */
async function makeDirectory(directory: string): Promise<void> {
  const make = async (): Promise<void> => {
    await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') {
        throw error;
      }
    });
  };
  try {
    await make();
  } catch (error) {
    if (
      (error as NodeJS.ErrnoException).code !== 'ENOENT' ||
      path.dirname(directory) === directory
    ) {
      throw error;
    }
    await makeDirectory(path.dirname(directory));
    await make();
  }
}

/** The file's content, without the final line break; made by `create`, readable by the owner alone, when it is not there. */
export async function readOrCreate(
  dataDir: string,
  name: string,
  create: () => string,
): Promise<string> {
  const file = path.join(dataDir, name);
  const existing = await read(file);
  if (existing !== undefined) {
    return existing;
  }
  await mkdir(dataDir, { recursive: true });
  const temporary = `${file}.${newUuid().slice(0, 8)}`;
  const handle = await open(temporary, 'wx', 0o600);
  await handle.writeFile(`${create()}\n`);
  await handle.sync();
  await handle.close();
  // A link fails where another process was quicker; then its content counts.
  await link(temporary, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') {
      throw error;
    }
  });
  await rm(temporary, { force: true });
  return (await read(file)) as string;
}

async function read(file: string): Promise<string | undefined> {
  const content = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') {
      return '';
    }
    throw error;
  });
  return content.trim() === '' ? undefined : content.trim();
}

/** Names this server in claims and journals, across its restarts. */
export const serverIdentity = (dataDir: string): Promise<string> =>
  readOrCreate(dataDir, 'server-id', newUuid);

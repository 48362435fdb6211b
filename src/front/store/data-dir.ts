// The data directory: its check at start, and small files that the server creates in it (keys, its
// id).
import { link, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { newUuid } from '../../base/ids.ts';

/**
 * Free space that the check needs. Without it, a full disk would show only at the first real write.
 */
const TRIAL_BYTES = 1 << 20;

/**
 * Creates the data directory if needed and tries a write.
 * @throws Error that says what to set when it cannot be used
 */
export async function prepareDataDir(dataDir: string): Promise<void> {
  try {
    await makeDirectory(dataDir);
    const trial = path.join(dataDir, `.trial-${newUuid().slice(0, 8)}`);
    try {
      await writeFile(trial, new Uint8Array(TRIAL_BYTES));
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

/**
 * Creates a directory and its parents. The `recursive` option of Node loops for ever below a
 * directory in which mkdir fails with ENOENT, such as /proc.
 */
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

/** The trimmed content of a file. A missing file is created by `create`, with mode 0600. */
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
  try {
    await handle.writeFile(`${create()}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  // link fails when another process created the file first. Then that content is used.
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

/** The id of this server in claims and journals. It stays the same across restarts. */
export const serverIdentity = (dataDir: string): Promise<string> =>
  readOrCreate(dataDir, 'server-id', newUuid);

// `npm run data`: copies what is durable in Redis, writes it back into an empty one, and checks it.
import { createReadStream, createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { checkData } from '../src/front/store/data-check.ts';
import { exportData, importData } from '../src/front/store/data-copy.ts';
import type { RedisStore } from '../src/front/store/redis.ts';
import { readArguments } from './command-line.ts';
import { openStore } from './open-store.ts';

const USAGE = `npm run data -- export FILE   writes what is durable as lines of JSON
npm run data -- import FILE   writes such a file into an empty Redis
npm run data -- check         looks for what does not belong together; 1 when something is found

Durable are API keys, faces, agents, history, transcripts and the list of videos.
The data is in the Redis of REDIS_URL, else in the one under DATA_DIR, by the settings of the
environment and of SETTINGS_FILE: give those of the server. Servers may run during export and check,
not during import. Pictures and videos are files, not in Redis: copy DATA_DIR or the bucket.
Secrets stay sealed: keep SECRETS_KEY too, but elsewhere.
`;

async function main(): Promise<number> {
  const [command, file, ...rest] = readArguments(USAGE, {}).positionals;
  const isCopy = command === 'export' || command === 'import';
  if (
    rest.length > 0 ||
    (isCopy ? file === undefined : command !== 'check' || file !== undefined)
  ) {
    process.stderr.write(USAGE);
    return 2;
  }
  const opened = await openStore();
  try {
    switch (command) {
      case 'export':
        return await exportTo(opened.store, file!);
      case 'import':
        return await importFrom(opened.store, file!);
      default:
        return await check(opened.store);
    }
  } finally {
    await opened.close();
  }
}

/** The file appears when it is whole. */
async function exportTo(store: RedisStore, file: string): Promise<number> {
  let lines = 0;
  async function* text(): AsyncGenerator<string> {
    for await (const line of exportData(store)) {
      lines++;
      yield `${line}\n`;
    }
  }
  await pipeline(Readable.from(text()), createWriteStream(`${file}.part`, { mode: 0o600 }));
  await rename(`${file}.part`, file);
  process.stderr.write(`${lines - 2} keys are in ${file}.\n`);
  return 0;
}

async function importFrom(store: RedisStore, file: string): Promise<number> {
  const count = await importData(store, () =>
    createInterface({ input: createReadStream(file), crlfDelay: Infinity }),
  );
  process.stderr.write(`${count} keys were written.\n`);
  return 0;
}

async function check(store: RedisStore): Promise<number> {
  const { counts, problems } = await checkData(store);
  for (const [name, count] of [...counts].toSorted(([a], [b]) => a.localeCompare(b))) {
    process.stdout.write(`${String(count).padStart(8)}  ${name}\n`);
  }
  for (const problem of problems) {
    process.stdout.write(`! ${problem}\n`);
  }
  process.stdout.write(problems.length === 0 ? 'Nothing is wrong.\n' : '');
  return problems.length === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`data: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

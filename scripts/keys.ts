// `npm run keys`: creates, lists and revokes API keys in the configured Redis.
import { userInfo } from 'node:os';
import { createLogger } from '../src/base/log.ts';
import { ApiKeys } from '../src/front/accounts/api-keys.ts';
import { readArguments } from './command-line.ts';
import { openStore } from './open-store.ts';

const USAGE = `npm run keys -- create --name NAME [--owner OWNER] [--operator]
                                                     creates a key and prints it once
npm run keys -- list [--json]                        lists all keys, without the secrets
npm run keys -- revoke ID                            revokes a key at once

Keys of one owner share faces, agents and history. The default owner is 'bootstrap', the owner of
the first key. An operator's key also lists servers and the sessions of all owners, and ends them;
the first key is one. The keys are in the Redis of REDIS_URL, else in the one under DATA_DIR, by the
settings of the environment and of SETTINGS_FILE: give those of the server. It need not run.
`;

async function main(): Promise<number> {
  const { values, positionals } = readArguments(USAGE, {
    name: { type: 'string' },
    owner: { type: 'string', default: 'bootstrap' },
    operator: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  });
  const [command, id] = positionals;
  if (command === 'create' && values.name) {
    return await withKeys((keys) =>
      create(keys, values.owner, values.name as string, values.operator),
    );
  }
  if (command === 'list') {
    return await withKeys((keys) => list(keys, values.json));
  }
  if (command === 'revoke' && id) {
    return await withKeys((keys) => revoke(keys, id));
  }
  process.stderr.write(USAGE);
  return 2;
}

async function create(
  keys: ApiKeys,
  owner: string,
  name: string,
  isOperator: boolean,
): Promise<number> {
  const { key, id } = await keys.create(owner, name, isOperator);
  audit('key.create', { id, name, owner, isOperator });
  process.stderr.write(`Key ${id} '${name}' of owner '${owner}'. It is not shown again:\n`);
  return print(`${key}\n`);
}

async function list(keys: ApiKeys, asJson: boolean): Promise<number> {
  const all = await keys.list();
  if (asJson) {
    return print(`${JSON.stringify(all, null, 2)}\n`);
  }
  const rows = all.map((key) => [
    key.id,
    key.ownerId,
    key.name,
    key.isOperator ? 'operator' : '',
    date(key.createdAtMs),
    date(key.lastUsedAtMs),
    key.revokedAtMs === undefined ? '' : `revoked ${date(key.revokedAtMs)}`,
  ]);
  return print(table([['ID', 'OWNER', 'NAME', 'ROLE', 'CREATED', 'LAST USED', ''], ...rows]));
}

async function revoke(keys: ApiKeys, id: string): Promise<number> {
  const revoked = await keys.revoke(id);
  if (revoked) {
    audit('key.revoke', { id });
  }
  process.stderr.write(
    revoked ? `Key ${id} is revoked.\n` : `There is no key ${id}. See: npm run keys -- list\n`,
  );
  return revoked ? 0 : 1;
}

/** Writes who changed what to stderr, in the form of the server's audit lines. */
function audit(action: string, fields: object): void {
  createLogger('info').info({ audit: action, ...fields, user: userName() }, 'audit');
}

/** The account that runs this, whoever it became by sudo; its number where it has no name. */
function userName(): string {
  try {
    return process.env.SUDO_USER ?? userInfo().username;
  } catch {
    return String(process.getuid?.());
  }
}

async function withKeys(work: (keys: ApiKeys) => Promise<number>): Promise<number> {
  const opened = await openStore();
  try {
    return await work(new ApiKeys(opened.store, opened.config.RATE_LIMIT_RPS));
  } finally {
    await opened.close();
  }
}

const date = (ms: number | undefined): string =>
  ms === undefined ? 'never' : new Date(ms).toISOString().slice(0, 16).replace('T', ' ');

function table(rows: readonly string[][]): string {
  const widths = (rows[0] as string[]).map((_cell, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

function print(output: string): number {
  process.stdout.write(output);
  return 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`keys: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

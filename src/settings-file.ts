// The file of settings (SETTINGS_FILE), and what of it can change while the server runs.
import { readFileSync } from 'node:fs';
import { type Config, ConfigError, loadConfig, type SettingName } from './config.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Settings that take effect on SIGHUP. All others do at a restart. */
export const RELOADABLE = [
  'LOG_LEVEL',
  'DRAIN_SECONDS',
  'RATE_LIMIT_RPS',
  'MAX_SESSIONS_PER_KEY',
  'MAX_REQUESTS_PER_ADDRESS',
  'OPEN_RPS_PER_ADDRESS',
  'WRONG_KEYS_PER_MINUTE',
  'CONNECTION_RPS_PER_ADDRESS',
] as const satisfies readonly SettingName[];

/** Settings that a running server can be given. */
export type ReloadableConfig = Pick<Config, (typeof RELOADABLE)[number]>;

/**
 * The settings of the environment, and below them those of the file that SETTINGS_FILE names.
 * @throws ConfigError with a line for each problem
 */
export function readSettings(environment: Environment): Config {
  const file = environment['SETTINGS_FILE'];
  const own = Object.entries(environment).filter(([, value]) => value !== '');
  return loadConfig({ ...(file ? parseFile(file) : {}), ...Object.fromEntries(own) });
}

/** Names of settings that differ: those that can take effect now, and the others. */
export function changedSettings(
  before: Config,
  after: Config,
): { readonly now: readonly SettingName[]; readonly atRestart: readonly SettingName[] } {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<SettingName>;
  const changed = [...names].filter(
    (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
  const isReloadable = (name: SettingName): boolean =>
    (RELOADABLE as readonly string[]).includes(name);
  return {
    now: changed.filter(isReloadable),
    atRestart: changed.filter((name) => !isReloadable(name)),
  };
}

/** Lines NAME=value, as systemd and Docker read them; a value may stand in quotes. */
function parseFile(file: string): Record<string, string> {
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`SETTINGS_FILE=${file}: cannot be read (${code})`);
  }
  const values: Record<string, string> = {};
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#') || line.startsWith(';')) {
      continue;
    }
    const equals = line.indexOf('=');
    const name = line.slice(0, equals).trim();
    if (equals < 1 || !/^[A-Z][A-Z0-9_]*$/.test(name)) {
      throw new ConfigError(`SETTINGS_FILE=${file}: line ${index + 1} is not NAME=value`);
    }
    const value = line.slice(equals + 1).trim();
    const quoted = /^(["'])(.*)\1$/.exec(value);
    values[name] = quoted?.[2] ?? value;
  }
  return values;
}

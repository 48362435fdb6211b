// Reads the arguments of a command. An invalid argument gets one line that names it, followed by
// the usage.
import process from 'node:process';
import { parseArgs, type ParseArgsConfig } from 'node:util';

type Options = NonNullable<ParseArgsConfig['options']>;

/**
 * Ends the process. Without a problem it prints `usage` and exits with 0; with one it prints the
 * problem and `usage`, and exits with 2.
 */
export function explain(usage: string, problem?: string): never {
  if (problem === undefined) {
    console.log(usage);
  } else {
    console.error(`${problem}\n\n${usage}`);
  }
  return process.exit(problem === undefined ? 0 : 2);
}

/**
 * Parses process.argv. Prints `usage` and ends the process on --help and on an unknown option.
 * @returns `values` and `positionals` of util.parseArgs
 */
export function readArguments<const T extends Options>(
  usage: string,
  options: T,
): ReturnType<typeof parseArgs<{ options: T; allowPositionals: true }>> {
  if (process.argv.slice(2).some((word) => word === '--help' || word === '-h')) {
    explain(usage);
  }
  try {
    return parseArgs<{ options: T; allowPositionals: true }>({ options, allowPositionals: true });
  } catch (error) {
    return explain(usage, (error as Error).message.replace(/\. To specify a positional.*/s, '.'));
  }
}

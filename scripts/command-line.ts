// Reads the arguments of a command; what cannot be understood is told in one line, followed by what can be said instead.
import process from 'node:process';
import { parseArgs, type ParseArgsConfig } from 'node:util';

type Options = NonNullable<ParseArgsConfig['options']>;

/** Ends the process: with `usage` alone when it was asked for, else after `problem`, with status 2. */
export function explain(usage: string, problem?: string): never {
  if (problem === undefined) {
    console.log(usage);
  } else {
    console.error(`${problem}\n\n${usage}`);
  }
  return process.exit(problem === undefined ? 0 : 2);
}

/** `values` and `positionals` of util.parseArgs. Prints `usage` and ends the process on --help, and on what it does not know. */
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

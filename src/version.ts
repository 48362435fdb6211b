// What runs: the version of the package and the commit of the checkout.
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** Directory of the package. */
export const ROOT = path.resolve(import.meta.dirname, '..');

/** The version in package.json. */
export const packageVersion = (): string =>
  (JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { version: string })
    .version;

/** First 12 digits of the checkout's commit, read without git; `unknown` outside of a checkout. */
export function commitHash(): string {
  try {
    const head = readFileSync(path.join(ROOT, '.git/HEAD'), 'utf8').trim();
    return (
      head.startsWith('ref: ')
        ? readFileSync(path.join(ROOT, '.git', head.slice(5)), 'utf8').trim()
        : head
    ).slice(0, 12);
  } catch {
    return 'unknown';
  }
}

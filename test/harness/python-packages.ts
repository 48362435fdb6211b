// Pythons with packages of PyPI that tests of foreign peers need. They are installed by hand, once a
// machine: CONTRIBUTING.md says how.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { cacheFolder } from '../../scripts/go-program.mjs';

/** Whether a Python has modules, as `import` takes them: 'websockets, wheel'. */
export function canImport(python: string, modules: string): boolean {
  try {
    execFileSync(python, ['-c', `import ${modules}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** A virtual environment outside of the checkout, for all of a user's. */
const virtualPython = (name: string): string =>
  path.join(cacheFolder(), 'python', name, 'bin/python');

/**
 * The first Python that has the modules: a virtual environment of that name, python3, Debian's.
 * @returns undefined: none has
 */
export const findPython = (name: string, modules: string): string | undefined =>
  [virtualPython(name), 'python3', '/usr/bin/python3'].find((python) => canImport(python, modules));

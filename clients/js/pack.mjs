// Makes dist for `npm pack`: the sources as JavaScript, and their types. Needs the packages of the
// repository (npm ci at its root).
import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const out = path.join(here, 'dist');
const tsc = path.join(
  path.dirname(createRequire(import.meta.url).resolve('typescript/package.json')),
  'bin/tsc',
);

rmSync(out, { recursive: true, force: true });
// The comments are in the declarations, where editors read them; the scripts are sent to browsers.
for (const options of [['--emitDeclarationOnly'], ['--declaration', 'false', '--removeComments']]) {
  const args = [tsc, '-p', path.join(here, 'tsconfig.pack.json'), ...options];
  execFileSync(process.execPath, args, { stdio: 'inherit' });
}
// The compiler rewrites the imports of scripts, not those of declarations.
for (const name of readdirSync(out).filter((file) => file.endsWith('.d.ts'))) {
  const file = path.join(out, name);
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replaceAll(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"));
}
copyFileSync(path.join(here, 'src/speech-worklet.js'), path.join(out, 'speech-worklet.js'));

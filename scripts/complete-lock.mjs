// Adds to package-lock.json the optional platform packages that npm left out because its registry
// did not have them. Without them `npm ci` refuses the lockfile on every machine; listed by version
// and platform, each machine installs its own and skips the rest.
// Run it after changing dependencies: node scripts/complete-lock.mjs
import { readFileSync, writeFileSync } from 'node:fs';

const file = new URL('../package-lock.json', import.meta.url);
const lock = JSON.parse(readFileSync(file, 'utf8'));

/** Platform packages name their platform in the package name. */
function platformOf(name) {
  const words = name.split(/[/\-_.]/);
  const os = {
    android: 'android',
    darwin: 'darwin',
    freebsd: 'freebsd',
    linux: 'linux',
    win32: 'win32',
    openharmony: 'openharmony',
  };
  const cpu = {
    arm64: 'arm64',
    x64: 'x64',
    arm: 'arm',
    ia32: 'ia32',
    ppc64: 'ppc64',
    riscv64: 'riscv64',
    s390x: 's390x',
  };
  const find = (table) => words.map((word) => table[word]).find((value) => value !== undefined);
  const libc = words.includes('musl') || words.includes('musleabihf') ? 'musl' : undefined;
  return { os: find(os), cpu: find(cpu), libc };
}

let added = 0;
for (const entry of Object.values({ ...lock.packages })) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    if (lock.packages[key] !== undefined || !/^\d/.test(version)) {
      continue;
    }
    const { os, cpu, libc } = platformOf(name);
    if (os === undefined) {
      continue;
    }
    lock.packages[key] = {
      version,
      ...(cpu && { cpu: [cpu] }),
      ...(entry.dev && { dev: true }),
      ...(libc && { libc: [libc] }),
      optional: true,
      os: [os],
    };
    added++;
  }
}
lock.packages = Object.fromEntries(
  Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)),
);
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${added} platform packages added`);

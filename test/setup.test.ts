// What the first command in a fresh clone depends on: the lockfile, the scripts, and one-line
// errors of the set-up.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');
const readJson = (file: string): any => JSON.parse(readFileSync(path.join(root, file), 'utf8'));

for (const file of [
  'package-lock.json',
  'scripts/toolchain/package-lock.json',
  'scripts/talk/package-lock.json',
]) {
  test(`${file} names no registry host and lists the packages of every platform`, () => {
    const lock = readJson(file) as {
      packages: Record<string, { version?: string; optionalDependencies?: Record<string, string> }>;
    };
    assert.doesNotMatch(
      readFileSync(path.join(root, file), 'utf8'),
      /"resolved"|https?:\/\/[^"]*registry/,
    );
    const missing = Object.values(lock.packages)
      .flatMap((entry) => Object.entries(entry.optionalDependencies ?? {}))
      .filter(
        ([name, version]) =>
          /^\d/.test(version) &&
          /android|darwin|linux|win32|freebsd|openharmony/.test(name) &&
          lock.packages[`node_modules/${name}`] === undefined,
      );
    assert.deepEqual(
      missing,
      [],
      'npm ci would refuse this lockfile: run node scripts/complete-lock.mjs',
    );
  });
}

test('dependencies have exact versions, so that every machine runs the tested ones', () => {
  const { dependencies, devDependencies } = readJson('package.json') as {
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    assert.match(version, /^(npm:@uwsjs\/core@)?\d+\.\d+\.\d+$/, name);
  }
});

test('what the server serves is installed without devDependencies, and reports nothing', () => {
  const { scarfSettings } = readJson('package.json') as { scarfSettings: { enabled: boolean } };
  const { packages } = readJson('package-lock.json') as {
    packages: Record<string, { dev?: boolean }>;
  };
  assert.equal(packages['node_modules/swagger-ui-dist']?.dev, undefined);
  // Swagger UI depends on @scarf/scarf, whose install script sends statistics unless switched off.
  assert.ok(packages['node_modules/@scarf/scarf'] === undefined || !scarfSettings.enabled);
});

test('every npm script exists', () => {
  const source = readFileSync(path.join(root, 'scripts/run.mjs'), 'utf8');
  const vitest = /VITEST = '([^']+)'/.exec(source)![1]!;
  for (const [name, command] of Object.entries(
    readJson('package.json').scripts as Record<string, string>,
  )) {
    // Training uses Python and Debian packages, which the set-up does not install.
    if (name === 'train') {
      continue;
    }
    // Its program is its argument.
    if (name === 'node') {
      assert.match(source, /^ {2}node: \[\],$/m);
      continue;
    }
    assert.equal(command, `node scripts/run.mjs ${name}`);
    const list = new RegExp(`'?${name}'?: \\[([^\\]]*)\\]`).exec(source)?.[1] ?? '';
    const entry = list.startsWith('VITEST') ? vitest : /'([^']+\.m?[jt]s)'/.exec(list)?.[1];
    assert.ok(
      ['test', 'test:deep', 'setup', 'typecheck', 'lint'].includes(name) ||
        (entry !== undefined && existsSync(path.join(root, entry))),
      `npm run ${name} has no program`,
    );
  }
});

test('an error during the start is reported in one line that says what to do', async (t) => {
  const dataDir = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-start-'));
  const taken = createSocket('udp4').bind(0, '0.0.0.0');
  await once(taken, 'listening');
  t.onTestFinished(() => {
    taken.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const start = (env: Record<string, string>) =>
    spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', 'src/main.ts'], {
      cwd: root,
      encoding: 'utf8',
      timeout: 60_000,
      env: {
        PATH: process.env['PATH'],
        PORT: '0',
        WORKERS: '1',
        LOG_LEVEL: 'fatal',
        DATA_DIR: dataDir,
        ...env,
      },
    });
  // 203.0.113.0/24 is reserved for documentation (RFC 5737): no machine has it.
  for (const [env, line] of [
    [
      { HOST: '203.0.113.5' },
      /^mouthpiece: Media cannot be bound to 203\.0\.113\.5 \(EADDRNOTAVAIL\): .* Set MEDIA_HOST or HOST; .*\n$/,
    ],
    [
      { HOST: 'face.example.org' },
      /^mouthpiece: HOST=face\.example\.org is a name, .* set MEDIA_HOST\.\n$/,
    ],
    [
      { WAV2LIP_MODEL: '/nowhere.onnx' },
      /^mouthpiece: WAV2LIP_MODEL=\/nowhere\.onnx does not exist\. Correct the path, or unset it\.\n$/,
    ],
    [
      { UDP_PORTS: String(taken.address().port) },
      /^mouthpiece: Worker 0 could not start: No free UDP port on 0\.0\.0\.0 in (\d+)-\1\. Widen UDP_PORTS or use fewer workers\.\n$/,
    ],
  ] as const) {
    const { status, stderr } = start(env);
    assert.match(stderr, line);
    assert.equal(status, 1);
  }
});

test('an invalid setting, an unknown task and an unknown argument are reported in one line', () => {
  const main = (env: Record<string, string>, ...args: string[]) =>
    spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', 'src/main.ts', ...args], {
      cwd: root,
      encoding: 'utf8',
      timeout: 60_000,
      env: { PATH: process.env['PATH'], ...env },
    });
  const bad = main({ PORT: '99999' });
  assert.equal(bad.status, 1);
  assert.match(bad.stderr, /PORT=99999: /);
  assert.doesNotMatch(bad.stderr, /at .*\.ts:\d+/);
  // Node's recursive mkdir never returns in an existing directory in which none can be made.
  assert.equal(
    main({ DATA_DIR: '/proc/mouthpiece/data' }).stderr,
    'mouthpiece: DATA_DIR=/proc/mouthpiece/data cannot be used (ENOENT). Name a directory ' +
      'that this user may write to.\n',
  );
  assert.equal(
    main({ DATA_DIR: '/dev/null/data' }).stderr,
    'mouthpiece: DATA_DIR=/dev/null/data cannot be used (ENOTDIR). Name a directory that ' +
      'this user may write to.\n',
  );
  assert.match(main({}, '--port=1').stderr, /unknown argument '--port=1'/);
  assert.match(
    main({ DATA_DIR: path.join(root, 'package.json') }).stderr,
    /^mouthpiece: DATA_DIR=\S+ cannot be used \(ENOTDIR\)\. Name a directory that this user may write to\.\n$/,
  );
  const task = spawnSync(process.execPath, ['scripts/run.mjs', 'nonsense'], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, MOUTHPIECE_SKIP_APT: '1' },
  });
  assert.equal(task.status, 1);
  assert.match(task.stderr, /Unknown task 'nonsense'/);
});

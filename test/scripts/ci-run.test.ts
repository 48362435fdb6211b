// What CI runs: npm test and the deep tests decide, and a livekit-server that cannot be had is told
// in words.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { test, type TestContext } from 'vitest';
import { ROOT } from '../harness/server.ts';

interface Result {
  readonly code: number | null;
  readonly text: string;
  /** The calls of npm. */
  readonly calls: string[];
}

/** Runs .ci/run with programs of ours in the place of npm and Go. */
function run(
  t: TestContext,
  { npm = '', go, seconds }: { npm?: string; go?: string; seconds?: string },
): Result {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'mouthpiece-ci-'));
  t.onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const calls = path.join(folder, 'calls');
  const bin = path.join(folder, 'bin');
  mkdirSync(bin);
  const program = (name: string, script: string): void => {
    writeFileSync(path.join(bin, name), `#!/bin/bash\n${script}\n`);
    chmodSync(path.join(bin, name), 0o755);
  };
  // Nothing else: /usr/bin may have a Go.
  for (const name of ['cp', 'dirname', 'mktemp', 'rm', 'sleep', 'tail', 'timeout']) {
    symlinkSync(path.join('/usr/bin', name), path.join(bin, name));
  }
  program('npm', `echo "$*" >>${calls}\n${npm}`);
  program('node', `exec ${process.execPath} "$@"`);
  if (go !== undefined) {
    program('go', go);
  }
  const { status, stdout, stderr } = spawnSync('/bin/bash', [path.join(ROOT, '.ci/run')], {
    env: {
      PATH: bin,
      XDG_CACHE_HOME: path.join(folder, 'cache'),
      ...(seconds !== undefined && { CI_SECONDS: seconds }),
    },
    encoding: 'utf8',
  });
  const lines = readFileSync(calls, 'utf8').trim().split('\n');
  return { code: status, text: stdout + stderr, calls: lines };
}

const GO_WORKS = `if [ "$1" = install ]; then
  case "$*" in
    *versitygw@*) name=versitygw;; *helm@*) name=helm;; *kubeconform@*) name=kubeconform;;
    *) name=server;;
  esac
  echo program >"$GOBIN/$name"
fi`;

const BOTH = ['test', 'run test:deep'];
const S3 = 'test -- test/front/store/blob-stores.test.ts';
const SCHEMAS = 'run setup -- --kubernetes';
const CHART = 'test -- test/ops/deploy-cluster.test.ts';
const ALL = ['test', S3, SCHEMAS, CHART, 'run test:deep'];

test('without Go the tests run without a livekit-server', (t) => {
  const { code, text, calls } = run(t, {});
  assert.deepEqual([code, calls], [0, BOTH], text);
  assert.match(
    text,
    /no Go: the tests with a real livekit-server versitygw kubeconform helm are skipped/,
  );
});

test('the deep tests count, and come when all is built, as do those of S3 and the chart', (t) => {
  const built = (name: string): string => `node scripts/go-program.mjs ${name} --check`;
  const npm = `[ $# = 1 ] || { ${built('livekit-server')} && ${built('versitygw')}; }`;
  const passed = run(t, { go: GO_WORKS, npm });
  assert.deepEqual([passed.code, passed.calls], [0, ALL], passed.text);
  const failed = run(t, { go: GO_WORKS, npm: '[ "$1" = test ] || exit 1' });
  assert.deepEqual([failed.code, failed.calls], [1, ALL]);
  const failedS3 = run(t, { go: GO_WORKS, npm: '[ "$2" != -- ] || exit 1' });
  assert.deepEqual([failedS3.code, failedS3.calls], [1, ['test', S3]]);
  const noSchemas = run(t, { go: GO_WORKS, npm: '[ "$2" != setup ] || exit 1' });
  assert.deepEqual([noSchemas.code, noSchemas.calls], [0, ALL]);
  assert.match(noSchemas.text, /not held to the schemas of Kubernetes/);
  const failedChart = run(t, { go: GO_WORKS, npm: '[ "$3" != test/ops/deploy-cluster.test.ts ]' });
  assert.deepEqual([failedChart.code, failedChart.calls], [1, ALL.slice(0, 4)]);
});

test('a build that fails, or takes too long, fails nothing', (t) => {
  const broken = run(t, { go: '[ "$1" = version ] || { echo "proxy: no route" >&2; exit 1; }' });
  assert.deepEqual([broken.code, broken.calls], [0, BOTH], broken.text);
  assert.match(broken.text, /skipped: livekit-server could not be built: proxy: no route/);
  assert.match(broken.text, /skipped: versitygw could not be built: proxy: no route/);
  const startMs = performance.now();
  const slow = run(t, { go: '[ "$1" = version ] || sleep 300', seconds: '1' });
  assert.deepEqual([slow.code, slow.calls], [0, BOTH], slow.text);
  assert.match(slow.text, /no time is left to build livekit-server: its tests are skipped/);
  assert.ok(performance.now() - startMs < 60_000);
});

test('npm test that fails is a failure, whatever becomes of the build', (t) => {
  const { code, calls } = run(t, { go: GO_WORKS, npm: 'exit 1' });
  assert.deepEqual([code, calls], [1, ['test']]);
});

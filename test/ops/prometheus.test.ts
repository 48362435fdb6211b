// The monitoring configuration as Prometheus' own tool judges it: syntax, rules, and the rules'
// unit tests.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'vitest';

const FOLDER = path.resolve(import.meta.dirname, '../../grafana/prometheus');

for (const [name, ...args] of [
  ['configuration', 'check', 'config', 'prometheus.yml'],
  ['rules', 'check', 'rules', 'rules/recording.yml', 'rules/alerts.yml'],
  ['tests of the rules', 'test', 'rules', 'tests/rules.test.yml'],
] as const) {
  test(`promtool: ${name}`, () => {
    const result = spawnSync('promtool', args, { cwd: FOLDER, encoding: 'utf8' });
    assert.equal(result.error, undefined, "promtool comes with Debian's package prometheus");
    assert.equal(result.status, 0, result.stdout + result.stderr);
  });
}

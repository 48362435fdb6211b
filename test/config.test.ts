// The settings: defaults, refusals, and the table in README.md.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'vitest';
import { ConfigError, SETTINGS, loadConfig, shownConfig } from '../src/config.ts';

test('settings have the documented defaults', () => {
  const config = loadConfig({});
  assert.equal(config.HOST, '127.0.0.1');
  assert.equal(config.PORT, 8080);
  assert.deepEqual(config.API_KEY_HEADERS, ['x-service-api-key']);
  assert.ok(config.WORKERS >= 1);
  assert.ok(config.DATA_DIR.startsWith('/'));
});

test('every bad value is reported with its reason, and secrets are not shown', () => {
  assert.throws(
    () =>
      loadConfig({
        PORT: 'x',
        UDP_PORTS: '5-2',
        ICE_SERVERS: '[{"urls":"turn:x","credential":"hunter2","typo":1}]',
        REDIS_URL: 'http://user:hunter2@host',
        SECRETS_KEY: 'hunter2',
        ANNOUNCED_IPS: '1.2.3',
      }),
    (error: unknown) => {
      assert.ok(error instanceof ConfigError);
      assert.match(error.message, /^ANNOUNCED_IPS=1\.2\.3: must be an IP address$/m);
      for (const name of [
        'REDIS_URL',
        'PORT',
        'UDP_PORTS',
        'ICE_SERVERS',
        'SECRETS_KEY',
        'ANNOUNCED_IPS',
      ]) {
        assert.match(error.message, new RegExp(`^${name}=`, 'm'));
      }
      assert.doesNotMatch(error.message, /hunter2/);
      return true;
    },
  );
});

test('FRAME_ORIGINS are origins', () => {
  assert.deepEqual(
    loadConfig({ FRAME_ORIGINS: 'https://shop.example, http://localhost:3000/' }).FRAME_ORIGINS,
    ['https://shop.example', 'http://localhost:3000'],
  );
  for (const bad of [
    'shop.example',
    'https://shop.example/a',
    "https://a.example; script-src '*'",
  ]) {
    assert.throws(() => loadConfig({ FRAME_ORIGINS: bad }), /FRAME_ORIGINS=.*no path/);
  }
});

test('PUBLIC_URL is an origin', () => {
  assert.equal(
    loadConfig({ PUBLIC_URL: 'https://media.example/' }).PUBLIC_URL,
    'https://media.example',
  );
  for (const bad of [
    'media.example',
    'ftp://media.example',
    'https://media.example/path',
    'https://user:pass@media.example',
  ]) {
    assert.throws(() => loadConfig({ PUBLIC_URL: bad }), /PUBLIC_URL=.*no path/);
  }
});

test('the settings are shown without secrets and those that are unset', () => {
  const shown = shownConfig(
    loadConfig({ REDIS_URL: 'redis://u:hunter2@h', SECRETS_KEY: 'ab'.repeat(32) }),
  );
  assert.doesNotMatch(JSON.stringify(shown), /hunter2|abab/);
  assert.deepEqual(
    [shown['REDIS_URL'], shown['PORT'], 'NODE_URL' in shown],
    ['[secret]', 8080, false],
  );
});

test('a misspelled setting is refused, an unrelated variable is not', () => {
  assert.throws(() => loadConfig({ WORKRS: '2' }), /did you mean WORKERS/);
  assert.doesNotThrow(() => loadConfig({ HOSTNAME: 'x', PATH: '/', REPORT: '1', WORK: '1' }));
});

test('the README table and the schema are the same', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const rows = new Map(
    [...readme.matchAll(/^\| `([A-Z0-9_]+)` \| (.*?) \| (.*?) \|$/gm)].map((row) => [
      row[1]!,
      { shown: row[2]!, about: row[3]! },
    ]),
  );
  assert.deepEqual([...rows.keys()].sort(), Object.keys(SETTINGS).sort());
  for (const [name, { default: fallback, about }] of Object.entries(SETTINGS)) {
    assert.equal(rows.get(name)!.shown, fallback === undefined ? 'unset' : `\`${fallback}\``, name);
    assert.equal(rows.get(name)!.about, about, name);
  }
});

test('a recogniser without its key is refused at start', () => {
  for (const provider of ['deepgram', 'openai']) {
    assert.throws(() => loadConfig({ STT_PROVIDER: provider }), /STT_PROVIDER=\w+: set /);
  }
  loadConfig({ STT_PROVIDER: 'openai', STT_BASE_URL: 'http://127.0.0.1:8000/v1/' });
});

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
      assert.match(error.message, /^ANNOUNCED_IPS=1\.2\.3: entry 1: must be an IP address$/m);
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

test('ALLOWED_ORIGINS are origins as browsers send them', () => {
  const given: Record<string, string> = {
    'https://shop.example/': 'https://shop.example',
    'HTTPS://Shop.Example': 'https://shop.example',
    'https://shop.example:443': 'https://shop.example',
    'http://[::1]:3000': 'http://[::1]:3000',
    'http://my_app:3000': 'http://my_app:3000',
    'https://münchen.example': 'https://xn--mnchen-3ya.example',
    'capacitor://LocalHost/': 'capacitor://localhost',
  };
  assert.deepEqual(
    loadConfig({ ALLOWED_ORIGINS: Object.keys(given).join(', ') }).ALLOWED_ORIGINS,
    Object.values(given),
  );
  for (const bad of [
    'shop.example',
    'localhost:3000',
    'null',
    'https://shop.example/a',
    'https://shop.example?a',
    'https://u@shop.example',
    'https://a;b',
    'wss://shop.example',
    'file:///a',
  ]) {
    assert.throws(
      () => loadConfig({ ALLOWED_ORIGINS: `https://a.example,${bad}` }),
      /ALLOWED_ORIGINS=.*: entry 2: must be an origin such as https:\/\/shop\.example/,
      bad,
    );
  }
  for (const pattern of ['*', 'https://*.shop.example']) {
    assert.throws(
      () => loadConfig({ ALLOWED_ORIGINS: pattern }),
      /entry 1: no \* here: list each origin, or leave the setting unset/,
    );
  }
});

test('LLM_HOSTS and LIVEKIT_HOSTS are hosts with a port or without', () => {
  for (const name of ['LLM_HOSTS', 'LIVEKIT_HOSTS'] as const) {
    assert.deepEqual(
      loadConfig({ [name]: 'Models.LAN:8000, 10.0.0.5, my_model:443,[FD00:0::5]:80' })[name],
      ['models.lan:8000', '10.0.0.5', 'my_model:443', '[fd00::5]:80'],
    );
    for (const bad of [
      'http://10.0.0.5:8000/v1',
      'wss://lk:7880',
      'lk/rtc',
      'u@lk',
      'lk:0',
      'lk:65536',
      'lk:',
      'fd00::5',
      '10.0.0.256',
      '*.lan',
      'a b',
    ]) {
      assert.throws(
        () => loadConfig({ [name]: `models.lan,${bad}` }),
        /_HOSTS=.*: entry 2: must be a host or host:port, such as .*without a scheme/,
        bad,
      );
    }
  }
});

test('ICE_SERVERS have URLs that browsers take, one in each entry', () => {
  const parse = (servers: unknown, others = {}) =>
    loadConfig({ ICE_SERVERS: JSON.stringify(servers), ...others }).ICE_SERVERS;
  const [username, credential] = ['ann', 'hunter2'];
  assert.deepEqual(
    parse([
      { urls: ['stun:a', 'stuns:a.example:5349', 'stun:[2001:db8::1]:3478', 'stun:192.0.2.1'] },
      { urls: ['turn:b?transport=udp', 'turns:b:443?transport=tcp'], username, credential },
    ]),
    [
      { urls: 'stun:a' },
      { urls: 'stuns:a.example:5349' },
      { urls: 'stun:[2001:db8::1]:3478' },
      { urls: 'stun:192.0.2.1' },
      { urls: 'turn:b?transport=udp', username, credential },
      { urls: 'turns:b:443?transport=tcp', username, credential },
    ],
  );
  for (const bad of [
    'stun:',
    'turn::3478',
    'turn:a b',
    'stun://a',
    'stun:a/',
    'turn:ann:hunter2@a',
    'stun:a:0',
    'stun:a:65536',
    'stun:a?transport=udp',
    'turn:a?transport=sctp',
    'stun:2001:db8::1',
    'stun:[2001:db8::g]',
    'stun:[a]',
    'http://a',
  ]) {
    const refused = /: entry 2, urls: must be such as stun:HOST:3478, turn:/;
    assert.throws(
      () => parse([{ urls: 'stun:a' }, { urls: bad, username, credential }]),
      (error: Error) => refused.test(error.message) && !error.message.includes('hunter2'),
      bad,
    );
    assert.throws(
      () => parse([{ urls: ['stun:a', bad] }]),
      /: entry 1, urls, entry 2: must be/,
      bad,
    );
  }
  assert.throws(() => parse([{ urls: 3 }]), /: entry 1, urls: must be a URL or an array of URLs/);
  assert.throws(() => parse([{ urls: [] }]), /: entry 1, urls: /);
  assert.throws(() => parse([{ urls: 'stun:a', username: 1 }]), /: entry 1, username: /);
});

test('a TURN server in ICE_SERVERS has credentials, or TURN_SECRET makes them', () => {
  const withLogin = (login: object, secret?: string) => () =>
    loadConfig({
      ICE_SERVERS: JSON.stringify([{ urls: 'turn:a', ...login }]),
      TURN_SECRET: secret,
    });
  const [username, credential] = ['ann', 'hunter2'];
  for (const login of [{}, { username }, { credential }, { username: '', credential: '' }]) {
    assert.throws(withLogin(login), /ICE_SERVERS: turn: and turns: URLs need username and cred/);
  }
  assert.throws(withLogin({ credential }, 'shared'), /need username/);
  withLogin({}, 'shared')();
  withLogin({ username, credential })();
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

test('a user and a password in a URL are not shown', () => {
  const shown = shownConfig(
    loadConfig({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:hunter2@127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http:hunter2@127.0.0.1:1/v1/traces',
      S3_BUCKET: 'faces',
      S3_ENDPOINT: 'https://user:hunter2@s3.lan/',
      S3_PUBLIC_ENDPOINT: 'https://user:hunter%402@s3.example',
      LLM_MODEL: '@cf/meta/llama:8b',
    }),
  );
  assert.doesNotMatch(JSON.stringify(shown), /user|hunter/);
  assert.equal(shown['OTEL_EXPORTER_OTLP_ENDPOINT'], 'http://[secret]@127.0.0.1:1');
  assert.equal(shown['S3_ENDPOINT'], 'https://[secret]@s3.lan');
  assert.equal(shown['LLM_MODEL'], '@cf/meta/llama:8b');
});

test('a URL is refused without its user and password, and where it cannot have them', () => {
  const names = Object.keys(SETTINGS).filter((name) => /_(URL|ENDPOINT|ORIGINS|HOSTS)$/.test(name));
  assert.ok(names.length > 15);
  for (const bad of [
    'ftp://user:hunter2@h',
    'https://user:hunter2@h:x',
    'https://user:p/?#@hunter2@h',
    'gopher:user:hunter2@h',
    'user:hunter2@h',
    ' gopher://a, gopher://user:hunter2@h',
  ]) {
    for (const name of names) {
      assert.throws(
        () => loadConfig({ [name]: bad }),
        (error: Error) =>
          error.message.includes(`${name}=`) && !/user:|hunter2/.test(error.message),
        `${name}=${bad}`,
      );
    }
  }
  const withUser = /^(OTEL_.*|S3_.*|REDIS_URL)$/;
  for (const name of names.filter((one) => !withUser.test(one))) {
    for (const user of ['user', 'user:hunter2', ':hunter2']) {
      assert.throws(
        () => loadConfig({ [name]: `${name === 'LIVEKIT_URL' ? 'wss' : 'https'}://${user}@h` }),
        (error: Error) => error.message.includes(`${name}=`) && !/hunter2/.test(error.message),
        name,
      );
    }
  }
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

// Dockerfile, compose.yaml and the systemd unit, checked without an engine: every path, port and
// variable they name exists and fits the others.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { SETTINGS, loadConfig } from '../../src/config.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

/** The part of the Compose specification that is used here; anything else is a typing error. */
const serviceSchema = z.strictObject({
  build: z.literal('.').optional(),
  image: z
    .string()
    .regex(/^[a-z0-9./-]+:[a-z0-9.-]+$/, 'an image needs a version')
    .optional(),
  restart: z.literal('unless-stopped'),
  network_mode: z.literal('host').optional(),
  stop_grace_period: z
    .string()
    .regex(/^\d+s$/)
    .optional(),
  environment: z.record(z.string(), z.string()).optional(),
  command: z.array(z.string()).optional(),
  ports: z.array(z.string()).optional(),
  volumes: z.array(z.string()).optional(),
  depends_on: z
    .union([
      z.array(z.string()),
      z.record(
        z.string(),
        z.strictObject({ condition: z.enum(['service_healthy', 'service_started']) }),
      ),
    ])
    .optional(),
  healthcheck: z
    .strictObject({
      test: z.array(z.string()),
      interval: z.string(),
      timeout: z.string(),
      retries: z.number(),
    })
    .optional(),
});
const compose = z
  .strictObject({
    name: z.string(),
    services: z.record(z.string(), serviceSchema),
    volumes: z.record(z.string(), z.null()),
  })
  .parse(parse(read('compose.yaml')));
const { mouthpiece, prometheus, grafana, coturn, redis } = compose.services;

/** As Compose substitutes variables, with the required ones given. */
const substituted = (text: string): string =>
  text.replaceAll(
    /\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}/g,
    (_, name: string, fallback?: string) =>
      fallback ??
      { TURN_SECRET: 'a-secret' }[name] ??
      assert.fail(`\${${name}} has no default and is not asked for`),
  );

const addressNumber = (address: string): number =>
  address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
const containerPorts = (ports: readonly string[] = []): string[] =>
  ports.map((port) => port.replace(/^127\.0\.0\.1:/, '').split(':')[1]!);
const mounts = (volumes: readonly string[] = []): { from: string; to: string }[] =>
  volumes.map((volume) => {
    const [from, to] = volume.split(':');
    return { from: from!, to: to! };
  });

test('compose: five services, each built or pulled, all volumes and dependencies declared', () => {
  assert.deepEqual(Object.keys(compose.services).sort(), [
    'coturn',
    'grafana',
    'mouthpiece',
    'prometheus',
    'redis',
  ]);
  for (const [name, service] of Object.entries(compose.services)) {
    assert.equal((service.build === undefined) !== (service.image === undefined), true, name);
    assert.ok(
      service.network_mode === undefined || service.ports === undefined,
      `${name}: nothing is published of a service on the host's own network`,
    );
    for (const { from } of mounts(service.volumes)) {
      assert.ok(
        from.startsWith('./') ? existsSync(path.join(ROOT, from)) : from in compose.volumes,
        `${name}: ${from}`,
      );
    }
    for (const other of Array.isArray(service.depends_on)
      ? service.depends_on
      : Object.keys(service.depends_on ?? {})) {
      assert.ok(other in compose.services, `${name} depends on ${other}`);
    }
  }
  assert.ok(
    redis!.healthcheck,
    'the server waits for a healthy Redis, so Redis must be able to say that it is',
  );
});

test("compose: the server's settings are settings, load, and fit the published ports", () => {
  for (const name of Object.keys(mouthpiece!.environment!)) {
    assert.ok(name in SETTINGS, name);
  }
  const config = loadConfig(
    Object.fromEntries(
      Object.entries(mouthpiece!.environment!).map(([name, value]) => [name, substituted(value)]),
    ),
  );
  const { first, last } = config.UDP_PORTS;
  assert.deepEqual(containerPorts(mouthpiece!.ports), [
    String(config.PORT),
    `${first}-${last}/udp`,
  ]);
  assert.ok(last - first + 1 >= config.WORKERS, 'one UDP port for each worker');
  for (const port of mouthpiece!.ports!.filter((one) => one.endsWith('/udp'))) {
    assert.equal(
      port.split(':')[0],
      port.split(':')[1]!.replace('/udp', ''),
      'media ports are announced as they are: they may not be renumbered',
    );
  }
  assert.ok(Number.parseInt(mouthpiece!.stop_grace_period!, 10) > config.DRAIN_SECONDS);
  assert.equal(new URL(config.REDIS_URL!).hostname in compose.services, true);
  const turn = config.ICE_SERVERS!.find(({ urls }) => urls.startsWith('turn:'))!;
  assert.ok(
    coturn!.command!.includes(`--listening-port=${/:(\d+)\?/.exec(turn.urls)![1]!}`),
    'coturn listens where clients are sent',
  );
});

test(
  'compose: coturn shares the secret, is where its answers come from, and relays to the ' +
    'media ports but to nothing inside',
  () => {
    const options = new Map(
      coturn!.command!.map((option) => option.replace(/^--/, '').split('=') as [string, string]),
    );
    assert.equal(options.get('static-auth-secret'), mouthpiece!.environment!['TURN_SECRET']);
    assert.equal(
      coturn!.network_mode,
      'host',
      "through Docker's port forwarding no relayed session ever connected",
    );
    assert.equal(
      options.get('allowed-peer-ip'),
      mouthpiece!.environment!['ANNOUNCED_IPS'],
      'the address in candidates may itself be a private one',
    );
    assert.ok(options.has('no-tcp-relay'));
    const denied = coturn!
      .command!.filter((option) => option.startsWith('--denied-peer-ip='))
      .map((option) => option.split('=')[1]!.split('-').map(addressNumber));
    for (const inside of [
      '10.1.2.3',
      '100.100.100.200',
      '169.254.169.254',
      '172.17.0.2',
      '172.31.255.1',
      '192.168.1.1',
    ]) {
      assert.ok(
        denied.some(
          ([first, last]) => first! <= addressNumber(inside) && addressNumber(inside) <= last!,
        ),
        inside,
      );
    }
    const known = spawnSync('turnserver', ['--help'], { encoding: 'utf8' });
    if (known.error === undefined) {
      for (const name of options.keys()) {
        assert.ok(
          `${known.stdout}${known.stderr}`.includes(`--${name}`),
          `coturn knows no --${name}`,
        );
      }
    }
  },
);

test('compose: Prometheus scrapes the server, Grafana reads Prometheus and the dashboards', () => {
  const [scrape] = (
    parse(read('grafana/prometheus/prometheus.yml')) as {
      scrape_configs: { static_configs: { targets: string[] }[] }[];
    }
  ).scrape_configs;
  assert.deepEqual(scrape!.static_configs[0]!.targets, [
    `mouthpiece:${mouthpiece!.environment!['PORT']}`,
  ]);
  const mounted = mounts(prometheus!.volumes)[0]!;
  const configFile = prometheus!
    .command!.find((option) => option.startsWith('--config.file='))!
    .split('=')[1]!;
  assert.ok(existsSync(path.join(ROOT, mounted.from, path.relative(mounted.to, configFile))));
  const [source] = (
    parse(read('grafana/provisioning/datasources/prometheus.yml')) as {
      datasources: { url: string; uid: string }[];
    }
  ).datasources;
  assert.equal(source!.url, `http://prometheus:${containerPorts(prometheus!.ports)[0]}`);
  assert.ok(
    read('grafana/dashboards/mouthpiece-overview.json').includes(`"uid": "${source!.uid}"`),
  );
  const [provider] = (
    parse(read('grafana/provisioning/dashboards/mouthpiece.yml')) as {
      providers: { options: { path: string } }[];
    }
  ).providers;
  const folder = mounts(grafana!.volumes).find(({ to }) => to === provider!.options.path);
  assert.ok(folder, 'the dashboards are mounted where the provider looks');
  const home = grafana!.environment!['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH']!;
  assert.ok(existsSync(path.join(ROOT, folder.from, path.relative(folder.to, home))));
});

const dockerfile = read('Dockerfile')
  .replaceAll(/\\\n\s*/g, ' ')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));
const instructions = (name: string): string[] =>
  dockerfile
    .filter((line) => line.startsWith(`${name} `))
    .map((line) => line.slice(name.length + 1));

test('Dockerfile: two stages, what is copied exists, and does not run as root', () => {
  assert.equal(instructions('FROM').length, 2);
  const ignored = read('.dockerignore').split('\n').filter(Boolean);
  for (const copy of instructions('COPY').filter((line) => !line.startsWith('--from='))) {
    for (const source of copy.split(' ').slice(0, -1)) {
      assert.ok(existsSync(path.join(ROOT, source)), source);
      assert.ok(!ignored.includes(source.replace('./', '')), `${source} is ignored`);
    }
  }
  const copied = instructions('COPY')
    .filter((line) => !line.startsWith('--from='))
    .flatMap((line) => line.split(' ').slice(0, -1));
  for (const copy of instructions('COPY').filter((line) => line.startsWith('--from='))) {
    for (const file of copy.split(' ').slice(1, -1)) {
      const source = path.relative('/app', file);
      assert.ok(
        source === 'node_modules' || copied.some((one) => source.startsWith(one)),
        `${source} is in the first stage`,
      );
    }
  }
  assert.ok(!['root', '0', undefined].includes(instructions('USER').at(-1)));
});

test('Dockerfile: settings load, ports are exposed, the health check asks a path that answers', () => {
  const environment = Object.fromEntries(
    instructions('ENV')
      .flatMap((line) => line.split(' '))
      .map((pair) => pair.split('=') as [string, string]),
  );
  for (const name of Object.keys(environment)) {
    assert.ok(name in SETTINGS || name === 'NODE_ENV', name);
  }
  const config = loadConfig(environment);
  assert.deepEqual(instructions('EXPOSE')[0]!.split(' '), [
    String(config.PORT),
    `${config.UDP_PORTS.first}-${config.UDP_PORTS.last}/udp`,
  ]);
  assert.ok(config.UDP_PORTS.last - config.UDP_PORTS.first + 1 >= config.WORKERS);
  const asked = /path: '(\/\w+)'/.exec(instructions('HEALTHCHECK')[0]!)![1]!;
  assert.ok(read('src/front/api/system.ts').includes(`path: '${asked}'`));
  const command = JSON.parse(instructions('CMD').at(-1)!) as string[];
  assert.ok(existsSync(path.join(ROOT, command.at(-1)!)));
});

test('Dockerfile: the second stage has the libraries that the addon is linked with', () => {
  const packages = instructions('RUN')
    .at(-2)!
    .split(' ')
    .filter((word) => /^lib|server$/.test(word));
  const linked = spawnSync('ldd', [path.join(ROOT, 'native/build/mouthpiece.node')], {
    encoding: 'utf8',
  }).stdout;
  const wanted = [...linked.matchAll(/=> (\S*\/lib(?:vpx|openh264|opus|soxr|yuv)\S*)/g)].map(
    (match) => match[1]!,
  );
  assert.ok(wanted.length >= 3, linked);
  for (const library of wanted) {
    const owner = spawnSync('dpkg', ['-S', path.basename(library)], { encoding: 'utf8' })
      .stdout.split('\n')
      .map((line) => line.split(':')[0]!);
    assert.ok(
      owner.some((name) => packages.includes(name)),
      `${library}: none of ${owner.join(' ')} is installed`,
    );
  }
  const missing = packages.filter(
    (name) =>
      spawnSync('dpkg-query', ['-W', name]).status !== 0 &&
      spawnSync('apt-cache', ['show', name]).status !== 0,
  );
  assert.deepEqual(missing, []);
});

test('systemd unit: paths and settings exist, and it waits for the drain', () => {
  const unit = read('deploy/mouthpiece.service')
    .split('\n')
    .filter((line) => /^\w+=/.test(line))
    .map((line) => line.split(/=(.*)/s) as [string, string]);
  const value = (name: string): string => unit.find(([key]) => key === name)![1];
  const [folder] = [value('WorkingDirectory')];
  assert.ok(existsSync(path.join(ROOT, value('ExecStart').split(' ').at(-1)!)));
  assert.ok(
    existsSync(path.join(ROOT, path.relative(folder, value('Documentation').replace('file:', '')))),
  );
  for (const [name] of value('Environment')
    .split(' ')
    .map((pair) => pair.split('=') as [string, string])) {
    assert.ok(name in SETTINGS || name === 'NODE_ENV', name);
  }
  assert.ok(Number(value('TimeoutStopSec')) > Number(SETTINGS.DRAIN_SECONDS.default));
  assert.equal(value('KillMode'), 'mixed');
});

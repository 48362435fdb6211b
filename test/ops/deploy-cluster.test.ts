// The compose file of a cluster, its balancer, and the Helm chart, checked without an engine or a
// cluster: what they set are settings of the server, and load; what they name exists. With Helm and
// kubeconform at hand, the chart is rendered and held to the schemas of Kubernetes, KEDA and the
// Prometheus operator.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { findGoProgram } from '../../scripts/go-program.mjs';
import { KUBERNETES_VERSION, schemaLocation } from '../../scripts/kubernetes-schemas.mjs';
import { SETTINGS, loadConfig } from '../../src/config.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const COMPOSE = path.join(ROOT, 'deploy/compose');
const CHART = path.join(ROOT, 'deploy/helm');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
const inCache = (name: string): string =>
  path.join(process.env['XDG_CACHE_HOME'] ?? path.join(os.homedir(), '.cache'), 'mouthpiece', name);
const isAtHand = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0;

// ── compose ────────────────────────────────────────────────────────────────────────────────────

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly command?: readonly string[];
  readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>;
  readonly stop_grace_period?: string;
}
const compose = parse(read('deploy/compose/compose.yaml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
};
const { services } = compose;
const GIVEN: Readonly<Record<string, string>> = {
  SECRETS_KEY: 'ab'.repeat(32),
  API_KEY: 'cd'.repeat(24),
  S3_SECRET: 'ef'.repeat(24),
};
const substituted = (text: string): string =>
  text.replaceAll(
    /\$\{(\w+)(?::-([^}]*)|:\?[^}]*)\}/g,
    (_, name: string, fallback?: string) =>
      fallback ?? GIVEN[name] ?? assert.fail(`${name} is not asked for`),
  );
const servers = Object.entries(services).filter(([name]) => name.startsWith('mouthpiece-'));
/** Those of the servers; credentials of S3 are read by its client. */
const settingsOf = ({ environment = {} }: Service): Record<string, string> =>
  Object.fromEntries(
    Object.entries(environment)
      .filter(([name]) => !name.startsWith('AWS_'))
      .map(([name, value]) => [name, substituted(value)]),
  );

test('compose: images have versions, volumes and files exist, services are there', () => {
  for (const [name, { image, build, volumes = [], depends_on: others = [] }] of Object.entries(
    services,
  )) {
    assert.ok(build === '../..' || /^[a-z/-]+:[\w.-]*\d/.test(image ?? ''), name);
    for (const volume of volumes) {
      const from = volume.split(':')[0]!;
      assert.ok(
        from.startsWith('.') ? existsSync(path.join(COMPOSE, from)) : from in compose.volumes,
        `${name}: ${from}`,
      );
    }
    for (const other of Array.isArray(others) ? others : Object.keys(others)) {
      assert.ok(other in services, `${name} depends on ${other}`);
    }
  }
});

test('compose: the settings of both servers load; they differ where they must', () => {
  const configs = servers.map(([name, service]) => {
    const settings = settingsOf(service);
    for (const setting of Object.keys(settings)) {
      assert.ok(setting in SETTINGS, `${name}: ${setting}`);
    }
    const config = loadConfig(settings);
    const { first, last } = config.UDP_PORTS;
    assert.deepEqual(service.ports, [`${first}-${last}:${first}-${last}/udp`]);
    assert.ok(last - first + 1 >= config.WORKERS);
    assert.equal(new URL(config.NODE_URL!).host, `${name}:${config.PORT}`);
    assert.ok(Number.parseInt(service.stop_grace_period!, 10) > config.DRAIN_SECONDS);
    assert.ok(service.volumes!.includes(`cores:${config.CORE_LOCK_DIR}`));
    assert.equal(new URL(config.REDIS_URL!).hostname in services, true);
    return config;
  });
  assert.equal(configs.length, 2);
  assert.equal(new Set(configs.map(({ UDP_PORTS }) => UDP_PORTS.first)).size, 2);
  assert.equal(new Set(configs.map(({ SECRETS_KEY }) => SECRETS_KEY)).size, 1);
  assert.ok(read('Dockerfile').includes(`chown mouthpiece:mouthpiece /data /cores`));
  const scraped = parse(read('deploy/compose/prometheus.yml')) as {
    scrape_configs: { job_name: string; static_configs: { targets: string[] }[] }[];
    alerting: { alertmanagers: { static_configs: { targets: string[] }[] }[] };
  };
  const [scrape] = scraped.scrape_configs;
  assert.equal(scrape!.job_name, 'mouthpiece', 'the rules name it');
  assert.deepEqual(
    scrape!.static_configs[0]!.targets,
    servers.map(([name], i) => `${name}:${configs[i]!.ADMIN_PORT}`),
  );
  const [manager] = scraped.alerting.alertmanagers[0]!.static_configs[0]!.targets;
  assert.ok(Object.hasOwn(services, manager!.split(':')[0]!));
});

/** What loads a compose file: Docker's own command, or compose-check, which has its library. */
const COMPOSE_LOADERS = [
  { command: inCache('compose-check'), version: [], args: (file: string) => [file] },
  {
    command: 'docker',
    version: ['compose', 'version'],
    args: (file: string) => ['compose', '-f', file, 'config', '--quiet'],
  },
];

test('compose: Docker Compose loads both files, and asks for what it is not given', (t) => {
  const loader = COMPOSE_LOADERS.find(({ command, version }) =>
    version.length === 0 ? existsSync(command) : isAtHand(command, ...version),
  );
  t.skip(loader === undefined, 'neither docker compose nor compose-check is here: CONTRIBUTING.md');
  const { command, args } = loader!;
  for (const [file, env] of [
    [path.join(COMPOSE, 'compose.yaml'), { ...GIVEN }],
    [path.join(ROOT, 'compose.yaml'), { TURN_SECRET: 'ab'.repeat(32) }],
  ] as const) {
    const load = (given: Readonly<Record<string, string>>): ReturnType<typeof spawnSync> =>
      spawnSync(command, args(file), {
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], ...given },
      });
    const loaded = load(env);
    assert.equal(loaded.status, 0, `${file}: ${String(loaded.stderr)}`);
    for (const name of Object.keys(env)) {
      assert.match(String(load({ ...env, [name]: '' }).stderr), new RegExp(name), 'asked for');
    }
  }
});

test('compose: the balancer names the servers, and HAProxy takes its configuration', (t) => {
  const { balancer } = services;
  assert.deepEqual(
    [balancer!.environment!['SERVER_1'], balancer!.environment!['SERVER_2']],
    servers.map(([name]) => `${name}:8080`),
  );
  t.skip(!isAtHand('haproxy', '-v'), 'HAProxy is not installed');
  const checked = spawnSync('haproxy', ['-c', '-f', path.join(COMPOSE, 'haproxy.cfg')], {
    encoding: 'utf8',
    env: { ...process.env, ...balancer!.environment, SERVER_1: '127.0.0.1:1', SERVER_2: '[::1]:1' },
  });
  assert.equal(checked.status, 0, checked.stderr);
});

// ── Kubernetes ─────────────────────────────────────────────────────────────────────────────────

const EXAMPLES = readdirSync(path.join(CHART, 'examples')).map((name) => `examples/${name}`);
interface Values {
  readonly settings?: Readonly<Record<string, string>>;
  readonly secret?: { readonly values?: Readonly<Record<string, string>> };
  readonly storage?: { readonly existingClaim?: string };
}
/** Set by the chart or read by something else than the server. */
const NOT_SETTINGS = new Set(['POD_IP', 'HOST_IP', 'EXTERNAL_IP_URL', 'EXTERNAL_IP_HEADERS']);

test('chart: what it sets are settings of the server; those of the values load', () => {
  const template = read('deploy/helm/templates/deployment.yaml');
  const names = [...template.matchAll(/- name: ([A-Z_0-9]+)$/gm)].map(([, name]) => name!);
  assert.ok(names.length > 10);
  for (const name of names) {
    assert.ok(name in SETTINGS || NOT_SETTINGS.has(name), name);
  }
  const schema = JSON.parse(read('deploy/helm/values.schema.json'));
  const own = names.filter((name) => name in SETTINGS);
  assert.deepEqual(
    [...new Set(own)].toSorted(),
    schema.properties.settings.propertyNames.not.enum.toSorted(),
    'the values may not set what the chart sets',
  );
  for (const file of ['values.yaml', ...EXAMPLES]) {
    const { settings = {}, secret = {} } = parse(read(`deploy/helm/${file}`)) as Values;
    const given = { ...settings, ...secret.values };
    for (const name of Object.keys(given)) {
      assert.ok(name in SETTINGS, `${file}: ${name}`);
    }
    loadConfig(given);
  }
});

test('chart: the schema knows every value of values.yaml, and no other', () => {
  const keysOf = (value: unknown): string[] =>
    typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : [];
  const schema = JSON.parse(read('deploy/helm/values.schema.json'));
  const compare = (value: unknown, at: any, where: string): void => {
    if (at.properties === undefined) {
      return;
    }
    const known = Object.keys(at.properties).filter((name) => name !== 'global');
    assert.deepEqual(keysOf(value).toSorted(), known.toSorted(), where);
    for (const name of known) {
      compare((value as Record<string, unknown>)[name], at.properties[name], `${where}.${name}`);
    }
  };
  compare(parse(read('deploy/helm/values.yaml')), schema, 'values');
});

test('chart: its rules are those of grafana/prometheus', () => {
  for (const name of readdirSync(path.join(ROOT, 'grafana/prometheus/rules'))) {
    assert.equal(read(`deploy/helm/files/${name}`), read(`grafana/prometheus/rules/${name}`), name);
  }
});

const HELM = findGoProgram('helm') ?? 'helm';
const KUBECONFORM = findGoProgram('kubeconform') ?? 'kubeconform';
const SCHEMAS = schemaLocation();
const NO_SCHEMAS =
  'rendered, but not held to the schemas of Kubernetes: npm run setup -- --kubernetes';

type Manifest = any;

/** Holds manifests to the schemas. @returns how many are valid, and what is said of the others */
function conform(manifests: readonly Manifest[]): { valid: number; refusals: string[] } {
  const args = ['-strict', '-summary', '-output', 'json', '-schema-location', SCHEMAS!];
  const { stdout, stderr } = spawnSync(KUBECONFORM, args, {
    input: manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n'),
    encoding: 'utf8',
  });
  assert.match(stdout, /^\{/, stderr);
  const { resources = [], summary } = JSON.parse(stdout);
  return {
    valid: summary.valid,
    refusals: resources.map(
      ({ kind, status, msg }: Record<string, string>) => `${kind} ${status}: ${msg}`,
    ),
  };
}

/** Manifests that no cluster would take, by what is said of them: a change of each kind's. */
const BROKEN: readonly [kind: string, change: (manifest: Manifest) => void, said: RegExp][] = [
  ['Deployment', ({ spec }) => (spec.replicas = 'two'), /replicas.*got string, want integer/],
  [
    'Deployment',
    ({ spec }) => (spec.template.spec.hostNetwrok = true),
    /additional properties 'hostNetwrok' not allowed/,
  ],
  [
    'Deployment',
    ({ spec }) => delete spec.template.spec.containers[0].name,
    /missing property 'name'/,
  ],
  ['Service', ({ spec }) => (spec.ports[0].port = 'http'), /got string, want integer/],
  ['PodDisruptionBudget', ({ spec }) => (spec.maxUnavailable = true), /got boolean/],
  ['NetworkPolicy', ({ spec }) => (spec.ingress[0].ports[0].endport = 9), /endport/],
  ['ServiceMonitor', ({ spec }) => delete spec.selector, /missing property 'selector'/],
  ['PrometheusRule', ({ spec }) => (spec.groups[0].rules[0].record = 5), /got number/],
  ['ScaledObject', ({ spec }) => (spec.triggers[0].metadata.threshold = 1), /got number/],
  ['HorizontalPodAutoscaler', ({ spec }) => (spec.maxReplica = 4), /maxReplica/],
  ['Deployment', (manifest) => (manifest.apiVersion = 'apps/v9'), /could not find schema/],
];

/** The chart's manifests with the values of an example. */
function render(file: string, ...more: string[]): Manifest[] {
  const args = ['--kube-version', KUBERNETES_VERSION, '-f', path.join(CHART, file), ...more];
  const linted = spawnSync(HELM, ['lint', '--strict', CHART, ...args], { encoding: 'utf8' });
  assert.equal(linted.status, 0, linted.stdout + linted.stderr);
  const { stdout, stderr, status } = spawnSync(HELM, ['template', 'x', CHART, ...args], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return parseAllDocuments(stdout)
    .map((document) => document.toJS())
    .filter((manifest) => manifest !== null);
}

test('chart: helm lints and renders it; Kubernetes would take it', (t) => {
  t.skip(!isAtHand(HELM, 'version'), 'helm is not here: npm run setup -- --kubernetes');
  for (const file of EXAMPLES) {
    const manifests = render(file);
    const deployment = manifests.find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'x',
    );
    const { spec } = deployment.spec.template;
    const [container] = spec.containers;
    const { requests, limits } = container.resources;
    assert.deepEqual(requests, limits, 'guaranteed, for cores of its own');
    assert.match(limits.cpu, /^\d+$/);
    const settings = Object.fromEntries(
      container.env
        .filter(({ name, value }: { name: string; value?: string }) => name in SETTINGS && value)
        .map(({ name, value }: { name: string; value: string }) => [
          name,
          value.replaceAll(/\$\((?:POD|HOST)_IP\)/g, '192.0.2.1'),
        ]),
    );
    const secrets = manifests.find(({ kind }) => kind === 'Secret')?.stringData;
    const config = loadConfig({ ...secrets, ...settings, SETTINGS_FILE: '' });
    assert.equal(String(config.WORKERS + 1), limits.cpu);
    assert.equal(config.UDP_PORTS.last - config.UDP_PORTS.first + 1, config.WORKERS);
    const preStop = Number(container.lifecycle.preStop.exec.command[1]);
    assert.ok(spec.terminationGracePeriodSeconds > config.DRAIN_SECONDS + preStop);
    assert.ok(deployment.spec.progressDeadlineSeconds > spec.terminationGracePeriodSeconds);
  }
});

test('chart: every example has files that all pods share', () => {
  for (const file of EXAMPLES) {
    const { settings = {}, storage = {} } = parse(read(`deploy/helm/${file}`)) as Values;
    assert.ok(settings['S3_BUCKET'] ?? storage.existingClaim, file);
  }
});

test('chart: an autoscaler of Kubernetes without the rule that it reads is refused', (t) => {
  t.skip(!isAtHand(HELM, 'version'), 'helm is not here: npm run setup -- --kubernetes');
  const template = (...more: string[]) => {
    const values = ['secret.existing=x', 'autoscaling.kind=hpa', ...more];
    const args = ['template', 'x', CHART, '--kube-version', KUBERNETES_VERSION];
    return spawnSync(HELM, [...args, ...values.flatMap((one) => ['--set', one])], {
      encoding: 'utf8',
    });
  };
  assert.match(template().stderr, /autoscaling\.kind=hpa: set monitoring\.prometheusRule=true/);
  const whole = template('monitoring.prometheusRule=true');
  assert.equal(whole.status, 0, whole.stderr);
});

test('chart: every manifest conforms to the schemas, and broken ones are found', (t) => {
  t.skip(!isAtHand(HELM, 'version'), 'helm is not here: npm run setup -- --kubernetes');
  t.skip(SCHEMAS === undefined || !isAtHand(KUBECONFORM, '-v'), NO_SCHEMAS);
  const all = EXAMPLES.flatMap((file) =>
    ['keda', 'hpa'].flatMap((kind) => render(file, '--set', `autoscaling.kind=${kind}`)),
  );
  assert.deepEqual(conform(all), { valid: all.length, refusals: [] });
  for (const [kind, change, said] of BROKEN) {
    const broken = structuredClone(all.find((manifest) => manifest.kind === kind));
    change(broken);
    const { valid, refusals } = conform([broken]);
    assert.deepEqual([valid, refusals.length], [0, 1], kind);
    assert.match(refusals[0]!, said);
  }
});

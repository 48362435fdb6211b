// Holds the catalogue, dashboards, rules, runbooks and docs to one another: no name without a
// metric, no metric without a place.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'vitest';
import { DASHBOARDS, dashboardFiles } from '../../grafana/dashboards.ts';
import { CATALOGUE, METRIC_NAMES } from '../../src/metrics/catalogue.ts';
import type { MetricFamily } from '../../src/metrics/metric-family.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
const list = (folder: string, ending: string): string[] =>
  readdirSync(path.join(ROOT, folder))
    .filter((name) => name.endsWith(ending))
    .map((name) => path.join(folder, name));

const RULES = list('grafana/prometheus/rules', '.yml');
const RUNBOOKS = list('grafana/runbooks', '.md').filter((file) => !file.endsWith('README.md'));
const families = CATALOGUE as Readonly<Record<string, MetricFamily>>;

/**
 * Series names in a PromQL expression or a text: metrics of ours with their histogram suffixes,
 * without recorded rules' names.
 */
const namesIn = (text: string): string[] =>
  [...text.matchAll(/(?<![\w:])(mouthpiece|process)_[a-z0-9_]+(?![\w:])/g)].map(([name]) => name);

function familyOf(series: string): MetricFamily | undefined {
  const exact = families[series];
  if (exact !== undefined) {
    return exact.type === 'histogram' ? undefined : exact;
  }
  const base = families[series.replace(/_(bucket|sum|count)$/, '')];
  return base?.type === 'histogram' ? base : undefined;
}

const expressions = DASHBOARDS.flatMap(({ uid, rows }) =>
  rows.flatMap(({ panels }) =>
    panels.flatMap(({ title, queries }) =>
      queries.map(({ expr }) => ({ where: `${uid} / ${title}`, expr })),
    ),
  ),
);
const recorded = new Set(
  [...read('grafana/prometheus/rules/recording.yml').matchAll(/- record: (\S+)/g)].map(
    (match) => match[1]!,
  ),
);
const alerts = [...read('grafana/prometheus/rules/alerts.yml').matchAll(/- alert: (\S+)/g)].map(
  (match) => match[1]!,
);

test('every series on a panel or in a rule is in the catalogue, in the form its type has', () => {
  for (const { where, expr } of expressions) {
    for (const name of namesIn(expr)) {
      assert.ok(familyOf(name), `${where}: ${name}`);
    }
  }
  for (const file of RULES) {
    for (const line of read(file)
      .split('\n')
      .filter((text) => /mouthpiece_|process_/.test(text))) {
      for (const name of namesIn(line)) {
        assert.ok(familyOf(name), `${file}: ${name}`);
      }
    }
  }
});

test('every metric is on a panel, or says why not', () => {
  const shown = new Set(
    expressions
      .flatMap(({ expr }) => namesIn(expr))
      .map((name) => name.replace(/_(bucket|sum|count)$/, '')),
  );
  for (const name of METRIC_NAMES) {
    const reason = (CATALOGUE[name] as MetricFamily).unpanelled;
    assert.equal(
      shown.has(name),
      reason === undefined,
      reason === undefined
        ? `${name} is on no panel`
        : `${name} is on a panel, so 'unpanelled' is wrong`,
    );
  }
});

test('label matchers and groupings name labels and values that exist', () => {
  const texts = [
    ...expressions,
    ...RULES.flatMap((file) =>
      read(file)
        .split('\n')
        .map((expr) => ({ where: file, expr })),
    ),
  ];
  for (const { where, expr } of texts) {
    for (const [, series, matchers] of expr.matchAll(/((?:mouthpiece|process)_\w+)\{([^}]*)\}/g)) {
      const family = familyOf(series!)!;
      for (const [, label, operator, value] of matchers!.matchAll(/(\w+)(=~|!=|!~|=)"([^"]*)"/g)) {
        if (['instance', 'job'].includes(label!) || (label === 'worker' && family.perWorker)) {
          continue;
        }
        if (label === 'le') {
          assert.ok(
            family.buckets.includes(Number(value)),
            `${where}: ${series} has no bucket ${value}`,
          );
          continue;
        }
        const allowed = family.labels[label!];
        assert.ok(allowed, `${where}: ${series} has no label ${label}`);
        if (Array.isArray(allowed) && operator !== '=~') {
          assert.ok(allowed.includes(value), `${where}: ${series}: ${label} is never ${value}`);
        }
      }
    }
  }
});

test('recorded series that are used are recorded', () => {
  const used = [...expressions.map(({ expr }) => expr), ...RULES.map(read)].flatMap((text) =>
    [...text.matchAll(/mouthpiece:[a-z0-9_:]+/g)].map(([name]) => name),
  );
  for (const name of used) {
    assert.ok(recorded.has(name), name);
  }
});

test('the dashboards on disk are those of the source', () => {
  for (const { path: file, text } of dashboardFiles()) {
    assert.equal(
      readFileSync(file, 'utf8'),
      text,
      `run: npm run node -- grafana/build.ts (${file.pathname})`,
    );
  }
  assert.equal(list('grafana/dashboards', '.json').length, DASHBOARDS.length);
});

test('every panel has a description and a unit, and dashboards that panels lead to exist', () => {
  const uids = new Set(DASHBOARDS.map(({ uid }) => uid));
  for (const { uid, rows } of DASHBOARDS) {
    const titles = rows.flatMap(({ title, panels }) =>
      panels.map((panel) => `${title} / ${panel.title}`),
    );
    assert.equal(new Set(titles).size, titles.length, `${uid}: two panels of one title`);
    for (const panel of rows.flatMap(({ panels }) => panels)) {
      assert.match(panel.about, /^.{15,}\.$/s, `${uid}: ${panel.title}`);
      assert.ok(
        panel.more === undefined || (uids.has(panel.more) && panel.more !== uid),
        `${uid}: ${panel.title} leads to ${panel.more}`,
      );
    }
  }
});

test(
  'what has no data is not red: neither an idle server nor a panel without a sample looks ' +
    'like a fault',
  () => {
    for (const { path: file } of dashboardFiles()) {
      const { panels } = JSON.parse(readFileSync(file, 'utf8')) as {
        panels: {
          type: string;
          title: string;
          targets?: { expr: string }[];
          fieldConfig: { defaults: { mappings?: object[] } };
        }[];
      };
      for (const { type, title, targets, fieldConfig } of panels) {
        if (type !== 'stat' && type !== 'bargauge') {
          continue;
        }
        const special = fieldConfig.defaults.mappings?.find(
          (mapping) => 'type' in mapping && mapping.type === 'special',
        );
        assert.deepEqual(
          special,
          {
            type: 'special',
            options: { match: 'null+nan', result: { text: 'no data', color: 'blue' } },
          },
          title,
        );
        // 0/0 is NaN, which Grafana compares with thresholds like a number: a quotient of two rates
        // must have no sample instead.
        for (const { expr } of targets!) {
          if (/_bucket.*\/ .*_count/.test(expr)) {
            assert.match(expr, /\/ \(.*> 0\)$/, title);
          }
        }
      }
    }
  },
);

test('each alert has its runbook and its test, and each runbook its alert', () => {
  assert.deepEqual(RUNBOOKS.map((file) => path.basename(file, '.md')).sort(), [...alerts].sort());
  const source = read('grafana/prometheus/rules/alerts.yml');
  const tests = read('grafana/prometheus/tests/rules.test.yml');
  const thresholds = read('grafana/runbooks/README.md');
  for (const alert of alerts) {
    assert.ok(thresholds.includes(`\n| ${alert} | `), `${alert}: where is its threshold from?`);
    assert.ok(
      source.includes(`runbook_url: '{{ $externalURL }}/user/runbooks/${alert}.md'`),
      alert,
    );
    assert.ok(
      tests.includes(`exp_annotations`) &&
        tests.includes(`alertname: ${alert}\n        exp_alerts`),
      `${alert} is never seen to fire in rules.test.yml`,
    );
  }
});

test('panels that runbooks send people to exist', () => {
  const DASHBOARD_WORDS: Readonly<Record<string, string>> = {
    Overview: 'mouthpiece-overview',
    Live: 'mouthpiece-live',
    Workers: 'mouthpiece-workers',
    Conversations: 'mouthpiece-conversations',
    REST: 'mouthpiece-rest',
    Redis: 'mouthpiece-redis',
    Fleet: 'mouthpiece-fleet',
  };
  for (const file of RUNBOOKS) {
    const text = read(file).replaceAll(/\s+/g, ' ');
    for (const [, word] of text.matchAll(/(\w+) →/g)) {
      assert.ok(DASHBOARD_WORDS[word!], `${file}: ${word} →`);
    }
    for (const [, dashboard, first] of text.matchAll(/(\w+) → ([^;,.:(]+)/g)) {
      const uid = DASHBOARD_WORDS[dashboard!];
      const titles = DASHBOARDS.find((one) => one.uid === uid)!.rows.flatMap(
        ({ title, panels }) => [title, ...panels.map((panel) => panel.title)],
      );
      const wanted = first!.trim().split(/ and | against | just | before | per /)[0]!;
      assert.ok(
        titles.some((title) => title.startsWith(wanted)),
        `${file}: ${dashboard} has no panel "${wanted}"`,
      );
    }
  }
});

test('docs speak only of metrics that exist', () => {
  const docs = [...list('docs', '.md'), 'README.md'].filter((file) => {
    try {
      read(file);
      return true;
    } catch {
      return false;
    }
  });
  for (const file of docs) {
    for (const name of namesIn(read(file))) {
      if (/_(total|seconds|bytes|ratio)(_|$)/.test(name)) {
        assert.ok(familyOf(name) ?? families[name], `${file}: ${name}`);
      }
    }
  }
});

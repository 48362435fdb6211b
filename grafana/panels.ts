// Building blocks of the dashboards: a panel is a title, a sentence, queries and a unit; the rest
// of Grafana's JSON follows from its kind.
import type { MetricName } from '../src/metrics/catalogue.ts';

export type Unit =
  | 's'
  | 'bytes'
  | 'Bps'
  | 'percentunit'
  | 'short'
  | 'reqps'
  | 'pps'
  | 'none'
  | 'bool_yes_no'
  | 'ops'
  | 'dateTimeFromNow';

export interface Query {
  readonly expr: string;
  readonly legend: string;
}
export interface Threshold {
  readonly from: number | undefined;
  readonly color: 'green' | 'yellow' | 'red' | 'blue';
}

export interface Panel {
  readonly kind: 'stat' | 'timeseries' | 'heatmap' | 'bargauge' | 'table';
  readonly title: string;
  readonly about: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** Grid columns of 24. */
  readonly width: number;
  readonly height: number;
  readonly thresholds: readonly Threshold[];
  readonly stack: boolean;
  readonly min?: number;
  readonly max?: number;
  /** uid of the dashboard that says more. */
  readonly more?: string;
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}
export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly about: string;
  readonly rows: readonly Row[];
}

type Extra = Partial<
  Pick<Panel, 'width' | 'height' | 'thresholds' | 'stack' | 'min' | 'max' | 'more'>
>;
type Queries = string | readonly Query[];

const asQueries = (queries: Queries, legend = ''): readonly Query[] =>
  typeof queries === 'string' ? [{ expr: queries, legend }] : queries;

const panel =
  (kind: Panel['kind'], defaults: { width: number; height: number }) =>
  (title: string, unit: Unit, about: string, queries: Queries, extra: Extra = {}): Panel => ({
    kind,
    title,
    about,
    unit,
    queries: asQueries(queries),
    thresholds: [],
    stack: false,
    ...defaults,
    ...extra,
  });

export const stat = panel('stat', { width: 3, height: 4 });
export const timeseries = panel('timeseries', { width: 8, height: 7 });
export const heatmap = panel('heatmap', { width: 12, height: 8 });
export const bargauge = panel('bargauge', { width: 8, height: 7 });
export const table = panel('table', { width: 8, height: 7 });

/** Green below `yellow`, red from `red` on. */
export const rising = (yellow: number, red: number): Threshold[] => [
  { from: undefined, color: 'green' },
  { from: yellow, color: 'yellow' },
  { from: red, color: 'red' },
];
/** Red below `yellow`, green from `green` on. */
export const falling = (yellow: number, green: number): Threshold[] => [
  { from: undefined, color: 'red' },
  { from: yellow, color: 'yellow' },
  { from: green, color: 'green' },
];

/**
 * A metric of the instances chosen at the top of the dashboard. Names are checked against the
 * catalogue by the compiler.
 */
export const metric = (
  name: MetricName | `${MetricName}_${'bucket' | 'sum' | 'count'}`,
  matchers = '',
): string => `${name}{instance=~"$instance"${matchers && `,${matchers}`}}`;

export const rate = (...of: Parameters<typeof metric>): string =>
  `rate(${metric(...of)}[$__rate_interval])`;

export const sumBy = (labels: string, expr: string): string =>
  labels === '' ? `sum(${expr})` : `sum by (${labels}) (${expr})`;

/** One line for each value of `label`: the rate of a counter. */
export const ratesBy = (label: string, name: Parameters<typeof metric>[0]): Query[] => [
  { expr: sumBy(label, rate(name)), legend: `{{${label}}}` },
];

/** @param labels comma-separated, kept beside `le`. */
export const quantile = (q: number, name: MetricName, labels = '', matchers = ''): string =>
  `histogram_quantile(${q}, ` +
  `${sumBy(['le', labels].filter((label) => label !== '').join(', '), rate(`${name}_bucket`, matchers))})`;

export const quantiles = (
  name: MetricName,
  qs: readonly number[] = [0.5, 0.9, 0.99],
  matchers = '',
): Query[] => qs.map((q) => ({ expr: quantile(q, name, '', matchers), legend: `p${q * 100}` }));

export const mean = (name: MetricName, labels = ''): string =>
  `${sumBy(labels, rate(`${name}_sum`))} / ${sumBy(labels, rate(`${name}_count`))}`;

export const buckets = (name: MetricName, matchers = ''): Query[] => [
  {
    expr: sumBy('le', `increase(${metric(`${name}_bucket`, matchers)}[$__rate_interval])`),
    legend: '{{le}}',
  },
];

const DATASOURCE = { type: 'prometheus', uid: 'prometheus' };

/** @returns the dashboard as Grafana's provisioning reads it. */
export function toGrafana(dashboard: Dashboard, all: readonly Dashboard[]): object {
  const panels: object[] = [];
  let id = 0;
  let y = 0;
  for (const row of dashboard.rows) {
    panels.push({
      id: ++id,
      type: 'row',
      title: row.title,
      collapsed: false,
      gridPos: { x: 0, y, w: 24, h: 1 },
      panels: [],
    });
    y++;
    let x = 0;
    let lineHeight = 0;
    for (const one of row.panels) {
      if (x + one.width > 24) {
        [x, y, lineHeight] = [0, y + lineHeight, 0];
      }
      panels.push(panelJson(one, ++id, { x, y, w: one.width, h: one.height }));
      x += one.width;
      lineHeight = Math.max(lineHeight, one.height);
    }
    y += lineHeight;
  }
  return {
    uid: dashboard.uid,
    title: dashboard.title,
    description: dashboard.about,
    tags: ['mouthpiece'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    time: { from: 'now-1h', to: 'now' },
    refresh: '10s',
    templating: {
      list: [
        {
          name: 'instance',
          label: 'Server',
          type: 'query',
          datasource: DATASOURCE,
          query: { query: 'label_values(mouthpiece_build_info, instance)', refId: 'instances' },
          refresh: 2,
          multi: true,
          includeAll: true,
          allValue: '.*',
          current: { text: 'All', value: '$__all' },
          sort: 1,
        },
      ],
    },
    annotations: {
      list: [
        {
          name: 'Alerts',
          datasource: DATASOURCE,
          enable: true,
          iconColor: 'red',
          expr: 'ALERTS{alertstate="firing",alertname=~"Mouthpiece.*"}',
          titleFormat: '{{alertname}}',
        },
      ],
    },
    links: all
      .filter(({ uid }) => uid !== dashboard.uid)
      .map(({ uid, title }) => ({
        type: 'link',
        title,
        url: `/d/${uid}`,
        keepTime: true,
        includeVars: true,
        icon: 'dashboard',
        targetBlank: false,
      })),
    panels,
  };
}

function panelJson(one: Panel, id: number, gridPos: object): object {
  return {
    id,
    gridPos,
    type: one.kind,
    title: one.title,
    description: one.about,
    datasource: DATASOURCE,
    targets: one.queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend === '' ? '__auto' : legend,
      ...(one.kind === 'table' ? { format: 'table', instant: true } : {}),
      ...(one.kind === 'stat' || one.kind === 'bargauge' ? { instant: false } : {}),
      ...(one.kind === 'heatmap' ? { format: 'heatmap' } : {}),
      ...(one.kind === 'timeseries' ? { exemplar: expr.includes('_bucket') } : {}),
    })),
    fieldConfig: { defaults: fieldDefaults(one), overrides: [] },
    options: OPTIONS[one.kind],
    ...(one.more === undefined
      ? {}
      : {
          links: [
            { title: 'More', url: `/d/${one.more}?\${__url_time_range}&\${instance:queryparam}` },
          ],
        }),
  };
}

function fieldDefaults({ kind, unit, thresholds, stack, min, max }: Panel): object {
  const steps =
    thresholds.length === 0
      ? [{ value: null, color: kind === 'stat' ? 'blue' : 'green' }]
      : thresholds.map(({ from, color }) => ({ value: from ?? null, color }));
  const mappings = [
    ...(unit === 'bool_yes_no'
      ? [{ type: 'value', options: { 0: { text: 'no' }, 1: { text: 'yes' } } }]
      : []),
    // Grafana gives what is not a number the colour of the lowest threshold, which is red where
    // more is better.
    ...(kind === 'stat' || kind === 'bargauge'
      ? [
          {
            type: 'special',
            options: { match: 'null+nan', result: { text: 'no data', color: 'blue' } },
          },
        ]
      : []),
  ];
  return {
    unit,
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    thresholds: { mode: 'absolute', steps },
    ...(kind === 'timeseries'
      ? {
          custom: {
            lineWidth: 1,
            fillOpacity: stack ? 30 : 8,
            showPoints: 'never',
            stacking: { mode: stack ? 'normal' : 'none' },
            thresholdsStyle: { mode: thresholds.length > 0 ? 'dashed' : 'off' },
          },
        }
      : {}),
    ...(mappings.length > 0 ? { mappings } : {}),
  };
}

const OPTIONS: Readonly<Record<Panel['kind'], object>> = {
  stat: {
    reduceOptions: { calcs: ['lastNotNull'] },
    colorMode: 'background',
    graphMode: 'area',
    textMode: 'value',
  },
  timeseries: {
    legend: { displayMode: 'table', placement: 'bottom', calcs: ['mean', 'max'] },
    tooltip: { mode: 'multi', sort: 'desc' },
  },
  heatmap: {
    calculate: false,
    cellGap: 1,
    color: { mode: 'scheme', scheme: 'Turbo', steps: 64 },
    yAxis: { unit: 's', axisPlacement: 'left' },
    tooltip: { show: true, yHistogram: true },
    exemplars: { color: 'rgba(255,0,255,0.7)' },
  },
  bargauge: {
    reduceOptions: { calcs: ['lastNotNull'] },
    orientation: 'horizontal',
    displayMode: 'lcd',
  },
  table: { showHeader: true, cellHeight: 'sm' },
};

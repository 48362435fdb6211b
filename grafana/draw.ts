// Draws panels of the dashboards from a real Prometheus to one picture, without Grafana.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import sharp from 'sharp';
import { drawHeat, drawLines, escapeHtml } from '../bench/report/plot.ts';
import { startBrowser } from '../test/harness/browser.ts';
import { type Prometheus, type Sample, resolved } from './live.ts';
import type { Dashboard, Panel, Threshold, Unit } from './panels.ts';

const GRID_PX = 62;
const ROW_PX = 34;
const GAP_PX = 6;
const POINTS = 120;
const COLOURS = { green: '#3a9d5d', yellow: '#d9a514', red: '#d04437', blue: '#3b6fb6' } as const;

/** As Grafana would write it, roughly. */
export function withUnit(value: number, unit: Unit): string {
  if (!Number.isFinite(value)) {
    return '–';
  }
  const digits = (number: number): string => String(Number(number.toPrecision(3)));
  const scaled = (units: readonly string[], step: number): string => {
    const index = Math.min(
      units.length - 1,
      Math.max(0, Math.floor(Math.log(Math.max(Math.abs(value), 1)) / Math.log(step))),
    );
    return `${digits(value / step ** index)} ${units[index]}`.trim();
  };
  switch (unit) {
    case 's':
      return Math.abs(value) >= 60
        ? `${digits(value / 60)} min`
        : Math.abs(value) >= 1 || value === 0
          ? `${digits(value)} s`
          : Math.abs(value) >= 1e-3
            ? `${digits(value * 1e3)} ms`
            : `${digits(value * 1e6)} µs`;
    case 'percentunit':
      return `${digits(value * 100)} %`;
    case 'bytes':
      return scaled(['B', 'KiB', 'MiB', 'GiB', 'TiB'], 1024);
    case 'Bps':
      return scaled(['B/s', 'kB/s', 'MB/s', 'GB/s'], 1000);
    case 'bool_yes_no':
      return value === 0 ? 'no' : 'yes';
    case 'reqps':
    case 'ops':
    case 'pps':
      return `${digits(value)} /s`;
    case 'dateTimeFromNow':
      return `${digits((Date.now() - value) / 60_000)} min ago`;
    default:
      return scaled(['', 'k', 'M'], 1000);
  }
}

const colourOf = (value: number, thresholds: readonly Threshold[]): string =>
  COLOURS[
    Number.isNaN(value)
      ? 'blue'
      : (thresholds.findLast(({ from }) => from === undefined || value >= from)?.color ?? 'blue')
  ];
const nameOf = (legend: string, { metric }: Sample): string =>
  legend === ''
    ? Object.entries(metric)
        .filter(([label]) => !['__name__', 'job', 'instance'].includes(label))
        .map(([label, value]) => `${label}=${value}`)
        .join(' ') || 'value'
    : legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '') || 'none';
const lastOf = (sample: Sample | undefined): number => sample?.values.at(-1)?.[1] ?? Number.NaN;
const clock = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(11, 19);

type Point = readonly [seconds: number, value: number];

/** In seconds since 1970. */
interface Span {
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

async function drawPanel(
  panel: Panel,
  prometheus: Prometheus,
  { from, to, step }: Span,
): Promise<string> {
  const results = await Promise.all(
    panel.queries.map(async ({ expr, legend }) => ({
      legend,
      samples: await prometheus.queryRange(resolved(expr), from, to, step),
    })),
  );
  const samples = results.flatMap(({ legend, samples: found }) =>
    found.map((sample) => ({ name: nameOf(legend, sample), sample })),
  );
  const size = {
    width: panel.width * GRID_PX - 26,
    height: panel.height * ROW_PX + (panel.height - 1) * GAP_PX - 42,
  };
  const none = '<p class="none">no data</p>';
  if (samples.length === 0) {
    return none;
  }
  switch (panel.kind) {
    case 'stat': {
      const value = lastOf(samples[0]!.sample);
      return (
        '<div class="stat" ' +
        `style="background:${colourOf(value, panel.thresholds)}">` +
        `${escapeHtml(withUnit(value, panel.unit))}</div>`
      );
    }
    case 'bargauge':
      return samples
        .map(({ name, sample }) => {
          const value = lastOf(sample);
          return (
            `<div class="gauge"><span>${escapeHtml(name)}</span><div><i ` +
            `style="width:${Math.max(0, Math.min(1, value / (panel.max ?? 1))) * 100}%;` +
            `background:${colourOf(value, panel.thresholds)}"></i></div>` +
            `<b>${escapeHtml(withUnit(value, panel.unit))}</b></div>`
          );
        })
        .join('');
    case 'table': {
      const labels = [
        ...new Set(samples.flatMap(({ sample }) => Object.keys(sample.metric))),
      ].filter((label) => !['__name__', 'job'].includes(label));
      const head = labels.map((label) => `<th>${label}</th>`).join('');
      const rows = samples.map(({ sample }) => {
        const cells = labels.map((label) => `<td>${escapeHtml(sample.metric[label] ?? '')}</td>`);
        return `<tr>${cells.join('')}</tr>`;
      });
      return `<table><tr>${head}</tr>${rows.join('')}</table>`;
    }
    case 'heatmap':
      return heat(
        samples.map(({ sample }) => sample),
        panel,
        size,
      );
    default: {
      const lines = panel.stack
        ? stacked(samples)
        : samples.map(({ name, sample }) => ({ name, points: sample.values }));
      // Where a series was away its line is, too.
      const parts = lines
        .slice(0, 40)
        .flatMap(({ points }, of) => withoutGaps(points, 3 * step).map((part) => ({ of, part })));
      // Enough room for the lines themselves; what does not fit is named below.
      const legend = samples
        .slice(0, 8)
        .map(
          ({ name, sample }, index) =>
            `<span><i style="background:hsl(${(index * 47) % 360} 60% ` +
            `50%)"></i>${escapeHtml(name)} ` +
            `<b>${escapeHtml(withUnit(lastOf(sample), panel.unit))}</b></span>`,
        )
        .join('');
      const svg = drawLines(
        {
          kind: 'lines',
          title: '',
          x: '',
          y: '',
          lines: parts.map(({ part }) => ({ name: '', points: part })),
          limits: panel.thresholds
            .filter(({ from: at }) => at !== undefined)
            .map(({ from: at }) => ({ name: '', y: at! })),
        },
        {
          width: size.width,
          height:
            size.height - 17 * Math.ceil((Math.min(9, samples.length) * 24) / panel.width / 9),
        },
        clock,
        (value) => withUnit(value, panel.unit),
        (index) => `hsl(${(parts[index]!.of * 47) % 360} 60% 50%)`,
      );
      return (
        `${svg}<div ` +
        `class="legend">${legend}` +
        `${samples.length > 8 ? `<span>and ${samples.length - 8} more</span>` : ''}</div>`
      );
    }
  }
}

/** @returns the points in parts, without the pauses that are longer than `longest` seconds */
function withoutGaps(points: readonly Point[], longest: number): Point[][] {
  const parts: Point[][] = [];
  let lastAt = Number.NEGATIVE_INFINITY;
  for (const point of points) {
    if (point[0] - lastAt > longest) {
      parts.push([]);
    }
    parts.at(-1)!.push(point);
    [lastAt] = point;
  }
  return parts;
}

function stacked(
  samples: readonly { readonly name: string; readonly sample: Sample }[],
): { name: string; points: [number, number][] }[] {
  const base = new Map<number, number>();
  return samples.map(({ name, sample }) => ({
    name,
    points: sample.values.map(([at, value]) => {
      const top = (base.get(at) ?? 0) + (Number.isFinite(value) ? value : 0);
      base.set(at, top);
      return [at, top] as [number, number];
    }),
  }));
}

/** Cumulative buckets over time, as counts of each bucket alone. */
function heat(
  samples: readonly Sample[],
  panel: Panel,
  size: { width: number; height: number },
): string {
  const rows = samples
    .map((sample) => ({
      le: sample.metric['le'] === '+Inf' ? Number.POSITIVE_INFINITY : Number(sample.metric['le']),
      at: new Map(sample.values),
    }))
    .sort((a, b) => a.le - b.le);
  const times = [...new Set(rows.flatMap(({ at }) => [...at.keys()]))].sort((a, b) => a - b);
  return drawHeat(
    {
      kind: 'heat',
      title: '',
      y: '',
      times,
      rows: rows.map(({ le, at }, index) => ({
        name: Number.isFinite(le) ? withUnit(le, panel.unit) : '∞',
        values: times.map((time) =>
          Math.max(0, (at.get(time) ?? 0) - (rows[index - 1]?.at.get(time) ?? 0)),
        ),
      })),
    },
    size,
    clock,
  );
}

async function drawDashboard(
  { title, about, rows }: Dashboard,
  prometheus: Prometheus,
  span: Span,
): Promise<string> {
  const parts: string[] = [`<h1>${escapeHtml(title)}</h1><p>${escapeHtml(about)}</p>`];
  for (const row of rows) {
    parts.push(`<h2>${escapeHtml(row.title)}</h2><section>`);
    for (const panel of row.panels) {
      parts.push(
        `<article style="grid-column:span ${panel.width};grid-row:span ${panel.height}" ` +
          `title="${escapeHtml(panel.about)}"><h3>${escapeHtml(panel.title)}</h3>` +
          `${await drawPanel(panel, prometheus, span)}</article>`,
      );
    }
    parts.push('</section>');
  }
  return parts.join('\n');
}

const STYLE = `
  body {
    margin: 18px;
    width: ${24 * GRID_PX}px;
    font: 13px system-ui, 'DejaVu Sans', sans-serif;
    background: #111419;
    color: #d8dce4;
  }
  h1 { font-size: 22px; margin: 26px 0 2px; }
  h1:first-child { margin-top: 0; }
  p { margin: 0 0 8px; color: #8f97a6; }
  h2 { font-size: 15px; margin: 14px 0 6px; color: #aab2c0; }
  section {
    display: grid;
    grid-template-columns: repeat(24, 1fr);
    grid-auto-rows: ${ROW_PX}px;
    gap: ${GAP_PX}px;
  }
  article {
    background: #1a1e26;
    border: 1px solid #2a303b;
    border-radius: 4px;
    padding: 5px 8px;
    overflow: hidden;
    min-width: 0;
    display: flex;
    flex-direction: column;
  }
  h3 { margin: 0 0 4px; font-size: 13px; font-weight: 600; }
  .stat {
    flex: 1;
    display: grid;
    place-items: center;
    font-size: 25px;
    font-weight: 600;
    color: #fff;
    border-radius: 4px;
  }
  .none { margin: auto; }
  .gauge {
    display: grid;
    grid-template-columns: 70px 1fr 62px;
    gap: 8px;
    align-items: center;
    margin: 10px 0;
  }
  .gauge div { background: #2a303b; height: 22px; }
  .gauge i { display: block; height: 100%; }
  .gauge b { text-align: right; }
  .legend { display: flex; flex-wrap: wrap; gap: 0 14px; font-size: 11.5px; }
  .legend i { display: inline-block; width: 9px; height: 9px; margin-right: 5px; }
  table { border-collapse: collapse; font-size: 12px; }
  td, th { text-align: left; padding: 2px 12px 2px 0; }
  svg { display: block; }
  svg text { font: 10.5px system-ui, 'DejaVu Sans', sans-serif; fill: #8f97a6; }
  svg .grid { stroke: #2a303b; }
  svg line.limit { stroke: #d04437; stroke-dasharray: 4 4; }`;

async function picture(html: string, file: string): Promise<void> {
  const browser = await startBrowser();
  try {
    const page = await browser.newPage({ width: 24 * GRID_PX + 36, height: 100 });
    await page.setContent(html);
    mkdirSync(path.dirname(file), { recursive: true });
    const shown = sharp(await page.screenshot({ fullPage: true }));
    // Few colours are on it: as a palette it takes a third of the bytes.
    await (
      file.endsWith('.webp')
        ? shown.webp({ lossless: true, effort: 6 })
        : shown.png({ palette: true, colours: 96, effort: 10 })
    ).toFile(file);
  } finally {
    await browser.close();
  }
}

/**
 * Draws dashboards below one another.
 * @param from seconds since 1970
 * @param file where the picture goes; its ending says of which kind: .png or .webp
 */
export async function drawDashboards(
  dashboards: readonly Dashboard[],
  prometheus: Prometheus,
  { from, to }: { readonly from: number; readonly to: number },
  file: string,
): Promise<void> {
  const span = { from, to, step: Math.max(1, Math.ceil((to - from) / POINTS)) };
  const parts: string[] = [];
  for (const dashboard of dashboards) {
    parts.push(await drawDashboard(dashboard, prometheus, span));
  }
  await picture(
    `<!doctype html><meta charset="utf-8"><style>${STYLE}</style>${parts.join('\n')}`,
    file,
  );
}

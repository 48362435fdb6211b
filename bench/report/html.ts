// A run as one HTML file that needs nothing else: bounds, tables, plots, and what was run where.
import type { Run } from '../run.ts';
import { holds } from '../scenario.ts';
import { plotsOf } from '../course.ts';
import { type Plot, draw, escapeHtml, short } from './plot.ts';

const STYLE = `
  :root {
    color-scheme: light dark;
    --ink: #1c2330;
    --soft: #667;
    --line: #d9dde5;
    --paper: #fff;
    --good: #2a8a4a;
    --bad: #c9372c;
  }
  @media (prefers-color-scheme: dark) {
    :root {
      --ink: #e7e9ee;
      --soft: #99a;
      --line: #3a4050;
      --paper: #171a21;
      --good: #5fce86;
      --bad: #ff7a6b;
    }
  }
  body {
    font: 15px/1.5 system-ui, sans-serif;
    color: var(--ink);
    background: var(--paper);
    max-width: 1360px;
    margin: 2rem auto;
    padding: 0 1rem;
  }
  h1 { margin: 0 0 .2rem; font-size: 1.6rem; }
  h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
  .soft { color: var(--soft); }
  table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
  td, th { padding: .25rem .8rem; border-bottom: 1px solid var(--line); text-align: right; }
  td:first-child, th:first-child { text-align: left; padding-left: 0; }
  .good { color: var(--good); }
  .bad { color: var(--bad); font-weight: 600; }
  .plots { display: flex; flex-wrap: wrap; gap: 1rem; }
  figure { margin: 0; }
  figcaption { font-weight: 600; margin-bottom: .2rem; }
  svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
  svg .grid { stroke: var(--line); }
  svg line.limit { stroke: var(--bad); stroke-dasharray: 5 4; }
  svg text.limit { fill: var(--bad); }
  svg { max-width: 100%; height: auto; }`;

const cell = (value: string | number): string =>
  escapeHtml(typeof value === 'number' ? short(value) : value);

/** A server elsewhere leaves some plots empty. */
function hasData(plot: Plot): boolean {
  if (plot.kind === 'lines') {
    return plot.lines.some(({ points }) => points.some(([, y]) => Number.isFinite(y)));
  }
  return (
    plot.kind !== 'stack' ||
    plot.bars.every(({ parts }) => Object.values(parts).every(Number.isFinite))
  );
}

export function toHtml(run: Run): string {
  const { outcome, machine } = run;
  const settings = Object.entries(run.options)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
  const bounds = outcome.bounds.map(
    (bound) =>
      `<tr><td>${escapeHtml(bound.name)}</td><td>${short(bound.value)} ${bound.unit}</td>` +
      `<td>${bound.relation === '<=' ? '≤' : '≥'} ${short(bound.limit)} ${bound.unit}</td><td ` +
      `class="${holds(bound) ? 'good' : 'bad'}">${holds(bound) ? 'holds' : 'broken'}</td></tr>`,
  );
  const tables = outcome.tables.map(
    ({ title, columns, rows }) =>
      `<h2>${escapeHtml(title)}</h2><table>` +
      `<tr>${columns.map((column) => `<th>${escapeHtml(column)}</th>`).join('')}</tr>` +
      rows
        .map((row) => `<tr>${row.map((value) => `<td>${cell(value)}</td>`).join('')}</tr>`)
        .join('') +
      '</table>',
  );
  const plots = [...outcome.plots, ...plotsOf(run.course)]
    .filter(hasData)
    .map(
      (plot) => `<figure><figcaption>${escapeHtml(plot.title)}</figcaption>${draw(plot)}</figure>`,
    );
  const notes = outcome.notes.map((note) => `<li>${escapeHtml(note)}</li>`).join('');
  const head =
    '<!doctype html><html lang="en"><meta charset="utf-8">' +
    '<meta name="viewport" content="width=device-width">' +
    `<title>Mouthpiece bench: ${run.scenario}</title><style>${STYLE}</style>`;
  const facts =
    `${run.startedAt}, ${run.durationSeconds.toFixed(0)} s, commit ${run.commit}, ` +
    escapeHtml(run.target);
  const computer =
    (run.target === 'own server' ? '' : 'load from ') +
    escapeHtml(
      `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, Linux ${machine.kernel}, ` +
        `Node ${machine.node}`,
    );
  return `${head}
<h1>${escapeHtml(run.scenario)}</h1><p>${escapeHtml(run.about)}</p>
<p class="soft">${facts}<br>${computer}<br>${escapeHtml(settings)}</p>
${bounds.length === 0 ? '' : `<h2>Bounds</h2><table><tr><th></th><th>measured</th><th>bound</th><th></th></tr>${bounds.join('')}</table>`}
${tables.join('\n')}
${plots.length === 0 ? '' : `<h2>Plots</h2><div class="plots">${plots.join('\n')}</div>`}
${outcome.notes.length === 0 ? '' : `<h2>Notes</h2><ul>${notes}</ul>`}
</html>
`;
}

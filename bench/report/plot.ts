// Plots as plain SVG text, for reports that one can mail: lines, distributions, stacked bars, heat
// maps.

export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export type Plot =
  | {
      readonly kind: 'lines';
      readonly title: string;
      readonly x: string;
      readonly y: string;
      readonly lines: readonly Line[];
      readonly limits?: readonly { readonly name: string; readonly y: number }[];
    }
  | {
      readonly kind: 'distribution';
      readonly title: string;
      readonly x: string;
      readonly samples: readonly { readonly name: string; readonly values: readonly number[] }[];
      readonly limits?: readonly { readonly name: string; readonly x: number }[];
    }
  | {
      readonly kind: 'stack';
      readonly title: string;
      readonly y: string;
      readonly bars: readonly {
        readonly name: string;
        readonly parts: Readonly<Record<string, number>>;
      }[];
    }
  | {
      readonly kind: 'heat';
      readonly title: string;
      readonly y: string;
      readonly times: readonly number[];
      readonly rows: readonly { readonly name: string; readonly values: readonly number[] }[];
    };

export interface Size {
  readonly width: number;
  readonly height: number;
}
export const COLOURS = [
  '#4e79a7',
  '#f28e2b',
  '#59a14f',
  '#e15759',
  '#76b7b2',
  '#b07aa1',
  '#edc948',
  '#9c755f',
  '#ff9da7',
  '#8cd17d',
];
const MARGIN = { left: 58, right: 14, top: 12, bottom: 40 };

export const escapeHtml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');

/** At most three significant digits, thousands as k and M, thousandths as m and µ. */
export function short(value: number): string {
  if (!Number.isFinite(value)) {
    return '–';
  }
  if (value === 0) {
    return '0';
  }
  const size = Math.abs(value);
  const [factor, suffix] =
    size >= 1e9
      ? [1e9, 'G']
      : size >= 1e6
        ? [1e6, 'M']
        : size >= 1e4
          ? [1e3, 'k']
          : size >= 0.01
            ? [1, '']
            : size >= 1e-4
              ? [1e-3, 'm']
              : [1e-6, 'µ'];
  return `${Number((value / factor).toPrecision(3))}${suffix}`;
}

/** Round numbers that cover [low, high]. */
export function ticks(low: number, high: number, wanted = 5): number[] {
  const span = high - low;
  if (!(span > 0)) {
    return [low];
  }
  const raw = span / wanted;
  const magnitude = 10 ** Math.floor(Math.log10(raw));
  const step = magnitude * ([1, 2, 2.5, 5, 10].find((factor) => factor * magnitude >= raw) ?? 10);
  const found: number[] = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) {
    found.push(Number(tick.toPrecision(12)));
  }
  return found;
}

interface Frame {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly svg: string;
}

function frame(
  { width, height }: Size,
  [x0, x1]: readonly [number, number],
  [y0, y1]: readonly [number, number],
  xName: string,
  yName: string,
  xText: (value: number) => string = short,
  yText: (value: number) => string = short,
): Frame {
  const x = (value: number): number =>
    MARGIN.left + ((value - x0) / (x1 - x0 || 1)) * (width - MARGIN.left - MARGIN.right);
  const y = (value: number): number =>
    height -
    MARGIN.bottom -
    ((value - y0) / (y1 - y0 || 1)) * (height - MARGIN.top - MARGIN.bottom);
  const svg = [
    ...ticks(y0, y1).map(
      (tick) =>
        `<line class="grid" x1="${MARGIN.left}" x2="${width - MARGIN.right}" ` +
        `y1="${y(tick)}" y2="${y(tick)}"/><text x="${MARGIN.left - 6}" y="${y(tick) + 4}" ` +
        `text-anchor="end">${escapeHtml(yText(tick))}</text>`,
    ),
    ...ticks(x0, x1, Math.max(2, Math.floor(width / 90))).map(
      (tick) =>
        `<text x="${x(tick)}" y="${height - MARGIN.bottom + 16}" ` +
        `text-anchor="middle">${escapeHtml(xText(tick))}</text>`,
    ),
    `<text x="${(width + MARGIN.left) / 2}" y="${height - 6}" ` +
      `text-anchor="middle">${escapeHtml(xName)}</text>`,
    `<text transform="translate(13 ${(height - MARGIN.bottom) / 2}) rotate(-90)" ` +
      `text-anchor="middle">${escapeHtml(yName)}</text>`,
  ].join('');
  return { x, y, svg };
}

const legend = (names: readonly string[], { width }: Size): string =>
  names.length < 2
    ? ''
    : names
        .slice(0, 12)
        .map(
          (name, index) =>
            '<g ' +
            `transform="translate(${width - MARGIN.right - 150} ${MARGIN.top + 6 + index * 15})"><rect ` +
            `width="10" height="10" fill="${COLOURS[index % COLOURS.length]}"/><text ` +
            `x="15" y="9">${escapeHtml(name.slice(0, 24))}</text></g>`,
        )
        .join('');

const wrap = (content: string, { width, height }: Size): string =>
  `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
  `xmlns="http://www.w3.org/2000/svg">${content}</svg>`;

export function draw(plot: Plot, size: Size = { width: 640, height: 280 }): string {
  switch (plot.kind) {
    case 'lines':
      return drawLines(plot, size);
    case 'distribution':
      return drawDistribution(plot, size);
    case 'stack':
      return drawStack(plot, size);
    default:
      return drawHeat(plot, size);
  }
}

export function drawLines(
  { lines, limits = [], x: xName, y: yName }: Extract<Plot, { kind: 'lines' }>,
  size: Size,
  xText?: (value: number) => string,
  yText?: (value: number) => string,
  colourOf = (index: number): string => COLOURS[index % COLOURS.length]!,
): string {
  const all = lines.flatMap(({ points }) => points).filter(([, y]) => Number.isFinite(y));
  if (all.length === 0) {
    return wrap(
      `<text x="${size.width / 2}" y="${size.height / 2}" text-anchor="middle">no data</text>`,
      size,
    );
  }
  const xs = all.map(([x]) => x);
  const highest = Math.max(...all.map(([, y]) => y), 0);
  const high =
    Math.max(highest, ...limits.map(({ y }) => y).filter((y) => y < highest * 3)) * 1.05 || 1;
  const low = Math.min(...all.map(([, y]) => y), 0);
  const { x, y, svg } = frame(
    size,
    [Math.min(...xs), Math.max(...xs)],
    [low, high],
    xName,
    yName,
    xText,
    yText,
  );
  const paths = lines.map(({ points }, index) => {
    const colour = colourOf(index);
    const drawn = points
      .filter(([, value]) => Number.isFinite(value))
      .map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`);
    const dots =
      drawn.length <= 40
        ? drawn
            .map(
              (point) =>
                `<circle cx="${point.split(',')[0]}" cy="${point.split(',')[1]}" r="2.2" ` +
                `fill="${colour}"/>`,
            )
            .join('')
        : '';
    return (
      `<polyline points="${drawn.join(' ')}" fill="none" stroke="${colour}" ` +
      `stroke-width="1.6"/>${dots}`
    );
  });
  const marks = limits
    .filter((limit) => limit.y <= high)
    .map(
      (limit) =>
        `<line class="limit" x1="${MARGIN.left}" x2="${size.width - MARGIN.right}" ` +
        `y1="${y(limit.y)}" y2="${y(limit.y)}"/><text class="limit" x="${MARGIN.left + 4}" ` +
        `y="${y(limit.y) - 4}">${escapeHtml(limit.name)}</text>`,
    );
  return wrap(
    svg +
      paths.join('') +
      marks.join('') +
      legend(
        lines.map(({ name }) => name).filter((name) => name !== ''),
        size,
      ),
    size,
  );
}

/** Cumulative distribution: the share of values at or below x. */
function drawDistribution(
  { samples, limits = [], x: xName }: Extract<Plot, { kind: 'distribution' }>,
  size: Size,
): string {
  const all = samples.flatMap(({ values }) => values).filter(Number.isFinite);
  if (all.length === 0) {
    return wrap(
      `<text x="${size.width / 2}" y="${size.height / 2}" text-anchor="middle">no data</text>`,
      size,
    );
  }
  const high = Math.max(...all, ...limits.map(({ x }) => x)) * 1.05;
  const { x, y, svg } = frame(
    size,
    [Math.min(0, ...all), high],
    [0, 1],
    xName,
    'share at or below',
  );
  const paths = samples.map(({ values }, index) => {
    const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
    const points = sorted.map(
      (value, rank) => `${x(value).toFixed(1)},${y((rank + 1) / sorted.length).toFixed(1)}`,
    );
    return (
      `<polyline points="${x(sorted[0] ?? 0)},${y(0)} ${points.join(' ')}" fill="none" ` +
      `stroke="${COLOURS[index % COLOURS.length]}" stroke-width="1.6"/>`
    );
  });
  const marks = limits.map(
    (limit) =>
      `<line class="limit" x1="${x(limit.x)}" x2="${x(limit.x)}" y1="${MARGIN.top}" ` +
      `y2="${size.height - MARGIN.bottom}"/><text class="limit" x="${x(limit.x) + 4}" ` +
      `y="${MARGIN.top + 10}">${escapeHtml(limit.name)}</text>`,
  );
  return wrap(
    svg +
      paths.join('') +
      marks.join('') +
      legend(
        samples.map(({ name }) => name),
        size,
      ),
    size,
  );
}

function drawStack({ bars, y: yName }: Extract<Plot, { kind: 'stack' }>, size: Size): string {
  const names = [...new Set(bars.flatMap(({ parts }) => Object.keys(parts)))];
  const high =
    Math.max(
      ...bars.map(({ parts }) => Object.values(parts).reduce((sum, value) => sum + value, 0)),
      1e-9,
    ) * 1.05;
  const { y, svg } = frame(size, [0, 1], [0, high], '', yName, () => '');
  const room = size.width - MARGIN.left - MARGIN.right - 170;
  const step = room / Math.max(1, bars.length);
  const drawn = bars.map(({ name, parts }, index) => {
    let base = 0;
    const left = MARGIN.left + index * step + step * 0.15;
    const pieces = names.map((part, colour) => {
      const value = parts[part] ?? 0;
      base += value;
      return (
        `<rect x="${left.toFixed(1)}" y="${y(base).toFixed(1)}" ` +
        `width="${(step * 0.7).toFixed(1)}" ` +
        `height="${Math.max(0, y(base - value) - y(base)).toFixed(1)}" ` +
        `fill="${COLOURS[colour % COLOURS.length]}">` +
        `<title>${escapeHtml(`${part}: ${short(value)}`)}</title></rect>`
      );
    });
    return (
      `${pieces.join('')}<text x="${left + step * 0.35}" ` +
      `y="${size.height - MARGIN.bottom + 16}" ` +
      `text-anchor="middle">${escapeHtml(name)}</text>`
    );
  });
  return wrap(svg + drawn.join('') + legend(names, size), size);
}

/** Rows from bottom to top; darker is more. */
export function drawHeat(
  { rows, times, y: yName }: Extract<Plot, { kind: 'heat' }>,
  size: Size,
  xText?: (value: number) => string,
): string {
  const highest = Math.max(1e-12, ...rows.flatMap(({ values }) => values).filter(Number.isFinite));
  const { svg } = frame(size, [times[0] ?? 0, times.at(-1) ?? 1], [0, 1], '', yName, xText);
  const plain = svg.replaceAll(/<line class="grid"[^>]*\/><text[^>]*>[^<]*<\/text>/g, '');
  const cellWidth = (size.width - MARGIN.left - MARGIN.right) / Math.max(1, times.length);
  const cellHeight = (size.height - MARGIN.top - MARGIN.bottom) / Math.max(1, rows.length);
  const cells = rows.map(({ name, values }, row) => {
    const top = size.height - MARGIN.bottom - (row + 1) * cellHeight;
    const label =
      `<text x="${MARGIN.left - 6}" y="${top + cellHeight / 2 + 4}" ` +
      `text-anchor="end">${escapeHtml(name)}</text>`;
    return (
      label +
      values
        .map((value, column) =>
          value > 0
            ? `<rect x="${(MARGIN.left + column * cellWidth).toFixed(1)}" ` +
              `y="${top.toFixed(1)}" width="${(cellWidth + 0.3).toFixed(1)}" ` +
              `height="${(cellHeight - 0.5).toFixed(1)}" ` +
              `fill="hsl(${(240 - 240 * Math.sqrt(value / highest)).toFixed(0)} 85% 50%)"/>`
            : '',
        )
        .join('')
    );
  });
  return wrap(plain + cells.join(''), size);
}

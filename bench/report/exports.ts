// Runs in the formats of other tools: CSV for tables, JUnit XML for build servers.
import type { Run } from '../run.ts';
import { holds } from '../scenario.ts';

/**
 * A line for each figure of each run (RFC 4180), and one for each point of a figure over time: with
 * the seconds since the start of the run, which the others leave empty.
 */
export function toCsv(runs: readonly Run[]): string {
  const rows = runs.flatMap(({ scenario, startedAt, commit, target, outcome, course }) => {
    const row = (figure: string, value: number, seconds = ''): string[] => [
      ...[scenario, startedAt, commit, target, figure],
      Number.isFinite(value) ? String(value) : '',
      seconds,
    ];
    return [
      ...Object.entries(outcome.figures).map(([figure, value]) => row(figure, value)),
      ...course.flatMap(({ name, unit, points }) =>
        points.map(([seconds, value]) => row(`${name} ${unit}`.trim(), value, String(seconds))),
      ),
    ];
  });
  const head = ['scenario', 'startedAt', 'commit', 'target', 'figure', 'value', 'seconds'];
  return [head, ...rows].map((row) => `${row.map(csvCell).join(',')}\r\n`).join('');
}

const csvCell = (text: string): string =>
  /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

/** A test suite for each run, a test case for each bound; a bound that is broken is a failure. */
export function toJunit(runs: readonly Run[]): string {
  const suites = runs.map(({ scenario, startedAt, durationSeconds, outcome: { bounds } }) => {
    const broken = bounds.filter((bound) => !holds(bound)).length;
    const cases = bounds.map((bound) => {
      const text = `${bound.value} ${bound.unit} (${bound.relation} ${bound.limit})`;
      const failure = holds(bound) ? '' : `<failure message="${xml(text)}"/>`;
      return (
        `    <testcase classname="bench.${xml(scenario)}" name="${xml(bound.name)}">` +
        `${failure}</testcase>\n`
      );
    });
    return (
      `  <testsuite name="${xml(scenario)}" tests="${bounds.length}" failures="${broken}" ` +
      `time="${durationSeconds.toFixed(3)}" timestamp="${startedAt.slice(0, 19)}">\n` +
      `${cases.join('')}  </testsuite>\n`
    );
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join('')}</testsuites>\n`;
}

const xml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');

// Runs a scenario of the bench small, and holds its figures to a sane size.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { toHtml } from '../../bench/report/html.ts';
import { type Run, runScenario } from '../../bench/run.ts';
import { type Scenario, holds } from '../../bench/scenario.ts';

type Range = readonly [low: number, high: number];

/**
 * A test that the scenario finishes, its figures are of a sane size, and its report can be written.
 * @param ranges figures that must be there and lie within, on any machine that is not broken
 */
export function small(
  scenario: Scenario,
  ranges: Readonly<Record<string, Range>>,
  check: (run: Run) => void = () => {},
): void {
  test(`bench ${scenario.name}`, async () => {
    const run = await runScenario(scenario, { options: scenario.small });
    const { figures } = run.outcome;
    for (const [name, [low, high]] of Object.entries(ranges)) {
      assert.ok(
        figures[name]! >= low && figures[name]! <= high,
        `${name} is ${figures[name]}, expected ${low} to ${high}; all: ${JSON.stringify(figures)}`,
      );
    }
    if (run.outcome.bounds.length > 0) {
      const own = run.course.filter(({ name }) => !/^server( \d+)?: /.test(name));
      assert.ok(own.length > 0 || run.outcome.load !== undefined, 'figures of its own over time');
    }
    const html = toHtml(run);
    assert.match(html, /<h1>/);
    assert.doesNotMatch(html, /undefined|\[object/);
    for (const plot of run.outcome.plots) {
      assert.ok(html.includes(plot.title.slice(0, 12)));
    }
    check(run);
  });
}

/** Bounds that do not hold, of those whose name matches. */
export const broken = ({ outcome }: Run, name: RegExp): string[] =>
  outcome.bounds
    .filter((bound) => name.test(bound.name) && !holds(bound))
    .map((bound) => `${bound.name}: ${bound.value}`);

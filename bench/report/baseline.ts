// A run judged by an earlier one: what may not get worse.
import { readFileSync } from 'node:fs';
import { type Bound, type Outcome, atLeast, atMost } from '../scenario.ts';

/** The part of an earlier run's report that counts. */
export interface Baseline {
  readonly scenario: string;
  readonly outcome: Pick<Outcome, 'bounds'>;
}

/**
 * Reads the JSON report of an earlier run.
 * @throws Error that says what the file must be
 */
export function readBaseline(file: string): Baseline {
  let found: Partial<Baseline> | null = null;
  try {
    found = JSON.parse(readFileSync(file, 'utf8')) as Partial<Baseline> | null;
  } catch (error) {
    throw new Error(`--baseline ${file} cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (typeof found?.scenario !== 'string' || !Array.isArray(found.outcome?.bounds)) {
    throw new Error(`--baseline ${file} is no report of a run: take a .json file of bench/out`);
  }
  return found as Baseline;
}

/**
 * Bounds that fail when a figure is worse than that of the baseline by more than the tolerance. Only
 * figures that have a bound are judged: of these it is known which direction is worse.
 * @param tolerance as a fraction, 0.1 for 10 %
 */
export function boundsAgainst(
  baseline: Baseline,
  bounds: readonly Bound[],
  tolerance: number,
): Bound[] {
  return bounds.flatMap((bound) => {
    const before = baseline.outcome.bounds.find(
      ({ name, relation }) => name === bound.name && relation === bound.relation,
    );
    // A figure that was not measured then is null in JSON.
    if (before === undefined || !Number.isFinite(before.value)) {
      return [];
    }
    const name = `${bound.name}, against the baseline's ${before.value}`;
    const room = Math.abs(before.value) * tolerance;
    return bound.relation === '<='
      ? [atMost(name, bound.value, before.value + room, bound.unit)]
      : [atLeast(name, bound.value, before.value - room, bound.unit)];
  });
}

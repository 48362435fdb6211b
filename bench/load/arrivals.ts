// An open-loop load: when sessions arrive and speak is drawn beforehand, and does not depend on
// answers. A slow server is not spared: who waits for an answer before the next request leaves out
// those that would have waited longest (coordinated omission).
import { Random } from '../../src/pipeline/render/motion/random.ts';

/** A length in seconds: even between the two. */
export type Range = readonly [low: number, high: number];

export interface ArrivalPlan {
  /** Sessions a second, on average. */
  readonly rate: number;
  /** `poisson`: each arrival is independent of the others; `fixed`: the same time between all. */
  readonly arrival: 'poisson' | 'fixed';
  /** For how long sessions arrive. */
  readonly seconds: number;
  /** How long a session lasts. */
  readonly stay: Range;
  /** How many in a hundred sessions speak. */
  readonly talkers: number;
  /** Weight of each target. */
  readonly weights: readonly number[];
  readonly seed: number;
}

/** One session that will arrive. */
export interface Arrival {
  /** Seconds after the begin. */
  readonly atSeconds: number;
  readonly staySeconds: number;
  /** Index of the target. */
  readonly target: number;
  readonly talks: boolean;
  readonly seed: number;
}

/** "3" or "1-4", in seconds. @throws Error that says what it must be */
export function parseRange(option: string, text: string): Range {
  const found = /^(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?$/.exec(text);
  const [low, high] = [Number(found?.[1]), Number(found?.[2] ?? found?.[1])];
  if (!(high >= low)) {
    throw new Error(`--${option} must be seconds such as 3 or 1-4, not ${text}`);
  }
  return [low, high];
}

/** All arrivals of a plan, in their order. */
export function arrivalsOf(plan: ArrivalPlan): Arrival[] {
  const random = new Random(plan.seed);
  const weights = plan.weights.reduce((sum, weight) => sum + weight, 0);
  const arrivals: Arrival[] = [];
  const pause = (): number =>
    plan.arrival === 'fixed' ? 1 / plan.rate : -Math.log(1 - random.next()) / plan.rate;
  for (let at = plan.arrival === 'fixed' ? 0 : pause(); at < plan.seconds; at += pause()) {
    let left = random.next() * weights;
    const target = plan.weights.findIndex((weight) => (left -= weight) < 0);
    arrivals.push({
      atSeconds: at,
      target,
      staySeconds: random.between(...plan.stay),
      talks: random.next() * 100 < plan.talkers,
      seed: Math.floor(random.next() * 2 ** 32),
    });
  }
  return arrivals;
}

export interface TalkPattern {
  readonly utterance: Range;
  /** From the end of an utterance to the begin of the next. */
  readonly pause: Range;
  readonly pace: 'burst' | 'realtime';
}

/** An utterance that will be spoken. */
export interface PlannedUtterance {
  /** Seconds after the session's arrival. */
  readonly atSeconds: number;
  readonly seconds: number;
}

/** The utterances of one session: those that are over before it leaves. */
export function utterancesOf(
  { utterance, pause }: Pick<TalkPattern, 'utterance' | 'pause'>,
  staySeconds: number,
  seed: number,
): PlannedUtterance[] {
  const random = new Random(seed);
  const planned: PlannedUtterance[] = [];
  for (let at = random.between(...pause); ;) {
    const seconds = random.between(...utterance);
    if (at + seconds + pause[0] > staySeconds) {
      return planned;
    }
    planned.push({ atSeconds: at, seconds });
    at += seconds + random.between(...pause);
  }
}

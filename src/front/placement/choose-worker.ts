// Which worker takes the next session: a pure function of what the workers last said of themselves.

export interface WorkerView {
  readonly index: number;
  readonly isReady: boolean;
  readonly sessions: number;
  /** Share of its core in use, and what one more speaking session adds; both as measured by the worker. */
  readonly load: number;
  readonly costPerSession: number;
  /** What renderers other than the built-in one add: per session of each kind, and for those already here. */
  readonly extraCost: ReadonlyMap<string, number>;
  readonly extraPromised: number;
  /** 99th percentile of frame lateness over its last seconds. */
  readonly latenessP99Ms: number;
}

export interface PlacementLimits {
  readonly maxSessionsPerWorker: number;
  /** Share of a core that may be promised. */
  readonly maxLoad: number;
}

/** Frames this late mean that a busy worker has no room, whatever is promised. Half of the 30 ms that a viewer could notice. */
const MAX_LATENESS_MS = 15;

/** Under half of its load, frames are late for somebody else's sake (a neighbour on a shared core): refusing people would not help those who are here. */
const isLate = (worker: WorkerView, limits: PlacementLimits): boolean =>
  worker.latenessP99Ms > MAX_LATENESS_MS && worker.load > limits.maxLoad / 2;

/** What the worker will need when all its sessions speak at once: room is refused before quality suffers, not after. */
const promised = (worker: WorkerView): number =>
  Math.max(worker.load, worker.sessions * worker.costPerSession + worker.extraPromised);

export const hasRoom = (worker: WorkerView, limits: PlacementLimits, renderer = 'rig'): boolean =>
  worker.isReady &&
  worker.extraCost.has(renderer) &&
  worker.sessions < limits.maxSessionsPerWorker &&
  // A worker takes its first session even where a slow core makes the estimate look hopeless.
  (worker.sessions === 0 ||
    (promised(worker) + worker.costPerSession + worker.extraCost.get(renderer)! <= limits.maxLoad &&
      !isLate(worker, limits)));

/** Sessions of the built-in renderer that the worker would still take, one after another, by what is known now. */
export function roomOn(worker: WorkerView, limits: PlacementLimits): number {
  if (!hasRoom(worker, limits)) {
    return 0;
  }
  const byLoad =
    Math.floor((limits.maxLoad - worker.extraPromised) / worker.costPerSession) - worker.sessions;
  return Math.max(1, Math.min(byLoad, limits.maxSessionsPerWorker - worker.sessions));
}

/** @returns the worker with the least promised load that has room for a session with this renderer, or null: refuse. */
export function chooseWorker<T extends WorkerView>(
  workers: readonly T[],
  limits: PlacementLimits,
  renderer = 'rig',
): T | undefined {
  let best: T | undefined = undefined;
  for (const worker of workers) {
    if (
      hasRoom(worker, limits, renderer) &&
      (best === undefined || promised(worker) < promised(best))
    ) {
      best = worker;
    }
  }
  return best;
}

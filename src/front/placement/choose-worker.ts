// Chooses the worker for the next session, from the latest figures of the workers. Pure functions.

/** A worker as placement sees it. */
export interface WorkerView {
  readonly index: number;
  readonly isReady: boolean;
  readonly sessions: number;
  /** Sum of what their pictures cost, in sessions with a picture of 512x512. */
  readonly weight: number;
  /**
   * Share of its core in use, and the share of one more speaking session. The worker measures both.
   */
  readonly load: number;
  readonly costPerSession: number;
  /** Further load by renderer: of one session, and of all sessions that the worker has. */
  readonly extraCost: ReadonlyMap<string, number>;
  readonly extraPromised: number;
  /** 99th percentile of the frame lateness over the last seconds. */
  readonly latenessP99Ms: number;
}

/** How much a worker may be given. */
export interface PlacementLimits {
  readonly maxSessionsPerWorker: number;
  /** Share of a core that may be promised. */
  readonly maxLoad: number;
}

/**
 * A busy worker whose frames are this late has no room. Half of the 30 ms that a viewer could
 * notice.
 */
const MAX_LATENESS_MS = 15;

/**
 * Below half of the permitted load, another process on a shared core makes the frames late.
 * Refusing sessions would then not help.
 */
const isLate = (worker: WorkerView, limits: PlacementLimits): boolean =>
  worker.latenessP99Ms > MAX_LATENESS_MS && worker.load > limits.maxLoad / 2;

/**
 * Load when all sessions of the worker speak at once: sessions are refused before quality suffers.
 */
const promised = (worker: WorkerView): number =>
  Math.max(worker.load, worker.weight * worker.costPerSession + worker.extraPromised);

/**
 * Whether the worker may take one more session with this renderer.
 * @param weight of its picture: see pictureWeight
 */
export const hasRoom = (
  worker: WorkerView,
  limits: PlacementLimits,
  renderer = 'rig',
  weight = 1,
): boolean =>
  worker.isReady &&
  worker.extraCost.has(renderer) &&
  worker.sessions < limits.maxSessionsPerWorker &&
  // A worker always takes its first session, even on a core so slow that the estimate exceeds the
  // limit.
  (worker.sessions === 0 ||
    (promised(worker) + weight * worker.costPerSession + worker.extraCost.get(renderer)! <=
      limits.maxLoad &&
      !isLate(worker, limits)));

/** Sessions with the built-in renderer that the worker would still take, by its figures now. */
export function roomOn(worker: WorkerView, limits: PlacementLimits): number {
  if (!hasRoom(worker, limits)) {
    return 0;
  }
  const byLoad = Math.floor(
    (limits.maxLoad - worker.extraPromised) / worker.costPerSession - worker.weight,
  );
  return Math.max(1, Math.min(byLoad, limits.maxSessionsPerWorker - worker.sessions));
}

/**
 * The worker with the least promised load that has room for this renderer; undefined: refuse the
 * session.
 */
export function chooseWorker<T extends WorkerView>(
  workers: readonly T[],
  limits: PlacementLimits,
  renderer = 'rig',
  weight = 1,
): T | undefined {
  let best: T | undefined = undefined;
  for (const worker of workers) {
    if (
      hasRoom(worker, limits, renderer, weight) &&
      (best === undefined || promised(worker) < promised(best))
    ) {
      best = worker;
    }
  }
  return best;
}

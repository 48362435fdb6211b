// Which core each worker is pinned to.

/**
 * Workers take the last cores first, so that the first ones stay for the front, the database and offline jobs. With more workers than
 * cores they share, evenly.
 * @returns the CPU number of each worker, or null where there is nothing to pin to
 */
export function mapCpus(allowed: readonly number[], workers: number): (number | null)[] {
  return Array.from({ length: workers }, (_, index) => allowed.length === 0 ? null : allowed[allowed.length - 1 - (index % allowed.length)]!);
}

const untaken = (allowed: readonly number[], workers: number): number[] => {
  const taken = new Set(mapCpus(allowed, workers));
  return allowed.filter((cpu) => !taken.has(cpu));
};

/** Whether there are CPUs that no worker is pinned to. */
export const leavesCpus = (allowed: readonly number[], workers: number): boolean => untaken(allowed, workers).length > 0;

/** CPUs that no worker is pinned to, or all of them when there is none. Offline jobs run there. */
export function spareCpus(allowed: readonly number[], workers: number): number[] {
  const spare = untaken(allowed, workers);
  return spare.length > 0 ? spare : [...allowed];
}

// Which core each worker is pinned to.

/**
 * Workers take the last cores first, so that the first ones stay for the front, the database and offline jobs. With more workers than
 * cores they share, evenly.
 * @returns the CPU number of each worker, or null where there is nothing to pin to
 */
export function mapCpus(allowed: readonly number[], workers: number): (number | null)[] {
  return Array.from({ length: workers }, (_, index) => allowed.length === 0 ? null : allowed[allowed.length - 1 - (index % allowed.length)]!);
}

/** CPUs that no worker is pinned to, or all of them when there is none. Offline jobs run there. */
export function spareCpus(allowed: readonly number[], workers: number): number[] {
  const taken = new Set(mapCpus(allowed, workers));
  const spare = allowed.filter((cpu) => !taken.has(cpu));
  return spare.length > 0 ? spare : [...allowed];
}

// The cheapest smooth path from column to column of a table, by dynamic programming.

/** Most steps by which a path changes from one column to the next. */
const REACH = 3;

/**
 * @param costs per column the cost of each row; all columns have as many rows
 * @param bend what a change by one row costs; a change by n rows costs n² times as much
 * @returns the row of each column
 */
export function cheapestPath(costs: readonly Float32Array[], bend: number): number[] {
  const rows = costs[0]!.length;
  const from: Int16Array[] = [];
  let total = costs[0]!.slice();
  for (const column of costs.slice(1)) {
    const best = new Int16Array(rows);
    const sums = column.slice();
    for (let k = 0; k < rows; k++) {
      let low = Infinity;
      for (let j = Math.max(0, k - REACH); j <= Math.min(rows - 1, k + REACH); j++) {
        const sum = total[j]! + bend * (j - k) * (j - k);
        if (sum < low) {
          low = sum;
          best[k] = j;
        }
      }
      sums[k] = sums[k]! + low;
    }
    from.push(best);
    total = sums;
  }
  let k = total.indexOf(Math.min(...total));
  const path = [k];
  for (const best of from.toReversed()) {
    k = best[k]!;
    path.push(k);
  }
  return path.toReversed();
}

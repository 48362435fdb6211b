// The file descriptors of the process: open now, and the limit.
import { readFileSync, readdirSync, statSync } from 'node:fs';

/**
 * Since Linux 6.2 the size of /proc/self/fd is the number of open descriptors. Reading it takes
 * none.
 */
const COUNTED_BY_STAT = statSync('/proc/self/fd').size > 0;

let lastMax = Number.POSITIVE_INFINITY;

/** Open file descriptors. The limit when their list cannot be read: then all are in use. */
export function openDescriptors(): number {
  if (COUNTED_BY_STAT) {
    return statSync('/proc/self/fd').size;
  }
  try {
    // One of them is the directory, which is open while it is read.
    return readdirSync('/proc/self/fd').length - 1;
  } catch {
    return maxDescriptors();
  }
}

/**
 * The soft limit on open files now, since prlimit can change it from outside. The last known one
 * when it cannot be read.
 */
export function maxDescriptors(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    lastMax = soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    /* no descriptor is left to read it */
  }
  return lastMax;
}

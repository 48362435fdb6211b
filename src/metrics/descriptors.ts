// How many file descriptors the process has open, and how many it may have.
import { readFileSync, readdirSync, statSync } from 'node:fs';

/** Linux 6.2 and newer: stat of /proc/self/fd says how many are open. It takes no descriptor and lists nothing. */
const COUNTED_BY_STAT = statSync('/proc/self/fd').size > 0;

let lastMax = Number.POSITIVE_INFINITY;

/** Open file descriptors. When not even the list of them can be read, the limit: all are in use. */
export function openDescriptors(): number {
  if (COUNTED_BY_STAT) {
    return statSync('/proc/self/fd').size;
  }
  try {
    return readdirSync('/proc/self/fd').length - 1; // the directory itself is open while it is read
  } catch {
    return maxDescriptors();
  }
}

/** The soft limit on open files, as it is now (it can be changed from outside, by prlimit); the last known where it cannot be read. */
export function maxDescriptors(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    lastMax = soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    /* no descriptor is left to read it with */
  }
  return lastMax;
}

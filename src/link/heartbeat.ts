// A worker's heartbeat: a counter in shared memory. The front can read it even when the worker's
// messages wait in a queue.

/** Far below the watchdog's deadline, and no load for a worker. */
export const HEARTBEAT_MS = 250;

/** Memory for one worker's counter. */
export const createHeartbeat = (): SharedArrayBuffer =>
  new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);

/** The worker's side: counts up. Call every HEARTBEAT_MS. */
export const beatHeart = (memory: SharedArrayBuffer): void => {
  Atomics.add(new Int32Array(memory), 0, 1);
};

/** The front's side: a value that changes while the worker's thread runs its timers. */
export const readHeart = (memory: SharedArrayBuffer): number =>
  Atomics.load(new Int32Array(memory), 0);

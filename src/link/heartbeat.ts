// A worker's sign of life: a count in shared memory, which the front can read whatever waits in its queue of messages.

/** Well under the watchdog's deadline, and nothing to a worker. */
export const HEARTBEAT_MS = 250;

export const createHeartbeat = (): SharedArrayBuffer =>
  new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);

/** The worker's side. */
export const beatHeart = (memory: SharedArrayBuffer): void => {
  Atomics.add(new Int32Array(memory), 0, 1);
};

/** The front's side: changes while the worker's thread runs its timers. */
export const readHeart = (memory: SharedArrayBuffer): number =>
  Atomics.load(new Int32Array(memory), 0);

// How a task of the job pool learns that it must end (why not by force: src/jobs/job-pool.ts).

/** One word of shared memory: not 0 when the task must end. */
export type StopFlag = Int32Array<SharedArrayBuffer>;

/** A stop flag for one run of a task. */
export const stopFlag = (): StopFlag => new Int32Array(new SharedArrayBuffer(4));

/** A task ended because its stop flag was set. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
}

/** @throws Stopped when the stop flag is set */
export function checkStop(stop: StopFlag | undefined): void {
  if (stop !== undefined && Atomics.load(stop, 0) !== 0) {
    throw new Stopped('The task was stopped.');
  }
}

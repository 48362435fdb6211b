// How a task of the job pool learns that it must end (why not by force: src/jobs/job-pool.ts).

/** One word of shared memory: not 0 when the task must end. */
export type StopWord = Int32Array<SharedArrayBuffer>;

/** A stop word for one run of a task. */
export const stopWord = (): StopWord => new Int32Array(new SharedArrayBuffer(4));

/** A task ended because its stop word was set. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
}

/** @throws Stopped when the stop word is set */
export function checkStop(stop: StopWord | undefined): void {
  if (stop !== undefined && Atomics.load(stop, 0) !== 0) {
    throw new Stopped('The task was stopped.');
  }
}

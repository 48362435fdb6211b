// Preloaded by each thread of the job pool: pins the thread, and the threads that its libraries
// start, to the CPUs of the pool.
import { workerData } from 'node:worker_threads';
import { native } from '../native/addon.ts';

native.pinThread(Int32Array.from((workerData as { readonly cpus: readonly number[] }).cpus));

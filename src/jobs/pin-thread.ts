// Preloaded by each thread of the jobs pool: keeps it, and the threads of libraries that it starts, on the CPUs that the pool names.
import { workerData } from 'node:worker_threads';
import { native } from '../native/addon.ts';

native.pinThread(Int32Array.from((workerData as { readonly cpus: readonly number[] }).cpus));

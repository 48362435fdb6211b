// Buckets and label values that several files of the catalogue use.
import { ERRORS } from '../base/errors.ts';

/** Bucket bounds of requests, seconds. */
export const REQUEST_BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
/** Bucket bounds of an event loop's delay, seconds. */
export const LOOP_DELAY_BUCKETS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1];

/** States of a session: before media flows, silent, speaking. */
export const SESSION_STATES = ['connecting', 'idle', 'speaking'] as const;
/** The codes of the error table. */
export const ERROR_CODES = Object.keys(ERRORS) as (keyof typeof ERRORS)[];
/** Kinds of garbage collection. */
export const GC_KINDS = ['minor', 'major', 'incremental', 'other'] as const;

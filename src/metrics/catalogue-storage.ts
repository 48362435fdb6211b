// Metrics of the catalogue: Redis, the storage of files, history and offline jobs.
import { STORAGE_OPERATIONS } from '../base/storage-operations.ts';
import { REQUEST_BUCKETS } from './catalogue-common.ts';
import { counter, gauge, histogram } from './metric-family.ts';

// Bucket bounds, in seconds unless noted. Each objective is a bound, so that its SLO is an exact
// ratio of buckets.
const JOB_BUCKETS = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800];
const SPEED_BUCKETS = [0.5, 1, 2, 4, 8, 12, 16, 24, 32, 64]; // media seconds per second
const JOB_KINDS = ['static', 'face'] as const;

/** Metrics of Redis, the storage of files, history and offline jobs. */
export const STORAGE_METRICS = {
  // ── storage ────────────────────────────────────────────────────────────────────────────────────
  mouthpiece_redis_command_duration_seconds: histogram(
    'front',
    'Round trip of one Redis command or script.',
    REQUEST_BUCKETS,
    { command: { atMost: 48 } },
  ),
  mouthpiece_redis_errors_total: counter('front', 'Redis commands that failed.', {
    cause: ['timeout', 'connection', 'reply', 'other'],
  }),
  mouthpiece_redis_connected: gauge('front', '1 while Redis answers.'),
  mouthpiece_storage_operation_duration_seconds: histogram(
    'front',
    'One operation on the storage of faces and videos (a folder or S3), repetitions included.',
    REQUEST_BUCKETS,
    { operation: STORAGE_OPERATIONS },
  ),
  mouthpiece_storage_errors_total: counter(
    'front',
    'Operations on the storage of faces and videos that failed.',
    { operation: STORAGE_OPERATIONS },
  ),
  mouthpiece_storage_cache_requests_total: counter(
    'front',
    'Files asked for where S3 is used, by how the local copies helped. stale: S3 did not answer.',
    { outcome: ['hit', 'miss', 'stale', 'bypass'] },
  ),
  mouthpiece_storage_cache_bytes: gauge('front', 'Local copies of files in S3.'),
  mouthpiece_storage_up: gauge('front', '1 while the storage of faces and videos works.'),
  mouthpiece_history_pending_records: gauge(
    'front',
    'Session records that wait until Redis answers again.',
  ),

  // ── offline jobs ───────────────────────────────────────────────────────────────────────────────
  mouthpiece_jobs: gauge('front', 'Offline jobs now.', {
    kind: JOB_KINDS,
    state: ['queued', 'running'],
  }),
  mouthpiece_jobs_refused_total: counter('front', 'Jobs refused because the queue was full.', {
    kind: JOB_KINDS,
  }),
  mouthpiece_jobs_finished_total: counter('front', 'Jobs ended, by result.', {
    kind: JOB_KINDS,
    result: ['completed', 'failed', 'cancelled'],
  }),
  mouthpiece_job_wait_seconds: histogram(
    'front',
    "From a job's acceptance to its start.",
    JOB_BUCKETS,
    {
      kind: JOB_KINDS,
    },
  ),
  mouthpiece_job_duration_seconds: histogram(
    'front',
    "From a job's start to its end.",
    JOB_BUCKETS,
    {
      kind: JOB_KINDS,
    },
  ),
  mouthpiece_job_oldest_queued_seconds: gauge(
    'front',
    'Age of the oldest job still waiting; 0 when none waits.',
    { kind: JOB_KINDS },
  ),
  mouthpiece_job_realtime_factor: histogram(
    'front',
    'Seconds of video made per second of work.',
    SPEED_BUCKETS,
  ),
} as const;

// Renders static videos on threads of their own: a segment at a time, taking turns, each segment
// stored before the next is rendered.
import { createHash } from 'node:crypto';
import { MessageChannel } from 'node:worker_threads';
import { guarded } from '../../base/guard.ts';
import { createJobPool, type JobPool, type NamedThread } from '../../jobs/job-pool.ts';
import { stopFlag } from '../../base/stop-flag.ts';
import type {
  RenderedPiece,
  RenderResult,
  RenderTask,
} from '../../jobs/video/render-video-task.ts';
import { EMOTIONS, type Motion } from '../../media/articulation.ts';
import { FairSemaphore, type Permit } from './fair-semaphore.ts';
import type { Publisher, StaticFiles } from './video-files.ts';
import type { StaticRecord } from './video-records.ts';

/**
 * Videos that take turns on one core, two seconds of video at a time. Each holds a thread of its
 * own and about 60 MB.
 */
export const VIDEOS_A_THREAD = 4;
/**
 * A rendering that is ten times slower than real time hangs. It may take minutes to begin: beside
 * three busy threads of usual priority, a thread of the lowest gets half a percent of its core.
 */
const renderDeadlineMs = (seconds: number): number => 300_000 + Math.ceil(seconds) * 10_000;

/** One rendering. */
export interface RenderJob {
  readonly id: string;
  readonly record: StaticRecord;
  /** The uploaded audio. Its memory moves to the thread. */
  readonly audio: Buffer;
  /** A face asset (src/media/face-asset.ts). */
  readonly face: SharedArrayBuffer;
  /** From `join`. */
  readonly permit: Permit;
  readonly signal: AbortSignal;
  /** Called after each stored segment, with their number. */
  readonly onSegment: (stored: number) => Promise<void>;
}

/** The threads that render static videos. */
export class VideoRenderer {
  readonly #files: StaticFiles;
  readonly #motion: Motion;
  readonly #semaphore: FairSemaphore;
  /** Apart from the threads that make faces, so that no face waits behind a long video. */
  readonly #pool: JobPool;

  /**
   * @param motion how much faces move
   * @param threads cores that may work at a time
   * @param cpus where the threads may run; empty: anywhere
   */
  constructor(files: StaticFiles, motion: Motion, threads: number, cpus: readonly number[]) {
    this.#files = files;
    this.#motion = motion;
    this.#semaphore = new FairSemaphore(threads);
    this.#pool = createJobPool('video-job', threads * VIDEOS_A_THREAD, cpus);
  }

  /** The threads that run. */
  get threads(): readonly NamedThread[] {
    return this.#pool.threads;
  }

  /** The permit of one rendering, which tells how long it worked. Close it afterwards. */
  join(): Permit {
    return this.#semaphore.join();
  }

  /**
   * Writes the HLS files and a draft of the MP4.
   * @returns `failed`, in words for the owner, when the audio cannot be used
   */
  async render(job: RenderJob): Promise<RenderResult> {
    const { id, record, audio, face, permit, signal } = job;
    const { order, frames, durationSeconds } = record;
    const publisher = await this.#files.publisher(id, frames);
    const mp4File = await this.#files.mp4Draft(id);
    const { port1, port2 } = new MessageChannel();
    const storage = new AbortController();
    port1.on(
      'message',
      guarded('a piece of a video', (piece: RenderedPiece) => {
        permit.release();
        store(publisher, piece, job.onSegment)
          .then(() => permit.acquire())
          .then(
            () => {
              port1.postMessage('stored');
            },
            (error: unknown) => {
              storage.abort(error);
            },
          );
      }),
    );
    const stop = stopFlag();
    const task: RenderTask = {
      stop,
      audio: {
        bytes: audio,
        format: order.audioFormat,
        rate: order.sampleRate,
        channels: order.channelCount,
      },
      face,
      emotion: EMOTIONS.indexOf(order.emotion as never),
      motion: this.#motion,
      startFrame: order.startFrame,
      seed: seedOf(id),
      frames,
      mp4File,
      port: port2,
    };
    // Small buffers share Node's pool, which must not be transferred.
    const ownsMemory = audio.byteLength === audio.buffer.byteLength;
    try {
      await permit.acquire();
      return await this.#pool.run<RenderResult>('static', task, {
        timeoutMs: renderDeadlineMs(durationSeconds),
        signal: AbortSignal.any([signal, storage.signal]),
        stop,
        transfer: ownsMemory ? [port2, audio.buffer as ArrayBuffer] : [port2],
      });
    } catch (error) {
      throw storage.signal.aborted ? storage.signal.reason : error;
    } finally {
      port1.close();
    }
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}

async function store(
  publisher: Publisher,
  piece: RenderedPiece,
  onSegment: RenderJob['onSegment'],
): Promise<void> {
  if (piece.type === 'init') {
    await publisher.init(piece.bytes);
  } else if (await publisher.segment(piece.index, piece.bytes)) {
    await onSegment(publisher.published);
  }
}

/** The same id gives the same movements, so that a rendering that starts again repeats itself. */
const seedOf = (id: string): number =>
  createHash('sha256').update(id).digest().readUInt32LE(0) >>> 1;

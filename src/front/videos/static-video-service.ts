// Static videos as the REST surface sees them: looks at the audio, queues, has them rendered, tells progress, serves the files until they expire.
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { every, guarded } from '../../base/guard.ts';
import { ServiceError } from '../../base/errors.ts';
import { newUuid } from '../../base/ids.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, wallMs } from '../../base/time.ts';
import { inspectAudio, type AudioInput } from '../../jobs/video/audio/open-audio.ts';
import { AudioError } from '../../jobs/video/audio/pcm-stream.ts';
import { frameCount, PLAYLIST_NAME, segmentCount } from '../../jobs/video/hls.ts';
import type { InspectResult } from '../../jobs/video/inspect-audio-task.ts';
import type {
  RenderedPiece,
  RenderResult,
  RenderTask,
} from '../../jobs/video/render-video-task.ts';
import { createJobPool, type JobPool } from '../../jobs/job-pool.ts';
import { EMOTIONS } from '../../media/articulation.ts';
import type { Meter } from '../../metrics/catalogue.ts';
import type { StaticRequest, StaticStatus, StaticVideos } from '../api/static.ts';
import type { FaceCatalog } from '../faces/face-catalog.ts';
import type { FileSource } from '../http/file-response.ts';
import { JobRunner } from '../queue/job-runner.ts';
import type { FileBlobs } from '../store/blobs.ts';
import { JobQueue, type TakenJob } from '../queue/job-queue.ts';
import type { SessionRecorder } from '../history/session-recorder.ts';
import type { RedisStore } from '../store/redis.ts';
import { StaticFiles, type Publisher, isVideoId } from './video-files.ts';
import { EtaEstimator } from './eta-estimator.ts';
import { VideoMetrics } from './video-metrics.ts';
import { StaticRecords, type StaticRecord } from './video-records.ts';
import { FairSemaphore, type Lease } from './fair-semaphore.ts';

export interface StaticVideoOptions {
  readonly store: RedisStore;
  readonly blobs: FileBlobs;
  readonly faces: Pick<FaceCatalog, 'load'>;
  readonly recorder: Pick<SessionRecorder, 'record'>;
  readonly metrics: Meter<'front'>;
  readonly log: Logger;
  readonly serverId: string;
  /** Videos that are worked at at the same moment. */
  readonly threads: number;
  /** Where it may run; empty: anywhere. */
  readonly cpus: readonly number[];
  /** Jobs that may wait. */
  readonly maxQueued: number;
  readonly ttlSeconds: number;
  readonly sweepEveryMs?: number;
}

interface StaticJob {
  readonly seconds: number;
}

/** Audio this small is looked at faster than it is handed to a thread. */
const INLINE_BYTES = 256 * 1024;
/** Less than the request may take. */
const INSPECT_DEADLINE_MS = 50_000;
/** Uploads that may wait to be looked at: each holds up to 64 MiB. */
const MAX_INSPECTIONS = 8;
const MAX_ATTEMPTS = 3;
/** Videos that take turns on a thread's share of the machine, two seconds of video at a time. Each holds a thread of its own, of some 60 MB. */
const VIDEOS_A_THREAD = 4;
/** A rendering slower than a tenth of real time hangs. */
const renderDeadlineMs = (seconds: number): number => 60_000 + Math.ceil(seconds) * 10_000;
/** How long a request for the playlist waits for the first segment. */
const FIRST_SEGMENT_WAIT_MS = 25_000;
const LOOK_AGAIN_MS = 250;
const SWEEP_MS = 60_000;
/** A video that says it waits but has no job for this long lost it to a crash between two writes. */
const LOST_AFTER_MS = 60_000;

const words = {
  lostUpload: 'The audio was lost before it was rendered. Send it again.',
  lostJob: 'The request was interrupted. Send the audio again.',
  lostFiles:
    'The files of this video are no longer in the storage of the server. Send the audio again.',
  lostFace: 'The face was deleted before the video was rendered.',
  gaveUp:
    'The video could not be rendered: the server failed each time it tried. Send the audio again.',
  slow: 'The audio took too long to decode. Send it as WAV or PCM.',
};

export class StaticVideoService implements StaticVideos {
  readonly #options: StaticVideoOptions;
  readonly #records: StaticRecords;
  readonly #files: StaticFiles;
  readonly #queue: JobQueue<StaticJob>;
  readonly #runner: JobRunner<StaticJob>;
  readonly #forecast: EtaEstimator;
  readonly #gauges: VideoMetrics;
  /** Apart from the threads that make faces, which nobody shall wait for behind a long video. */
  readonly #renderPool: JobPool;
  readonly #turns: FairSemaphore;
  readonly #inspectPool: JobPool;
  readonly #sweeper: NodeJS.Timeout;
  #inspections = 0;

  private constructor(options: StaticVideoOptions, queue: JobQueue<StaticJob>) {
    const {
      store,
      blobs,
      ttlSeconds,
      threads,
      cpus,
      metrics,
      log,
      sweepEveryMs = SWEEP_MS,
    } = options;
    this.#options = options;
    this.#records = new StaticRecords(store, ttlSeconds);
    this.#files = new StaticFiles(blobs);
    this.#forecast = new EtaEstimator(threads);
    this.#gauges = new VideoMetrics(metrics, this.#forecast);
    this.#renderPool = createJobPool(threads * VIDEOS_A_THREAD, cpus);
    this.#inspectPool = createJobPool(1, cpus);
    this.#turns = new FairSemaphore(threads);
    this.#queue = queue;
    this.#runner = new JobRunner({
      queue,
      log,
      concurrency: threads * VIDEOS_A_THREAD,
      maxAttempts: MAX_ATTEMPTS,
      work: (job, signal) => this.#work(job, signal),
      giveUp: (job) => this.#fail(job.id, words.gaveUp),
    });
    this.#sweeper = every(sweepEveryMs, 'the removal of old videos', () => this.#sweep());
    this.#sweeper.unref();
  }

  /** Takes up what the last run of this server left unfinished. */
  static async open(options: StaticVideoOptions): Promise<StaticVideoService> {
    const queue = new JobQueue<StaticJob>({
      store: options.store,
      name: 'static',
      serverId: options.serverId,
      capacity: options.maxQueued,
    });
    await queue.reclaim();
    return new StaticVideoService(options, queue);
  }

  async create({ audio, ...order }: StaticRequest): Promise<{ id: string; etaSeconds: number }> {
    await this.#options.faces.load(order.ownerId, order.faceId);
    const { samples, rate } = await this.#inspect({
      bytes: audio,
      format: order.audioFormat,
      rate: order.sampleRate,
      channels: order.channelCount,
    });
    const durationSeconds = samples / rate;
    const id = newUuid(); // as history has it; its 122 random bits are what protects the files
    await this.#records.create(id, {
      order,
      durationSeconds,
      frames: frameCount(samples, rate),
      createdMs: wallMs(),
    });
    try {
      await this.#files.putUpload(id, audio);
      this.#forecast.queued(id, durationSeconds);
      await this.#queue.enqueue(id, { seconds: durationSeconds });
    } catch (error) {
      this.#forecast.ended(id, false);
      if (error instanceof ServiceError && error.code === 'QUEUE_FULL') {
        this.#gauges.refused();
      }
      await this.#files.delete(id);
      await this.#records.delete(id);
      throw error;
    }
    const etaSeconds = this.#forecast.etaSeconds(id, durationSeconds, 0);
    this.#gauges.refresh();
    this.#runner.wake();
    return { id, etaSeconds };
  }

  async status(id: string): Promise<StaticStatus | undefined> {
    const record = isVideoId(id) ? await this.#records.find(id) : undefined;
    if (record === undefined) {
      return undefined;
    }
    const { status, error, durationSeconds } = record;
    const progress =
      status === 'completed'
        ? 1
        : status === 'rendering'
          ? record.segments / (segmentCount(record.frames) + 1)
          : 0;
    if (status === 'completed' && !(await this.#files.hasAll(id, record.frames))) {
      // Only told: a storage that is away for a while, such as a network file system, brings them back.
      return { status: 'failed', progress: 0, durationSeconds, error: words.lostFiles };
    }
    if (status === 'completed') {
      return { status, progress, durationSeconds };
    }
    if (status === 'failed') {
      return { status, progress, durationSeconds, error: error ?? words.gaveUp };
    }
    const place = status === 'queued' ? await this.#queue.position(id) : undefined;
    if (
      place === undefined &&
      wallMs() - record.createdMs > LOST_AFTER_MS &&
      !(await this.#queue.has(id))
    ) {
      await this.#fail(id, words.lostJob);
      return { status: 'failed', progress, durationSeconds, error: words.lostJob };
    }
    return {
      status,
      progress,
      durationSeconds,
      etaSeconds: this.#forecast.etaSeconds(id, durationSeconds, progress),
      ...(place === undefined ? {} : { queuePosition: place + 1 }),
    };
  }

  async openHls(id: string, name: string): Promise<FileSource | undefined> {
    const file = await this.#files.openHls(id, name);
    return file !== undefined || name !== PLAYLIST_NAME ? file : await this.#firstPlaylist(id);
  }

  async openMp4(id: string): Promise<FileSource | undefined> {
    return await this.#files.openMp4(id);
  }

  /** What runs is abandoned, and begun again at the next start. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    await this.#runner.close();
    await Promise.all([this.#renderPool.close(), this.#inspectPool.close()]);
  }

  /** Players ask for the playlist as soon as they know its address: they are made to wait for the first segment instead of being told 404. */
  async #firstPlaylist(id: string): Promise<FileSource | undefined> {
    const deadlineMs = monotonicMs() + FIRST_SEGMENT_WAIT_MS;
    while (monotonicMs() < deadlineMs) {
      const record = isVideoId(id) ? await this.#records.find(id) : undefined;
      if (record === undefined) {
        return undefined;
      }
      if (record.status === 'failed') {
        throw new ServiceError(
          'NOT_FOUND',
          `The video could not be rendered: ${record.error ?? words.gaveUp}`,
        );
      }
      const file = await this.#files.openHls(id, PLAYLIST_NAME);
      if (file !== undefined || record.status === 'completed') {
        return file;
      }
      await delay(LOOK_AGAIN_MS / 5);
    }
    return undefined;
  }

  async #inspect(input: AudioInput): Promise<{ samples: number; rate: number }> {
    const isQuick =
      input.bytes.length <= INLINE_BYTES && ['pcm16', 'pcm32', 'wav'].includes(input.format);
    try {
      if (isQuick) {
        return await inspectAudio(input);
      }
      if (this.#inspections >= MAX_INSPECTIONS) {
        this.#gauges.refused();
        throw new ServiceError('QUEUE_FULL', undefined, 5);
      }
      this.#inspections++;
      try {
        const result = await this.#inspectPool.run<InspectResult>('staticAudio', input, {
          timeoutMs: INSPECT_DEADLINE_MS,
        });
        if ('rejected' in result) {
          throw new AudioError(result.rejected);
        }
        return result;
      } finally {
        this.#inspections--;
      }
    } catch (error) {
      throw (error as Error).name === 'AbortError' ? new AudioError(words.slow) : error;
    }
  }

  async #work({ id }: TakenJob<StaticJob>, signal: AbortSignal): Promise<void> {
    const record = await this.#records.find(id);
    if (record === undefined || record.status === 'completed' || record.status === 'failed') {
      return;
    }
    if (await this.#files.isWhole(id)) {
      await this.#complete(id, record);
      return;
    } // all but its record was written before the server stopped
    const bytes = await this.#files.getUpload(id);
    if (bytes === undefined) {
      await this.#fail(id, words.lostUpload);
      return;
    }
    const face = await this.#options.faces
      .load(record.order.ownerId, record.order.faceId)
      .catch((error: unknown) => {
        if (
          error instanceof ServiceError &&
          ['INVALID_FACE_ID', 'FACE_NOT_READY'].includes(error.code)
        ) {
          return undefined;
        }
        throw error;
      });
    if (face === undefined) {
      await this.#fail(id, words.lostFace);
      return;
    }
    await this.#records.update(id, { status: 'rendering' });
    const turn = this.#turns.join();
    this.#forecast.started(id, record.durationSeconds, () => turn.workedSeconds);
    this.#gauges.refresh();
    const { failed } = await this.#render(id, record, bytes, face, turn, signal).finally(() => {
      turn.end();
    });
    if (failed !== undefined) {
      await this.#fail(id, failed);
      return;
    }
    await this.#files.adoptMp4(id);
    await this.#complete(id, record);
  }

  async #render(
    id: string,
    record: StaticRecord,
    bytes: Buffer,
    face: SharedArrayBuffer,
    turn: Lease,
    signal: AbortSignal,
  ): Promise<RenderResult> {
    const { order, frames, durationSeconds } = record;
    const { port1, port2 } = new MessageChannel();
    const publisher = await this.#files.publisher(id, frames);
    const trouble = new AbortController();
    port1.on(
      'message',
      guarded('a piece of a video', (piece: RenderedPiece) => {
        turn.pass();
        this.#store(id, publisher, piece)
          .then(() => turn.take())
          .then(
            () => {
              port1.postMessage('stored');
            },
            (error: unknown) => {
              trouble.abort(error);
            },
          );
      }),
    );
    const task: RenderTask = {
      audio: {
        bytes,
        format: order.audioFormat,
        rate: order.sampleRate,
        channels: order.channelCount,
      },
      face,
      emotion: EMOTIONS.indexOf(order.emotion as never),
      startFrame: order.startFrame,
      seed: seedOf(id),
      frames,
      mp4File: this.#files.mp4Draft(id),
      port: port2,
    };
    const isAlone = bytes.byteLength === bytes.buffer.byteLength; // small buffers share Node's pool, which must stay
    try {
      await turn.take();
      return await this.#renderPool.run<RenderResult>('static', task, {
        timeoutMs: renderDeadlineMs(durationSeconds),
        signal: AbortSignal.any([signal, trouble.signal]),
        transfer: isAlone ? [port2, bytes.buffer as ArrayBuffer] : [port2],
      });
    } catch (error) {
      throw trouble.signal.aborted ? trouble.signal.reason : error;
    } finally {
      port1.close();
    }
  }

  async #store(id: string, publisher: Publisher, piece: RenderedPiece): Promise<void> {
    if (piece.type === 'init') {
      await publisher.init(piece.bytes);
      return;
    }
    if (!(await publisher.segment(piece.index, piece.bytes))) {
      return;
    }
    await this.#records.update(id, { segments: publisher.published }).catch(() => {}); // only progress: Redis may be away for a while
  }

  async #complete(id: string, { order, durationSeconds }: StaticRecord): Promise<void> {
    const { recorder } = this.#options;
    await this.#records.update(id, { status: 'completed' });
    await this.#files.deleteUpload(id);
    const durationMs = durationSeconds * 1000;
    // What is accounted is the length of the video, as for the other kinds of session.
    const { ownerId, keyId, keyName, faceId } = order;
    await recorder.record(
      {
        id,
        kind: 'static',
        ownerId,
        tokenId: keyId,
        faceId,
        aggregator: null,
        keyName,
        startMs: wallMs() - durationMs,
      },
      durationMs,
    );
    this.#gauges.finished('completed', this.#forecast.ended(id, true));
  }

  async #fail(id: string, error: string): Promise<void> {
    await this.#records.update(id, { status: 'failed', error });
    await this.#files.delete(id);
    this.#gauges.finished('failed', this.#forecast.ended(id, false));
    this.#options.log.warn({ videoId: id.slice(0, 8), reason: error }, 'a static video failed');
  }

  /** Files whose record has expired go. */
  async #sweep(): Promise<void> {
    try {
      for (const id of await this.#files.list()) {
        if (!(await this.#records.exists(id))) {
          await this.#files.delete(id);
        }
      }
    } catch (error) {
      this.#options.log.debug(
        { err: error },
        'expired static videos could not be looked for; trying again',
      );
    }
    this.#gauges.refresh();
  }
}

/** The same id gives the same movements, so a rendering that is begun again repeats itself. */
const seedOf = (id: string): number =>
  createHash('sha256').update(id).digest().readUInt32LE(0) >>> 1;

// Static videos from upload to expiry: inspects the audio, queues, has it rendered, tells the
// progress, and serves the files.
import { setTimeout as delay } from 'node:timers/promises';
import { every } from '../../base/guard.ts';
import { ServiceError } from '../../base/errors.ts';
import { newUuid } from '../../base/ids.ts';
import type { Logger } from '../../base/log.ts';
import { monotonicMs, wallMs } from '../../base/time.ts';
import type { NamedThread } from '../../jobs/job-pool.ts';
import type { AudioInput } from '../../jobs/video/audio/open-audio.ts';
import { frameCount, PLAYLIST_NAME, segmentCount } from '../../jobs/video/hls.ts';
import type { Meter } from '../../metrics/catalogue.ts';
import type { Motion } from '../../media/articulation.ts';
import type { StaticRequest, StaticStatus, StaticVideos } from './static-videos.ts';
import type { FaceCatalog } from '../faces/face-catalog.ts';
import type { FileSource } from '../http/file-response.ts';
import { JobRunner } from '../queue/job-runner.ts';
import type { BlobStore } from '../store/blobs.ts';
import { whileAway } from '../store/watched-blobs.ts';
import { JobQueue, type TakenJob } from '../queue/job-queue.ts';
import type { SessionRecorder } from '../history/session-recorder.ts';
import type { RedisStore } from '../store/redis.ts';
import { StaticFiles, isVideoId } from './video-files.ts';
import { AudioInspector } from './audio-inspector.ts';
import { EtaEstimator } from './eta-estimator.ts';
import { VideoMetrics } from './video-metrics.ts';
import { StaticRecords, type StaticRecord } from './video-records.ts';
import { VIDEOS_A_THREAD, VideoRenderer } from './video-renderer.ts';

/** What the service is built from. */
export interface StaticVideoOptions {
  readonly store: RedisStore;
  readonly blobs: BlobStore;
  readonly faces: Pick<FaceCatalog, 'load'>;
  readonly recorder: Pick<SessionRecorder, 'record'>;
  readonly metrics: Meter<'front'>;
  readonly log: Logger;
  readonly serverId: string;
  /** Cores that may render at a time. */
  readonly threads: number;
  /** CPUs for the threads; empty: any. */
  readonly cpus: readonly number[];
  /** How much faces move. */
  readonly motion: Motion;
  /** Jobs that may wait. */
  readonly maxQueued: number;
  /** How long a finished video can be fetched. */
  readonly ttlSeconds: number;
  /** How often expired files are removed; SWEEP_MS unless given. */
  readonly sweepEveryMs?: number;
}

interface StaticJob {
  /** Length of the video. */
  readonly seconds: number;
}

/** Renderings of one video, when the server stops or fails meanwhile. */
const MAX_ATTEMPTS = 3;
/** How long a request for the playlist waits for the first segment. */
const FIRST_SEGMENT_WAIT_MS = 25_000;
/** How often it looks whether the first segment is there. */
const PLAYLIST_POLL_MS = 50;
const SWEEP_MS = 60_000;
/** A queued video without a job after this time lost it in a crash between two writes. */
const LOST_AFTER_MS = 60_000;

/** Reasons of failures, for the owner of a video. */
const FAILURES = {
  lostUpload: 'The audio was lost before it was rendered. Send it again.',
  lostJob: 'The request was interrupted. Send the audio again.',
  lostFiles:
    'The files of this video are no longer in the storage of the server. Send the audio again.',
  lostFace: 'The face was deleted before the video was rendered.',
  badFiles:
    'The video could not be rendered: the storage of the server failed each time. Send the audio again.',
  gaveUp:
    'The video could not be rendered: the server failed each time it tried. Send the audio again.',
};

/** The static videos of one server. */
export class StaticVideoService implements StaticVideos {
  readonly #options: StaticVideoOptions;
  readonly #records: StaticRecords;
  readonly #files: StaticFiles;
  readonly #queue: JobQueue<StaticJob>;
  readonly #runner: JobRunner<StaticJob>;
  readonly #eta: EtaEstimator;
  readonly #metrics: VideoMetrics;
  readonly #renderer: VideoRenderer;
  readonly #inspector: AudioInspector;
  readonly #sweeper: NodeJS.Timeout;
  /** The next look at a video that is waited for: one for all requests, since anybody may ask. */
  readonly #looks = new Map<string, Promise<StaticRecord | undefined>>();

  private constructor(options: StaticVideoOptions, queue: JobQueue<StaticJob>) {
    const {
      store,
      blobs,
      ttlSeconds,
      threads,
      cpus,
      motion,
      metrics,
      log,
      sweepEveryMs = SWEEP_MS,
    } = options;
    this.#options = options;
    this.#records = new StaticRecords(store, ttlSeconds);
    this.#files = new StaticFiles(blobs);
    this.#eta = new EtaEstimator(threads);
    this.#metrics = new VideoMetrics(metrics, this.#eta);
    this.#renderer = new VideoRenderer(this.#files, motion, threads, cpus);
    this.#inspector = new AudioInspector(cpus);
    this.#queue = queue;
    this.#runner = new JobRunner({
      queue,
      log,
      concurrency: threads * VIDEOS_A_THREAD,
      maxAttempts: MAX_ATTEMPTS,
      work: (job, signal) => this.#work(job, signal),
      giveUp: (job, why) =>
        this.#fail(job.id, why === 'files' ? FAILURES.badFiles : FAILURES.gaveUp),
    });
    this.#sweeper = every(sweepEveryMs, 'the removal of old videos', () => this.#sweep());
    this.#sweeper.unref();
  }

  /** Starts the service, which also takes up what the last run left unfinished. */
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
    // Whoever knows the id may fetch the files: its 122 random bits protect them.
    const id = newUuid();
    await this.#records.create(id, {
      order,
      durationSeconds,
      frames: frameCount(samples, rate),
      createdMs: wallMs(),
    });
    try {
      await this.#files.putUpload(id, audio);
      this.#eta.queued(id, durationSeconds);
      await this.#queue.enqueue(id, { seconds: durationSeconds });
    } catch (error) {
      this.#eta.ended(id, false);
      if (error instanceof ServiceError && error.code === 'QUEUE_FULL') {
        this.#metrics.refused();
      }
      await this.#records.delete(id);
      // Where the storage is away, the sweep makes up for it.
      await this.#files.delete(id).catch(whileAway(undefined));
      throw error;
    }
    const etaSeconds = this.#eta.etaSeconds(id, durationSeconds, 0);
    this.#metrics.refresh();
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
    if (
      status === 'completed' &&
      !(await this.#files.hasAll(id, record.frames).catch(whileAway(true)))
    ) {
      // The record stays: a network file system that is away for a while brings the files back.
      return { status: 'failed', progress: 0, durationSeconds, error: FAILURES.lostFiles };
    }
    if (status === 'completed') {
      return { status, progress, durationSeconds };
    }
    if (status === 'failed') {
      return { status, progress, durationSeconds, error: error ?? FAILURES.gaveUp };
    }
    const place = status === 'queued' ? await this.#queue.position(id) : undefined;
    if (
      place === undefined &&
      wallMs() - record.createdMs > LOST_AFTER_MS &&
      !(await this.#queue.has(id))
    ) {
      await this.#fail(id, FAILURES.lostJob);
      return { status: 'failed', progress, durationSeconds, error: FAILURES.lostJob };
    }
    return {
      status,
      progress,
      durationSeconds,
      etaSeconds: this.#eta.etaSeconds(id, durationSeconds, progress),
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

  /** The threads that work now. */
  get jobThreads(): readonly NamedThread[] {
    return [...this.#renderer.threads, ...this.#inspector.threads];
  }

  /** Takes up the videos that a server which died was rendering. */
  async takeOver(deadServerId: string): Promise<void> {
    await this.#runner.takeOver(deadServerId);
  }

  /** Stops what runs; the next start begins it again. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    await this.#runner.close();
    await Promise.all([this.#renderer.close(), this.#inspector.close()]);
  }

  /** Waits for the first segment: players ask for the playlist at once, and give up on a 404. */
  async #firstPlaylist(id: string): Promise<FileSource | undefined> {
    const deadlineMs = monotonicMs() + FIRST_SEGMENT_WAIT_MS;
    let record = isVideoId(id) ? await this.#records.find(id) : undefined;
    while (monotonicMs() < deadlineMs) {
      if (record === undefined) {
        return undefined;
      }
      if (record.status === 'failed') {
        throw new ServiceError(
          'NOT_FOUND',
          `The video could not be rendered: ${record.error ?? FAILURES.gaveUp}`,
        );
      }
      if (record.segments > 0 || record.status === 'completed') {
        return await this.#files.openHls(id, PLAYLIST_NAME);
      }
      record = await this.#nextLook(id);
    }
    return undefined;
  }

  #nextLook(id: string): Promise<StaticRecord | undefined> {
    const known = this.#looks.get(id);
    if (known !== undefined) {
      return known;
    }
    const look = delay(PLAYLIST_POLL_MS)
      .then(() => this.#records.find(id))
      .finally(() => this.#looks.delete(id));
    this.#looks.set(id, look);
    return look;
  }

  /** @throws AudioError; ServiceError QUEUE_FULL when too many uploads wait to be inspected */
  async #inspect(input: AudioInput): Promise<{ samples: number; rate: number }> {
    if (this.#inspector.isFull && !this.#inspector.isInline(input)) {
      this.#metrics.refused();
      throw new ServiceError('QUEUE_FULL', undefined, 5);
    }
    return await this.#inspector.inspect(input);
  }

  async #work({ id }: TakenJob<StaticJob>, signal: AbortSignal): Promise<void> {
    const record = await this.#records.find(id);
    if (record === undefined || record.status === 'completed' || record.status === 'failed') {
      return;
    }
    if (await this.#files.isWhole(id)) {
      // The server stopped when only the record was left to write.
      await this.#complete(id, record);
      return;
    }
    const bytes = await this.#files.getUpload(id);
    if (bytes === undefined) {
      await this.#fail(id, FAILURES.lostUpload);
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
      await this.#fail(id, FAILURES.lostFace);
      return;
    }
    await this.#records.update(id, { status: 'rendering' });
    const permit = this.#renderer.join();
    this.#eta.started(id, record.durationSeconds, () => permit.workedSeconds);
    this.#metrics.refresh();
    const { failed } = await this.#renderer
      .render({
        id,
        record,
        audio: bytes,
        face,
        permit,
        signal,
        // Only progress: Redis may be away for a while.
        onSegment: (segments) => this.#records.update(id, { segments }).catch(() => {}),
      })
      .finally(() => {
        permit.close();
      });
    if (failed !== undefined) {
      await this.#fail(id, failed);
      return;
    }
    if (await this.#isOurs(id)) {
      await this.#files.adoptMp4(id);
      await this.#complete(id, record);
    }
  }

  /**
   * False when this server was taken for dead meanwhile: another one renders the video, and its
   * playlist may be shorter for now. While Redis is away nobody takes anything.
   */
  async #isOurs(id: string): Promise<boolean> {
    try {
      return await this.#queue.extend(id);
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'STORE_UNAVAILABLE') {
        return true;
      }
      throw error;
    }
  }

  async #complete(id: string, { order, durationSeconds }: StaticRecord): Promise<void> {
    const { recorder } = this.#options;
    await this.#records.update(id, { status: 'completed' });
    await this.#files.deleteUpload(id);
    const durationMs = durationSeconds * 1000;
    // History counts the length of the video, as for the other kinds of session.
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
    this.#metrics.finished('completed', this.#eta.ended(id, true));
  }

  async #fail(id: string, error: string): Promise<void> {
    await this.#records.update(id, { status: 'failed', error });
    await this.#files.delete(id).catch(whileAway(undefined)); // the sweep makes up for it
    this.#metrics.finished('failed', this.#eta.ended(id, false));
    this.#options.log.warn({ videoId: id.slice(0, 8), reason: error }, 'a static video failed');
  }

  /** Removes the files whose record has expired, unless another server does. */
  async #sweep(): Promise<void> {
    try {
      const { serverId, sweepEveryMs = SWEEP_MS } = this.#options;
      const isOurs = await this.#records.takeSweep(serverId, sweepEveryMs);
      for (const id of isOurs ? await this.#files.list() : []) {
        if (!(await this.#records.exists(id))) {
          await this.#files.delete(id);
        }
      }
      // Another server may have rendered what was asked for here.
      for (const id of this.#eta.ids) {
        if (!(await this.#queue.has(id))) {
          this.#eta.ended(id, false);
        }
      }
    } catch (error) {
      this.#options.log.debug(
        { err: error },
        'expired static videos could not be listed; trying again',
      );
    }
    this.#metrics.refresh();
  }
}

// The service of faces: upload, state, list and deletion for their owners; state and asset for
// sessions.
import { ServiceError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { wallMs } from '../../base/time.ts';
import type { JobPool } from '../../jobs/job-pool.ts';
import { DEFAULT_LOOK, type FaceLook } from '../../media/face-look.ts';
import { stopFlag } from '../../base/stop-flag.ts';
import { JobRunner } from '../queue/job-runner.ts';
import { openFile, type BlobReader, type BlobStore } from '../store/blobs.ts';
import { whileAway } from '../store/watched-blobs.ts';
import {
  FACE_SERVICE_VERSION,
  type FaceRecord,
  type FaceRecords,
  type FaceStatus,
} from './face-records.ts';
import type { JobQueue, TakenJob } from '../queue/job-queue.ts';
import type { DefaultFace } from './default-faces.ts';
import { DeletedFaces } from './deleted-faces.ts';
import type { RedisStore } from '../store/redis.ts';

/** Result of the task that creates a face (src/jobs/face). */
export type FaceTaskResult =
  | {
      readonly asset: Uint8Array;
      readonly preview: Uint8Array;
      readonly warnings: readonly string[];
    }
  | { readonly error: { readonly code: string; readonly message: string } };

/** A queued face. */
export interface FaceJob {
  readonly faceId: string;
  readonly ownerId: string;
}

/** A face as its owner sees it. */
export interface FaceSummary {
  readonly id: string;
  readonly name: string;
  readonly ownerId: string | undefined;
  readonly serviceVersion: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly status: FaceStatus;
  readonly look: FaceLook;
}

/** Options of Faces. */
export interface FacesOptions {
  readonly store: RedisStore;
  readonly records: FaceRecords;
  readonly blobs: BlobStore;
  /** Drops this server's copies of files below a key. */
  readonly evict: (key: string) => Promise<void>;
  readonly queue: JobQueue<FaceJob>;
  readonly pool: JobPool;
  readonly defaultFaces: readonly DefaultFace[];
  readonly threads: number;
  readonly log: Logger;
}

const MAX_FACES_PER_OWNER = 1000;
/**
 * Time to create a face, which takes 2 s of an idle core. Threads of the lowest priority have waited a
 * minute for one on a machine with ten times as much to do as it has cores.
 */
const FACE_DEADLINE_MS = 180_000;
/** Times that a face is tried when the server stops meanwhile. */
const MAX_ATTEMPTS = 3;
/** A pending face without a job after this time lost it in a crash between two writes. */
const LOST_AFTER_MS = 120_000;
/** Default faces have no date of their own: they show the date of the first release. */
const DEFAULT_FACE_DATE_MS = Date.UTC(2026, 0, 1);

const LOST_FILES =
  'The files of this face are not in the storage of the server. Upload the picture again.';

/** Why a face was given up, for its owner. */
const GAVE_UP = {
  attempts:
    'The face could not be created: the server stopped each time it tried. Upload another picture.',
  files:
    'The face could not be created: the storage of the server failed each time. Upload the picture again.',
};

/** All faces: those of users and the default ones. */
export class Faces {
  readonly #options: FacesOptions;
  readonly #defaults: ReadonlyMap<string, DefaultFace>;
  readonly #runner: JobRunner<FaceJob>;
  readonly #deleted: DeletedFaces;
  readonly #onDelete = new Set<(faceId: string) => void>();

  constructor(options: FacesOptions) {
    const { store, blobs, evict, queue, log, threads } = options;
    this.#options = options;
    this.#deleted = new DeletedFaces(store, {
      forget: async (faceId) => {
        this.#forget(faceId);
        await evict(folderKey(faceId));
      },
      remove: (faceId) => blobs.delete(folderKey(faceId)),
    });
    this.#defaults = new Map(options.defaultFaces.map((face) => [face.id, face]));
    this.#runner = new JobRunner({
      queue,
      log,
      concurrency: threads,
      maxAttempts: MAX_ATTEMPTS,
      work: (job, signal) => this.#create(job, signal),
      giveUp: (job, why) => this.#fail(job.data, GAVE_UP[why]),
    });
  }

  /** Calls `listener` with the id of each face that is deleted, by any server. */
  onDelete(listener: (faceId: string) => void): void {
    this.#onDelete.add(listener);
  }

  /** A face that this owner may use, in any state: its own or a default one. */
  async find(ownerId: string, faceId: string): Promise<FaceSummary | undefined> {
    const fixed = this.#defaults.get(faceId);
    if (fixed) {
      return defaultSummary(fixed);
    }
    const record = await this.#own(ownerId, faceId);
    return record && summary(record);
  }

  /**
   * The same, unless it can never be used.
   * @throws ServiceError INVALID_FACE_ID when there is none, or its making failed
   */
  async require(ownerId: string, faceId: string): Promise<FaceSummary> {
    const face = await this.find(ownerId, faceId);
    if (face === undefined) {
      throw new ServiceError('INVALID_FACE_ID');
    }
    if (face.status === 'failed') {
      const { error } = await this.status(ownerId, faceId);
      throw new ServiceError('INVALID_FACE_ID', `The making of this face failed: ${error ?? ''}`);
    }
    return face;
  }

  /** The owner's own faces, the newest first, then the default ones. */
  async list(ownerId: string): Promise<FaceSummary[]> {
    const own = await this.#options.records.list(ownerId);
    return [...own.map(summary), ...[...this.#defaults.values()].map(defaultSummary)];
  }

  /**
   * Stores the picture and queues the creation of its face. At the owner's limit the oldest one that
   * failed makes room.
   * @throws ServiceError QUEUE_FULL; CONFLICT at the owner's limit
   */
  async create(
    ownerId: string,
    name: string,
    image: Uint8Array,
    look: FaceLook = DEFAULT_LOOK,
  ): Promise<FaceRecord> {
    const { records, blobs, queue } = this.#options;
    if (
      (await records.count(ownerId)) >= MAX_FACES_PER_OWNER &&
      !(await this.#deleteFailed(ownerId))
    ) {
      throw new ServiceError(
        'CONFLICT',
        `You have ${MAX_FACES_PER_OWNER} faces, which is the limit. Delete one first.`,
      );
    }
    const record = await records.create(ownerId, name, look);
    try {
      await blobs.put(uploadKey(record.id), image);
      await queue.enqueue(record.id, { faceId: record.id, ownerId });
    } catch (error) {
      await records.delete(record);
      await this.#deleted.announce(record.id); // where the storage is away, its files follow later
      await blobs.delete(folderKey(record.id)).catch(whileAway(undefined));
      throw error;
    }
    this.#runner.wake();
    return record;
  }

  /** State of a face, with its place in the queue, its error or its warnings. */
  async status(
    ownerId: string,
    faceId: string,
  ): Promise<{
    status: FaceStatus | 'not_found';
    queuePosition?: number;
    error?: string;
    warnings?: readonly string[];
  }> {
    if (this.#defaults.has(faceId)) {
      return { status: 'completed' };
    }
    const record = await this.#own(ownerId, faceId);
    if (!record) {
      return { status: 'not_found' };
    }
    if (record.status === 'failed') {
      return { status: 'failed', error: record.error ?? 'The face could not be created.' };
    }
    if (record.status === 'completed') {
      // The record stays: a network file system that is away for a while brings the files back.
      return (await this.#hasAsset(faceId))
        ? { status: 'completed', warnings: record.warnings }
        : {
            status: 'failed',
            error: LOST_FILES,
          };
    }
    const place = await this.#options.queue.position(faceId);
    if (place !== undefined) {
      return { status: 'pending', queuePosition: place + 1 };
    }
    if (
      record.status === 'pending' &&
      wallMs() - record.updatedAtMs > LOST_AFTER_MS &&
      !(await this.#options.queue.has(faceId))
    ) {
      const error = 'The upload was interrupted. Upload the picture again.';
      await this.#fail({ faceId, ownerId }, error);
      return { status: 'failed', error };
    }
    return { status: record.status };
  }

  /** Renames a face. @returns false when the owner has no such face */
  async rename(ownerId: string, faceId: string, name: string): Promise<boolean> {
    const record = await this.#own(ownerId, faceId);
    return record !== undefined && (await this.#options.records.update(faceId, { name }));
  }

  /**
   * Deletes a face. Running sessions keep its asset.
   * @returns false when the owner has no such face
   */
  async delete(ownerId: string, faceId: string): Promise<boolean> {
    const record = await this.#own(ownerId, faceId);
    if (!record) {
      return false;
    }
    await this.#options.records.delete(record);
    await this.#options.queue.cancel(faceId);
    await this.#deleted.announce(faceId);
    this.#forget(faceId);
    // While the storage is away, the face is gone all the same: its files follow later.
    await this.#options.blobs.delete(folderKey(faceId)).catch(whileAway(undefined));
    return true;
  }

  /** Deletes the oldest face of an owner that failed. @returns false when none did */
  async #deleteFailed(ownerId: string): Promise<boolean> {
    const own = await this.#options.records.list(ownerId);
    const oldest = own.findLast(({ status }) => status === 'failed');
    return oldest !== undefined && (await this.delete(ownerId, oldest.id));
  }

  /** A JPEG of the face at rest; undefined while there is none. */
  async openPreview(ownerId: string, faceId: string): Promise<BlobReader | undefined> {
    const fixed = this.#defaults.get(faceId);
    if (fixed) {
      return await openFile(fixed.previewFile);
    }
    return (
      (await this.#own(ownerId, faceId)) &&
      (await this.#options.blobs.open(`${folderKey(faceId)}/preview.jpg`))
    );
  }

  /**
   * The asset of a face that is completed; undefined when the owner has no such face.
   * @throws ServiceError STORAGE_UNAVAILABLE when its files are not in the storage
   */
  async openAsset(ownerId: string, faceId: string): Promise<BlobReader | undefined> {
    const fixed = this.#defaults.get(faceId);
    if (fixed) {
      return await openFile(fixed.assetFile);
    }
    const reader =
      (await this.#own(ownerId, faceId)) && (await this.#options.blobs.open(assetKey(faceId)));
    if (reader === undefined && (await this.#own(ownerId, faceId)) !== undefined) {
      throw new ServiceError('STORAGE_UNAVAILABLE', LOST_FILES);
    }
    return reader;
  }

  /** Takes up the faces that a server which died was making. */
  async takeOver(deadServerId: string): Promise<void> {
    await this.#runner.takeOver(deadServerId);
  }

  /** Stops the running jobs; the next start takes them up again. */
  async close(): Promise<void> {
    this.#deleted.close();
    await this.#runner.close();
  }

  #forget(faceId: string): void {
    for (const listener of this.#onDelete) {
      listener(faceId);
    }
  }

  /** While the storage is away, the record is believed. */
  async #hasAsset(faceId: string): Promise<boolean> {
    const found = this.#options.blobs.stat(assetKey(faceId));
    return await found.then((stat) => stat !== undefined).catch(whileAway(true));
  }

  async #own(ownerId: string, faceId: string): Promise<FaceRecord | undefined> {
    if (!/^[\w-]{8,64}$/.test(faceId)) {
      return undefined;
    }
    const record = await this.#options.records.find(faceId);
    return record?.ownerId === ownerId ? record : undefined;
  }

  async #create(job: TakenJob<FaceJob>, signal: AbortSignal): Promise<void> {
    const { records, blobs, pool, queue, log } = this.#options;
    const { faceId } = job.data;
    const record = await records.find(faceId);
    if (!record || record.status === 'completed' || record.status === 'failed') {
      return;
    }
    const image = await blobs.get(uploadKey(faceId));
    if (!image) {
      await this.#fail(job.data, 'The uploaded picture was lost. Upload it again.');
      return;
    }
    await records.update(faceId, { status: 'processing' });
    const result = await this.#runTask(image, record, signal, pool);
    if ('error' in result) {
      if (result.error.code === 'INTERNAL_ERROR') {
        log.error({ faceId, reason: result.error.message }, 'a face could not be created');
        throw new Error(result.error.message);
      }
      await this.#fail(job.data, result.error.message);
      return;
    }
    if (!(await queue.extend(faceId))) {
      return; // the face was deleted, or another server makes it
    }
    await blobs.put(assetKey(faceId), result.asset);
    await blobs.put(`${folderKey(faceId)}/preview.jpg`, result.preview);
    const kept = await records.update(faceId, { status: 'completed', warnings: result.warnings });
    await blobs.delete(kept ? uploadKey(faceId) : folderKey(faceId));
  }

  async #runTask(
    image: Uint8Array,
    { name, look }: FaceRecord,
    signal: AbortSignal,
    pool: JobPool,
  ): Promise<FaceTaskResult> {
    try {
      // Transferred unless something else shares its memory: copying 20 MB would block this thread
      // for 20 ms.
      const ownsMemory =
        image.length === image.buffer.byteLength && image.buffer instanceof ArrayBuffer;
      const transfer = ownsMemory ? [image.buffer] : [];
      const stop = stopFlag();
      const options = { timeoutMs: FACE_DEADLINE_MS, signal, transfer, stop };
      return await pool.run<FaceTaskResult>('face', { image, name, look, stop }, options);
    } catch (error) {
      if (signal.aborted || (error as Error).name !== 'AbortError') {
        throw error;
      }
      return {
        error: {
          code: 'TIMEOUT',
          message: 'This picture took too long to process. Send a smaller or simpler one.',
        },
      };
    }
  }

  async #fail({ faceId }: FaceJob, error: string): Promise<void> {
    await this.#options.records.update(faceId, { status: 'failed', error });
    // A picture that cannot be deleted must not keep its job alive.
    await this.#options.blobs.delete(uploadKey(faceId)).catch(whileAway(undefined));
  }
}

const folderKey = (faceId: string): string => `faces/${faceId}`;
const uploadKey = (faceId: string): string => `faces/${faceId}/upload`;
const assetKey = (faceId: string): string => `faces/${faceId}/asset.face`;

const summary = (record: FaceRecord): FaceSummary => record;

const defaultSummary = ({ id, name }: DefaultFace): FaceSummary => ({
  id,
  name,
  ownerId: undefined,
  serviceVersion: FACE_SERVICE_VERSION,
  createdAtMs: DEFAULT_FACE_DATE_MS,
  updatedAtMs: DEFAULT_FACE_DATE_MS,
  status: 'completed',
  look: DEFAULT_LOOK,
});

// Records of static videos in Redis: what was asked for, and the state of the rendering. The files
// are in the blob store.
import type { AudioFormat, StaticRequest } from './static-videos.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import { UPDATE_EXISTING } from '../store/scripts.ts';

/** The request without the audio. */
export type StaticOrder = Omit<StaticRequest, 'audio'>;

/** A static video: its request and its state. */
export interface StaticRecord {
  readonly order: StaticOrder;
  readonly status: 'queued' | 'rendering' | 'completed' | 'failed';
  /** Why it failed, for its owner. */
  readonly error: string | undefined;
  readonly durationSeconds: number;
  /** Video frames in all. */
  readonly frames: number;
  /** HLS segments that can be fetched. */
  readonly segments: number;
  readonly createdMs: number;
}

/** The fields that change while a video is rendered. */
export type RecordChange = Partial<Pick<StaticRecord, 'status' | 'error' | 'segments'>>;

/**
 * The record of an unfinished video expires this long after the request. It is rendered long
 * before.
 */
const PENDING_TTL_SECONDS = 7 * 86_400;

/** The records of all static videos, by id. */
export class StaticRecords {
  readonly #store: RedisStore;
  readonly #ttlSeconds: number;

  constructor(store: RedisStore, ttlSeconds: number) {
    this.#store = store;
    this.#ttlSeconds = ttlSeconds;
  }

  async create(
    id: string,
    {
      order,
      durationSeconds,
      frames,
      createdMs,
    }: Pick<StaticRecord, 'order' | 'durationSeconds' | 'frames' | 'createdMs'>,
  ): Promise<void> {
    const {
      ownerId,
      keyId,
      keyName,
      faceId,
      emotion,
      audioFormat,
      sampleRate,
      channelCount,
      startFrame,
    } = order;
    const key = keys.staticVideo(id);
    await this.#store.use((client) =>
      client
        .multi()
        .hset(key, {
          ownerId,
          keyId,
          keyName,
          faceId,
          emotion,
          audioFormat,
          sampleRate,
          channelCount,
          startFrame,
          status: 'queued',
          segments: 0,
          durationSeconds,
          frames,
          createdMs,
        })
        .expire(key, PENDING_TTL_SECONDS)
        .exec(),
    );
  }

  async find(id: string): Promise<StaticRecord | undefined> {
    const fields = await this.#store.use((client) => client.hgetall(keys.staticVideo(id)));
    return fields['ownerId'] === undefined ? undefined : toRecord(fields);
  }

  async exists(id: string): Promise<boolean> {
    return (await this.#store.use((client) => client.exists(keys.staticVideo(id)))) === 1;
  }

  /**
   * Whether this server is to look for files of expired videos: one server in each interval, since
   * the storage is the same for all.
   */
  async takeSweep(serverId: string, intervalMs: number): Promise<boolean> {
    // A little less than the interval: the server that looked last looks again.
    const leaseMs = Math.round(intervalMs * 0.9);
    const taken = await this.#store.use((client) =>
      client.set(keys.staticSweep(), serverId, 'PX', leaseMs, 'NX'),
    );
    return taken === 'OK';
  }

  /**
   * Changes a record, if it still exists. A finished or failed video expires after the time to
   * live.
   */
  async update(id: string, { status, error, segments }: RecordChange): Promise<void> {
    const key = keys.staticVideo(id);
    const fields: (string | number)[] = [];
    if (status !== undefined) {
      fields.push('status', status);
    }
    if (error !== undefined) {
      fields.push('error', error);
    }
    if (segments !== undefined) {
      fields.push('segments', segments);
    }
    await this.#store.run(UPDATE_EXISTING, [key], fields);
    if (status === 'completed' || status === 'failed') {
      await this.#store.use((client) => client.expire(key, this.#ttlSeconds));
    }
  }

  async delete(id: string): Promise<void> {
    await this.#store.use((client) => client.del(keys.staticVideo(id)));
  }
}

function toRecord(fields: Record<string, string>): StaticRecord {
  const text = (name: string): string => fields[name] ?? '';
  return {
    order: {
      ownerId: text('ownerId'),
      keyId: text('keyId'),
      keyName: text('keyName'),
      faceId: text('faceId'),
      emotion: text('emotion'),
      audioFormat: text('audioFormat') as AudioFormat,
      sampleRate: Number(text('sampleRate')),
      channelCount: Number(text('channelCount')) as 1 | 2,
      startFrame: Number(text('startFrame')),
    },
    status: text('status') as StaticRecord['status'],
    error: fields['error'],
    durationSeconds: Number(text('durationSeconds')),
    frames: Number(text('frames')),
    segments: Number(text('segments')),
    createdMs: Number(text('createdMs')),
  };
}

// Records of faces in Redis: owner and state. The assets are in the blob store.
import { newUuid } from '../../base/ids.ts';
import { wallMs } from '../../base/time.ts';
import { DEFAULT_LOOK, type FaceLook } from '../../media/face-look.ts';
import { keys } from '../store/keys.ts';
import type { RedisStore } from '../store/redis.ts';
import { UPDATE_EXISTING } from '../store/scripts.ts';

/** Queued, being created, usable, failed. */
export type FaceStatus = 'pending' | 'processing' | 'completed' | 'failed';

/** A user's face. */
export interface FaceRecord {
  readonly id: string;
  readonly ownerId: string;
  readonly name: string;
  readonly status: FaceStatus;
  /** Why it failed, for its owner. */
  readonly error: string | undefined;
  readonly warnings: readonly string[];
  readonly look: FaceLook;
  /** Version of the face model. Assets of another version must be created again. */
  readonly serviceVersion: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Version of the face model and of its assets (the format version in src/media/face-asset.ts). */
export const FACE_SERVICE_VERSION = 1;

/** The records of all users' faces. */
export class FaceRecords {
  readonly #store: RedisStore;

  constructor(store: RedisStore) {
    this.#store = store;
  }

  /** Creates the record of a face in the state `pending`. */
  async create(ownerId: string, name: string, look: FaceLook): Promise<FaceRecord> {
    const now = wallMs();
    const record: FaceRecord = {
      id: newUuid(),
      ownerId,
      name,
      status: 'pending',
      error: undefined,
      warnings: [],
      look,
      serviceVersion: FACE_SERVICE_VERSION,
      createdAtMs: now,
      updatedAtMs: now,
    };
    await this.#store.use((client) =>
      client.hset(keys.face(record.id), {
        ownerId,
        name,
        status: record.status,
        warnings: '[]',
        look: JSON.stringify(look),
        serviceVersion: FACE_SERVICE_VERSION,
        createdAt: now,
        updatedAt: now,
      }),
    );
    await this.#store.use((client) => client.zadd(keys.facesOf(ownerId), now, record.id));
    return record;
  }

  /** A face by its id; undefined when there is none. */
  async find(id: string): Promise<FaceRecord | undefined> {
    const fields = await this.#store.use((client) => client.hgetall(keys.face(id)));
    return fields['ownerId'] === undefined ? undefined : toRecord(id, fields);
  }

  /** Changes a record. @returns false when it was deleted meanwhile */
  async update(
    id: string,
    change: Partial<Pick<FaceRecord, 'name' | 'status' | 'error' | 'warnings'>>,
  ): Promise<boolean> {
    const fields: (string | number)[] = ['updatedAt', wallMs()];
    if (change.name) {
      fields.push('name', change.name);
    }
    if (change.status) {
      fields.push('status', change.status);
    }
    if (change.error) {
      fields.push('error', change.error);
    }
    if (change.warnings) {
      fields.push('warnings', JSON.stringify(change.warnings));
    }
    return (await this.#store.run(UPDATE_EXISTING, [keys.face(id)], fields)) === 1;
  }

  /** The owner's faces, the newest first. */
  async list(ownerId: string): Promise<FaceRecord[]> {
    const ids = await this.#store.use((client) => client.zrevrange(keys.facesOf(ownerId), 0, -1));
    const found = await Promise.all(ids.map((id) => this.find(id)));
    return found.filter((record) => record !== undefined);
  }

  /** Number of faces of an owner. */
  async count(ownerId: string): Promise<number> {
    return await this.#store.use((client) => client.zcard(keys.facesOf(ownerId)));
  }

  /** Deletes a record. */
  async delete(record: FaceRecord): Promise<void> {
    await this.#store.use((client) => client.del(keys.face(record.id)));
    await this.#store.use((client) => client.zrem(keys.facesOf(record.ownerId), record.id));
  }
}

function toRecord(id: string, fields: Record<string, string>): FaceRecord {
  return {
    id,
    ownerId: fields['ownerId'] ?? '',
    name: fields['name'] ?? '',
    status: (fields['status'] ?? 'pending') as FaceStatus,
    error: fields['error'],
    warnings: JSON.parse(fields['warnings'] ?? '[]') as string[],
    // A face of an older server has none.
    look: { ...DEFAULT_LOOK, ...(JSON.parse(fields['look'] ?? '{}') as Partial<FaceLook>) },
    serviceVersion: Number(fields['serviceVersion']),
    createdAtMs: Number(fields['createdAt']),
    updatedAtMs: Number(fields['updatedAt']),
  };
}

// A cache of face assets in shared memory: one copy for all sessions of a face, the least recently
// used dropped first.
import { ServiceError } from '../../base/errors.ts';
import type { FaceStatus } from './face-records.ts';
import type { Faces } from './faces.ts';

/** A face that its owner may use. */
export interface ResolvedFace {
  readonly faceId: string;
  readonly status: FaceStatus;
  /** The asset (src/media/face-asset.ts). @throws ServiceError FACE_NOT_READY, INVALID_FACE_ID */
  loadAsset(): Promise<SharedArrayBuffer>;
}

/** The assets of all faces, cached. */
export class FaceCatalog {
  readonly #faces: Faces;
  readonly #maxBytes: number;
  /** By face id, in order of their last use, the oldest first. */
  readonly #loaded = new Map<string, Promise<SharedArrayBuffer>>();
  readonly #sizes = new Map<string, number>();

  constructor(faces: Faces, maxMegabytes = 256) {
    this.#faces = faces;
    this.#maxBytes = maxMegabytes * 1024 * 1024;
    faces.onDelete((faceId) => this.#forget(faceId));
  }

  /** The face; undefined when the owner has no such face. */
  async resolveFace(ownerId: string, faceId: string): Promise<ResolvedFace | undefined> {
    const face = await this.#faces.find(ownerId, faceId);
    if (!face) {
      return undefined;
    }
    return {
      faceId,
      status: face.status,
      loadAsset: () => this.#load(ownerId, faceId, face.status),
    };
  }

  /** The asset of a face. @throws ServiceError INVALID_FACE_ID, FACE_NOT_READY */
  async load(ownerId: string, faceId: string): Promise<SharedArrayBuffer> {
    const face = await this.resolveFace(ownerId, faceId);
    if (!face) {
      throw new ServiceError('INVALID_FACE_ID');
    }
    return await face.loadAsset();
  }

  #load(ownerId: string, faceId: string, status: FaceStatus): Promise<SharedArrayBuffer> {
    if (status !== 'completed') {
      return Promise.reject(new ServiceError('FACE_NOT_READY'));
    }
    const loaded = this.#loaded.get(faceId) ?? this.#read(ownerId, faceId);
    this.#loaded.delete(faceId);
    this.#loaded.set(faceId, loaded);
    return loaded;
  }

  async #read(ownerId: string, faceId: string): Promise<SharedArrayBuffer> {
    try {
      const reader = await this.#faces.openAsset(ownerId, faceId);
      if (!reader) {
        throw new ServiceError('INVALID_FACE_ID');
      }
      try {
        const shared = new SharedArrayBuffer(reader.sizeBytes);
        const bytes = new Uint8Array(shared);
        for (let at = 0; at < bytes.length;) {
          const got = await reader.read(bytes.subarray(at), at);
          if (got === 0) {
            throw new Error('a face asset is truncated');
          }
          at += got;
        }
        this.#sizes.set(faceId, bytes.length);
        this.#makeRoom(faceId);
        return shared;
      } finally {
        await reader.close();
      }
    } catch (error) {
      this.#forget(faceId);
      throw error;
    }
  }

  /**
   * Drops assets until the limit holds. Those that sessions use stay in memory without being
   * counted here.
   */
  #makeRoom(keep: string): void {
    let total = [...this.#sizes.values()].reduce((sum, size) => sum + size, 0);
    for (const faceId of this.#loaded.keys()) {
      if (total <= this.#maxBytes) {
        return;
      }
      const size = this.#sizes.get(faceId);
      if (faceId === keep || size === undefined) {
        continue;
      }
      this.#forget(faceId);
      total -= size;
    }
  }

  #forget(faceId: string): void {
    this.#loaded.delete(faceId);
    this.#sizes.delete(faceId);
  }
}

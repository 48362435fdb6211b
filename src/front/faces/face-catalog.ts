// A cache of face assets in shared memory: one copy for all sessions of a face, the least recently
// used dropped first.
import { ServiceError } from '../../base/errors.ts';
import type { Faces } from './faces.ts';

/** A cached asset. */
interface CachedAsset {
  readonly asset: Promise<SharedArrayBuffer>;
  /** 0 while it is read. */
  bytes: number;
}

/** The assets of all faces, cached. */
export class FaceCatalog {
  readonly #faces: Faces;
  readonly #maxBytes: number;
  /** By face id, in order of their last use, the oldest first. */
  readonly #cached = new Map<string, CachedAsset>();

  constructor(faces: Faces, maxMegabytes = 256) {
    this.#faces = faces;
    this.#maxBytes = maxMegabytes * 1024 * 1024;
    faces.onDelete((faceId) => this.#cached.delete(faceId));
  }

  /**
   * The asset of a face (src/media/face-asset.ts).
   * @throws ServiceError INVALID_FACE_ID, FACE_NOT_READY
   */
  async load(ownerId: string, faceId: string): Promise<SharedArrayBuffer> {
    const { status } = await this.#faces.require(ownerId, faceId);
    if (status !== 'completed') {
      throw new ServiceError('FACE_NOT_READY');
    }
    const cached = this.#cached.get(faceId) ?? this.#add(ownerId, faceId);
    this.#cached.delete(faceId);
    this.#cached.set(faceId, cached);
    return await cached.asset;
  }

  /** The face may be deleted while it is read: its entry, and what that counts, are then gone. */
  #add(ownerId: string, faceId: string): CachedAsset {
    const cached: CachedAsset = { asset: this.#read(ownerId, faceId), bytes: 0 };
    cached.asset.then(
      ({ byteLength }) => {
        cached.bytes = byteLength;
        this.#makeRoom(cached);
      },
      () => {
        if (this.#cached.get(faceId) === cached) {
          this.#cached.delete(faceId);
        }
      },
    );
    return cached;
  }

  async #read(ownerId: string, faceId: string): Promise<SharedArrayBuffer> {
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
      return shared;
    } finally {
      await reader.close();
    }
  }

  /**
   * Drops assets until the limit holds. Those that sessions use stay in memory without being
   * counted here.
   */
  #makeRoom(keep: CachedAsset): void {
    let total = [...this.#cached.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    for (const [faceId, cached] of this.#cached) {
      if (total <= this.#maxBytes) {
        return;
      }
      if (cached !== keep && cached.bytes > 0) {
        this.#cached.delete(faceId);
        total -= cached.bytes;
      }
    }
  }
}

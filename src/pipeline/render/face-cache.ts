// The faces that a thread has parsed, so that sessions with the same face share one.
import { type FaceAsset, native } from '../../native/addon.ts';

/** Beyond this the face used longest ago is let go; its sessions keep it as long as they live. About 1 MB each. */
const MAX_FACES = 32;

/**
 * Keyed by face id, not by the memory: memory that crosses threads arrives as a new object each time, and an asset holds on to its bytes, so
 * that a WeakMap from one to the other would never let go of either.
 */
export class FaceCache {
  /** In order of last use, the oldest first. */
  readonly #assets = new Map<string, FaceAsset>();
  readonly #coming = new Map<string, Promise<void>>();

  get size(): number {
    return this.#assets.size;
  }
  has(faceId: string): boolean {
    return this.#assets.has(faceId);
  }

  /** Makes `take` quick: 4 ms of work for another thread, once a face. @throws Error when malformed */
  async load(faceId: string, bytes: ArrayBufferLike): Promise<void> {
    if (this.has(faceId)) {
      return;
    }
    let coming = this.#coming.get(faceId);
    if (coming === undefined) {
      const asset = new native.FaceAsset(new Uint8Array(bytes), true);
      coming = asset
        .prepare()
        .then(() => {
          this.#put(faceId, asset);
        })
        .finally(() => {
          this.#coming.delete(faceId);
        });
      this.#coming.set(faceId, coming);
    }
    await coming;
  }

  /** @param bytes the asset's file, the same for the same `faceId` always. @throws Error when malformed */
  take(faceId: string, bytes: ArrayBufferLike): FaceAsset {
    const asset = this.#assets.get(faceId) ?? new native.FaceAsset(new Uint8Array(bytes));
    this.#put(faceId, asset);
    return asset;
  }

  #put(faceId: string, asset: FaceAsset): void {
    this.#assets.delete(faceId);
    this.#assets.set(faceId, asset);
    if (this.#assets.size > MAX_FACES) {
      this.#assets.delete(this.#assets.keys().next().value!);
    }
  }
}

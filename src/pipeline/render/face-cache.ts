// The parsed faces of a thread. Sessions with the same face share one.
import { type FaceAsset, native } from '../../native/addon.ts';

/** Beyond this the least recently used face is dropped; its sessions keep it. About 1 MB each. */
const MAX_FACES = 32;

/**
 * Keyed by face id, not by the memory: memory that crosses threads is a new object each time. A
 * WeakMap from the memory to the asset would never free either, since an asset keeps its bytes.
 */
export class FaceCache {
  /** The least recently used first. */
  readonly #assets = new Map<string, FaceAsset>();
  readonly #loading = new Map<string, Promise<void>>();

  get size(): number {
    return this.#assets.size;
  }
  has(faceId: string): boolean {
    return this.#assets.has(faceId);
  }

  /**
   * Parses a face on another thread, 4 ms, so that `take` is quick.
   * @throws Error when it is malformed
   */
  async load(faceId: string, bytes: ArrayBufferLike): Promise<void> {
    if (this.has(faceId)) {
      return;
    }
    let loading = this.#loading.get(faceId);
    if (loading === undefined) {
      const asset = new native.FaceAsset(new Uint8Array(bytes), true);
      loading = asset
        .prepare()
        .then(() => {
          this.#put(faceId, asset);
        })
        .finally(() => {
          this.#loading.delete(faceId);
        });
      this.#loading.set(faceId, loading);
    }
    await loading;
  }

  /**
   * Gives the face, and parses it here if `load` has not.
   * @param bytes the asset file, always the same for the same `faceId`
   * @throws Error when it is malformed
   */
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

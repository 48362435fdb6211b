// The job-pool task that makes a face asset from a portrait.
import { checkStop, Stopped, type StopFlag } from '../../base/stop-flag.ts';
import type { FaceLook } from '../../media/face-look.ts';
import { createFace } from './create-face.ts';
import { FaceLandmarker } from './detect/face-landmarker.ts';
import { FaceError, type FaceErrorCode, type FaceWarning } from './face-error.ts';

/** What the task gets: plain data, cloned between threads. */
export interface CreateFaceTask {
  /** An image file as uploaded. */
  readonly image: Uint8Array;
  readonly name: string;
  readonly look?: FaceLook | undefined;
  /** Ends the task between two steps. */
  readonly stop?: StopFlag;
}

/** A face asset and its preview, or the reason why there is none. */
export type CreateFaceResult =
  | {
      readonly asset: Uint8Array;
      readonly warnings: readonly FaceWarning[];
      readonly preview: Uint8Array;
    }
  | {
      readonly error: { readonly code: FaceErrorCode | 'INTERNAL_ERROR'; readonly message: string };
    };

let landmarker: Promise<FaceLandmarker> | undefined;

/**
 * Rejects only when it was stopped: an error loses its class and its fields when it is posted between
 * threads.
 */
export default async function createFaceTask({
  image,
  name,
  look,
  stop,
}: CreateFaceTask): Promise<CreateFaceResult> {
  try {
    // Before the first check: a thread that ends while it loads models aborts the process.
    const loaded = await (landmarker ??= FaceLandmarker.load());
    const check = (): void => {
      checkStop(stop);
    };
    check();
    return await createFace(image, { name, look, landmarker: loaded, check });
  } catch (error) {
    if (error instanceof Stopped) {
      throw error;
    }
    if (error instanceof FaceError) {
      return { error: { code: error.code, message: error.message } };
    }
    landmarker = undefined; // try again next time: the model files may have been added
    return {
      error: {
        code: 'INTERNAL_ERROR',
        message: error instanceof Error ? error.message : String(error),
      },
    };
  }
}

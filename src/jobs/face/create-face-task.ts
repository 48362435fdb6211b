// The task that a thread of the jobs pool runs: one portrait in, a face asset or a refusal out.
import { createFace } from './create-face.ts';
import { FaceLandmarker } from './detect/face-landmarker.ts';
import { FaceError, type FaceErrorCode, type FaceWarning } from './face-error.ts';

export interface CreateFaceTask {
  readonly image: Uint8Array;
  readonly name: string;
}

export type CreateFaceResult =
  | {
      readonly asset: Uint8Array;
      readonly warnings: readonly FaceWarning[];
      readonly preview: Uint8Array;
    }
  | {
      readonly error: { readonly code: FaceErrorCode | 'INTERNAL_ERROR'; readonly message: string };
    };

let finder: Promise<FaceLandmarker> | undefined;

/** Never rejects: an error that is posted between threads loses its class and its fields. */
export default async function createFaceTask({
  image,
  name,
}: CreateFaceTask): Promise<CreateFaceResult> {
  try {
    finder ??= FaceLandmarker.load();
    return await createFace(image, { name, landmarker: await finder });
  } catch (error) {
    if (error instanceof FaceError) {
      return { error: { code: error.code, message: error.message } };
    }
    finder = undefined; // perhaps the model files come later
    return {
      error: {
        code: 'INTERNAL_ERROR',
        message: error instanceof Error ? error.message : String(error),
      },
    };
  }
}

// The error of a face asset that cannot be used.

/** The bytes are not a usable face asset; the message says why. */
export class FaceAssetError extends Error {
  override readonly name = 'FaceAssetError';
}

/** @throws FaceAssetError unless `condition` holds */
export const demand = (condition: boolean, what: string): void => {
  if (!condition) {
    throw new FaceAssetError(`not a usable face asset: ${what}`);
  }
};

// The size of the picture in a face asset, without reading the rest of it.
import type { PictureSize } from './face-look.ts';
import { PICTURE_SIZE } from './picture.ts';

/** Least width and height, pixels. */
export const MIN_SIDE = 128;
/** Largest width and height, pixels. */
export const MAX_SIDE = 1280;
/** Of the header that holds them: see face-asset.ts. */
const PREFIX_BYTES = 64;

/** Whether a picture may have this width or height. */
export const isSide = (n: number): boolean =>
  Number.isInteger(n) && n % 16 === 0 && n >= MIN_SIDE && n <= MAX_SIDE;

/**
 * The size of its picture, from the header alone. That of PICTURE_SIZE for bytes that are no asset:
 * who reads the rest says what is wrong with them.
 */
export function assetSize(bytes: SharedArrayBuffer): PictureSize {
  const usual = { width: PICTURE_SIZE, height: PICTURE_SIZE };
  if (bytes.byteLength < PREFIX_BYTES) {
    return usual;
  }
  const view = new DataView(bytes);
  const [width, height] = [view.getUint16(12, true), view.getUint16(14, true)];
  return isSide(width) && isSide(height) ? { width, height } : usual;
}

// A picture: 8-bit I420 (planes Y, U, V; chroma halved both ways) in one contiguous buffer.

/** Width and height of every picture that is sent, in pixels. */
export const PICTURE_SIZE = 512;

/** Bytes of a picture. */
export const i420Bytes = (width: number, height: number): number => (width * height * 3) / 2;

/**
 * Number of macroblocks of 16x16 luma pixels. A dirty map has one byte for each: 1 where this frame
 * may differ from the one before.
 */
export const macroblocks = (width: number, height: number): number =>
  Math.ceil(width / 16) * Math.ceil(height / 16);

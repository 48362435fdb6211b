// A picture: 8-bit I420 (planes Y, U, V; chroma halved both ways) in one contiguous buffer.

export const PICTURE_SIZE = 512;

export const i420Bytes = (width: number, height: number): number => (width * height * 3) / 2;

/** Macroblocks of 16x16 luma pixels: one byte each in a dirty map, 1 where this frame may differ from the one before. */
export const macroblocks = (width: number, height: number): number =>
  Math.ceil(width / 16) * Math.ceil(height / 16);

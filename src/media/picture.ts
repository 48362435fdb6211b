// A picture: 8-bit I420 (planes Y, U, V; chroma halved both ways) in one contiguous buffer.
import type { PictureSize } from './face-look.ts';

/** Width and height of the picture of a face, unless another size was chosen, in pixels. */
export const PICTURE_SIZE = 512;

/** Pixels of the largest picture of a face. */
export const LARGEST_PICTURE = 1280 * 720;

/** Bytes of a picture. */
export const i420Bytes = (width: number, height: number): number => (width * height * 3) / 2;

/**
 * What a session with pictures of this size costs, in sessions with pictures of PICTURE_SIZE
 * squared. Measured with session-cost.ts: 720x720 1.6, 576x1024 1.3, 1280x720 1.7 and 720x1280 1.8 of
 * the cost of 512x512. The head fills the shorter side, and what is beside it changes little.
 */
export const pictureWeight = ({ width, height }: PictureSize): number =>
  0.38 + (0.5 * Math.min(width, height) ** 2 + 0.12 * width * height) / PICTURE_SIZE ** 2;

/**
 * The bitrate for pictures of this size where those of PICTURE_SIZE squared get `kbps`. It grows as
 * the sides do: what a larger picture adds is background for the most part, which costs few bits.
 */
export const scaledBitrate = (kbps: number, { width, height }: PictureSize): number =>
  Math.round(kbps * ((width * height) / PICTURE_SIZE ** 2) ** 0.5);

/**
 * Number of macroblocks of 16x16 luma pixels. A dirty map has one byte for each: 0 where this frame
 * is as the one before, 1 where it may differ, BLOCK_SHIFTED where it only moved.
 */
export const macroblocks = (width: number, height: number): number =>
  Math.ceil(width / 16) * Math.ceil(height / 16);

/**
 * In a dirty map: the block shows what the frame before has at its motion vector. The picture has
 * old pixels there until the block is drawn again: as it moves next, or after three frames.
 */
export const BLOCK_SHIFTED = 2;

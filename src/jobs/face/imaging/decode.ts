// Decodes an uploaded image to upright sRGB pixels of bounded size. Accepts JPEG, PNG and WebP
// only.
import sharp, { type OutputInfo, type Sharp } from 'sharp';
import { FaceError } from '../face-error.ts';
import type { RgbImage } from './image.ts';

/** Largest file, bytes. */
export const MAX_IMAGE_BYTES = 32 << 20;
/** Largest picture, pixels: those of cameras "of 50 megapixels" have up to 51.2 million. */
export const MAX_IMAGE_PIXELS = 52_000_000;

/**
 * Longest side after scaling, pixels. A face that takes a tenth of the width still has 300 pixels,
 * as many as the 512-pixel asset can show.
 */
const WORKING_SIDE = 3072;
/** Least shorter side, pixels. */
const MIN_SIDE = 128;
/** Background of transparent pixels: the light grey of a studio wall. */
const BACKDROP = { r: 200, g: 202, b: 206 };
/** The end marker of a JPEG (EOI). */
const JPEG_END = Buffer.from([0xff, 0xd9]);
/**
 * What libjpeg says of scans that it could not read, or that ended early: it goes on all the same,
 * with grey or shifted blocks. Its other warnings concern headers, and a few bytes between segments.
 */
const DAMAGED_SCAN =
  /premature end|bad (?:huffman|arithmetic) code|instead of RST|\d{3} extraneous .* 0x(?:c4|d9|da)/i;
/** What sharp says of a picture beyond its limits of pixels and time. */
const TOO_LARGE = /pixel limit|too large|timeout/i;
/** Time limit: a crafted file with thousands of progressive scans decodes for minutes. */
const DECODE_SECONDS = 20;

// Use one core per job. A cache of decoded uploads would only hold memory.
sharp.concurrency(1);
sharp.cache(false);

interface Signature {
  readonly name: string;
  readonly matches: (head: string) => boolean;
}

const startsWith =
  (...magics: string[]) =>
  (head: string): boolean =>
    magics.some((magic) => head.startsWith(magic));

const FORMATS: readonly Signature[] = [
  { name: 'jpeg', matches: startsWith('\xff\xd8\xff') },
  { name: 'png', matches: startsWith('\x89PNG\r\n\x1a\n') },
  { name: 'webp', matches: (head) => head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP' },
];

/** Image formats that are recognised but not supported, so that the error can say what to do. */
const OTHER_IMAGES: readonly Signature[] = [
  {
    name: 'gif bmp tiff ico psd pdf',
    matches: startsWith('GIF8', 'BM', 'II*\0', 'MM\0*', '\0\0\x01\0', '8BPS', '%PDF', '%!PS'),
  },
  { name: 'jxl', matches: startsWith('\xff\x0a', '\0\0\0\x0cJXL') },
  {
    name: 'heif avif',
    matches: (head) => /^ftyp(?:heic|heix|hevc|mif1|msf1|avif|avis)/.test(head.slice(4)),
  },
  {
    name: 'svg',
    matches: (head) =>
      /^\s*<(?:\?xml|svg|!doctype svg|!--)/i.test(head.replace(/^\xef\xbb\xbf/, '')),
  },
];

/**
 * Decodes an image file. Of an animation it takes the first frame.
 * @returns the picture upright (EXIF orientation applied), in sRGB, on a grey background where it
 * was transparent, with its longer side at most WORKING_SIDE pixels
 * @throws FaceError
 */
export async function decodeImage(bytes: Uint8Array): Promise<RgbImage> {
  const expected = sniff(bytes);
  if (bytes.length > MAX_IMAGE_BYTES) {
    throw new FaceError(
      'IMAGE_TOO_LARGE',
      `The image file is larger than ${MAX_IMAGE_BYTES >> 20} MiB. Scale the picture down.`,
    );
  }
  const input = open(bytes);
  const { format, width, height } = await input.metadata().catch(refuse);
  if (format !== expected) {
    throw new FaceError('NOT_AN_IMAGE');
  }
  if (width * height > MAX_IMAGE_PIXELS) {
    throw new FaceError('IMAGE_TOO_LARGE');
  }
  if (Math.min(width, height) < MIN_SIDE) {
    throw new FaceError('IMAGE_TOO_SMALL');
  }
  const { data, info } = await (format === 'jpeg' ? pixelsOfJpeg(bytes) : pixels(input)).catch(
    refuse,
  );
  return {
    width: info.width,
    height: info.height,
    data: info.channels === 3 ? data : greyToRgb(data),
  };
}

const open = (bytes: Uint8Array, failOn: 'error' | 'warning' = 'error'): Sharp =>
  sharp(bytes, { failOn, limitInputPixels: MAX_IMAGE_PIXELS, sequentialRead: true, pages: 1 });

/** The upright pixels, 8 bits a channel. */
const pixels = (input: Sharp): Promise<{ data: Buffer; info: OutputInfo }> =>
  input
    .autoOrient()
    .resize({
      width: WORKING_SIDE,
      height: WORKING_SIDE,
      fit: 'inside',
      withoutEnlargement: true,
      kernel: 'lanczos3',
    })
    .flatten({ background: BACKDROP })
    .toColourspace('srgb')
    .removeAlpha()
    .raw({ depth: 'uchar' })
    .timeout({ seconds: DECODE_SECONDS })
    .toBuffer({ resolveWithObject: true });

/**
 * The pixels of a JPEG whose scans are whole. A missing end marker is added: whether scans lack
 * something, the decoder tells.
 */
async function pixelsOfJpeg(file: Uint8Array): ReturnType<typeof pixels> {
  const hasEnd = JPEG_END.equals(file.subarray(-JPEG_END.length));
  const bytes = hasEnd ? file : Buffer.concat([file, JPEG_END]);
  try {
    return await pixels(open(bytes, 'warning'));
  } catch (error) {
    if (DAMAGED_SCAN.test(String(error)) || TOO_LARGE.test(String(error))) {
      throw error;
    }
    return await pixels(open(bytes));
  }
}

/**
 * The format by the file signature. The decoder must agree with it.
 * @throws FaceError when it is not a supported one
 */
function sniff(bytes: Uint8Array): string {
  const head = Buffer.from(bytes.subarray(0, 256)).toString('latin1');
  const format = FORMATS.find(({ matches }) => matches(head));
  if (format) {
    return format.name;
  }
  throw new FaceError(
    OTHER_IMAGES.some(({ matches }) => matches(head)) ? 'UNSUPPORTED_FORMAT' : 'NOT_AN_IMAGE',
  );
}

/** Maps an error of the decoder to a FaceError. */
function refuse(error: unknown): never {
  const text = error instanceof Error ? error.message : String(error);
  if (TOO_LARGE.test(text)) {
    throw new FaceError('IMAGE_TOO_LARGE');
  }
  throw new FaceError('IMAGE_DAMAGED');
}

function greyToRgb(grey: Uint8Array): Uint8Array {
  const rgb = new Uint8Array(grey.length * 3);
  for (let i = 0; i < grey.length; i++) {
    rgb.fill(grey[i]!, i * 3, i * 3 + 3);
  }
  return rgb;
}

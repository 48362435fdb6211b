// Uploaded pictures, as far as their pixels.
import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import { decodeImage } from '../../../src/jobs/face/imaging/decode.ts';
import { FaceError } from '../../../src/jobs/face/face-error.ts';
import type { FuzzTarget } from '../engine/target.ts';

/**
 * Puts the right checksum behind each chunk of a PNG file: with a wrong one nothing inside of it is
 * read.
 */
function mendPng(data: Buffer): void {
  if (data.toString('latin1', 1, 4) !== 'PNG') {
    return;
  }
  for (let at = 8; at + 12 <= data.length;) {
    const end = at + 8 + data.readUInt32BE(at);
    if (end + 4 > data.length) {
      return;
    }
    data.writeUInt32BE(crc32(data.subarray(at + 4, end)), end);
    at = end + 4;
  }
}

export const target: FuzzTarget = {
  maxBytes: 16 * 1024,
  // A few bytes can stand for 52 megapixels, which are decoded in less than a second.
  budget: { leastMs: 4000, per64KiBMs: 4000 },
  words: [
    '\xff\xd8\xff',
    '\x89PNG\r\n\x1a\n',
    'RIFF',
    'WEBP',
    'VP8 ',
    'VP8L',
    'VP8X',
    'ANIM',
    'IHDR',
    'IDAT',
    'PLTE',
    'tRNS',
    'eXIf',
    'Exif\0\0',
    '\xff\xc0',
    '\xff\xc2',
    '\xff\xda',
    '\xff\xe1',
    'II*\0',
    'MM\0*',
  ],
  async run(data) {
    mendPng(data);
    try {
      const { width, height, data: pixels } = await decodeImage(data);
      assert.equal(pixels.length, width * height * 3);
      assert.ok(Math.max(width, height) <= 3072 && width > 0 && height > 0, `${width} x ${height}`);
    } catch (error) {
      if (!(error instanceof FaceError)) {
        throw error;
      }
    }
  },
};

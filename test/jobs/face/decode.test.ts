import assert from 'node:assert/strict';
import { test } from 'vitest';
import sharp from 'sharp';
import { isWithin, processorMs } from '../../harness/machine.ts';
import { decodeImage } from '../../../src/jobs/face/imaging/decode.ts';
import { FaceError, type FaceErrorCode } from '../../../src/jobs/face/face-error.ts';
import { portrait, portraitOf } from './portraits.ts';

const refused =
  (code: FaceErrorCode) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof FaceError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, /^[A-Z].*\.$/);
    return true;
  };

const plain = (width: number, height: number, background = '#888') =>
  sharp({ create: { width, height, channels: 3, background }, limitInputPixels: false });
/** Red at the top left, blue elsewhere. */
const marked = () =>
  plain(300, 200, '#00f').composite([
    {
      input: { create: { width: 100, height: 100, channels: 3, background: '#f00' } },
      left: 0,
      top: 0,
    },
  ]);
const isRed = (
  { data, width }: { data: Uint8Array; width: number },
  x: number,
  y: number,
): boolean => data[(y * width + x) * 3]! > 150 && data[(y * width + x) * 3 + 2]! < 100;

test('accepts JPEG, PNG and WebP, grey or coloured, with 8 or 16 bits', async () => {
  for (const bytes of [
    await portrait().jpeg().toBuffer(),
    await portrait().png().toBuffer(),
    portraitOf('mei'),
    await portrait().greyscale().jpeg().toBuffer(),
    await portrait().greyscale().png().toBuffer(),
    await portrait().toColourspace('rgb16').png().toBuffer(),
    await portrait().toColourspace('cmyk').jpeg().toBuffer(),
    await portrait().png({ palette: true }).toBuffer(),
    await portrait().jpeg({ progressive: true }).toBuffer(),
  ]) {
    const { width, height, data } = await decodeImage(bytes);
    assert.deepEqual([width, height, data.length], [1024, 1024, 1024 * 1024 * 3]);
  }
});

test('refuses other formats by their signature', async () => {
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="400"><image ' +
    'href="file:///etc/passwd"/></svg>';
  await assert.rejects(decodeImage(Buffer.from(svg)), refused('UNSUPPORTED_FORMAT'));
  await assert.rejects(
    decodeImage(Buffer.from(`<?xml version="1.0"?>\n${svg}`)),
    refused('UNSUPPORTED_FORMAT'),
  );
  await assert.rejects(
    decodeImage(await plain(300, 300).gif().toBuffer()),
    refused('UNSUPPORTED_FORMAT'),
  );
  await assert.rejects(
    decodeImage(await plain(300, 300).tiff().toBuffer()),
    refused('UNSUPPORTED_FORMAT'),
  );
  await assert.rejects(
    decodeImage(await plain(300, 300).avif().toBuffer()),
    refused('UNSUPPORTED_FORMAT'),
  );
  // A file with a GIF header and a JPEG after it.
  await assert.rejects(
    decodeImage(Buffer.concat([Buffer.from('GIF89a'), await portrait().jpeg().toBuffer()])),
    refused('UNSUPPORTED_FORMAT'),
  );
  for (const junk of [
    Buffer.alloc(0),
    Buffer.from('hello'),
    Buffer.alloc(5000, 7),
    Buffer.from('MZ\x90\0'),
  ]) {
    await assert.rejects(decodeImage(junk), refused('NOT_AN_IMAGE'));
  }
});

test('refuses damaged files', async () => {
  for (const bytes of [
    await portrait().jpeg().toBuffer(),
    await portrait().png().toBuffer(),
    portraitOf('mei'),
  ]) {
    for (const share of [0.02, 0.5, 0.95]) {
      await assert.rejects(
        decodeImage(bytes.subarray(0, Math.floor(bytes.length * share))),
        refused('IMAGE_DAMAGED'),
      );
    }
  }
  for (const head of ['\xff\xd8\xff', '\x89PNG\r\n\x1a\n', 'RIFF\x10\0\0\0WEBP']) {
    await assert.rejects(decodeImage(Buffer.from(head, 'latin1')), refused('IMAGE_DAMAGED'));
  }
});

test('refuses a JPEG with damaged scans; one that lacks its end marker only is whole', async () => {
  const whole = await portrait().jpeg().toBuffer();
  const { data } = await decodeImage(whole);
  for (const progressive of [false, true]) {
    const file = await portrait().jpeg({ progressive }).toBuffer();
    const middle = Math.floor(file.length / 2);
    const overwritten = Buffer.from(file).fill(0xff, middle, middle + 3000);
    await assert.rejects(decodeImage(overwritten), refused('IMAGE_DAMAGED'));
    const gap = Buffer.concat([file.subarray(0, middle), file.subarray(middle + 3000)]);
    await assert.rejects(decodeImage(gap), refused('IMAGE_DAMAGED'));
    await assert.rejects(decodeImage(file.subarray(0, -20)), refused('IMAGE_DAMAGED'));
    assert.equal((await decodeImage(file.subarray(0, -2))).width, 1024);
  }
  assert.deepEqual((await decodeImage(whole.subarray(0, -2))).data, data);
  // What cameras and editors leave in files that every program shows.
  const frame = whole.indexOf(Buffer.from([0xff, 0xc0]));
  const padded = Buffer.concat([whole.subarray(0, frame), Buffer.alloc(7), whole.subarray(frame)]);
  const trailed = Buffer.concat([whole, Buffer.from('SEFT, a trailer')]);
  const adobe = Buffer.from('\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\x07', 'latin1');
  const edited = Buffer.concat([whole.subarray(0, 2), adobe, whole.subarray(2)]);
  for (const file of [padded, trailed, edited]) {
    assert.deepEqual((await decodeImage(file)).data, data);
  }
});

test('refuses too many pixels before decoding them, and too few', async () => {
  const bomb = await plain(10_000, 10_000).png({ compressionLevel: 9 }).toBuffer();
  assert.ok(bomb.length < 1 << 20);
  const memory = process.memoryUsage().rss;
  const startMs = processorMs();
  await assert.rejects(decodeImage(bomb), refused('IMAGE_TOO_LARGE'));
  assert.ok(isWithin(processorMs() - startMs, 500), 'decoded it all the same?');
  assert.ok(process.memoryUsage().rss - memory < 100 << 20);
  await assert.rejects(
    decodeImage(await plain(8200, 6400).png().toBuffer()), // 52.5 megapixels
    refused('IMAGE_TOO_LARGE'),
  );
  // The largest pictures of phones and of a camera that are sold with 50 megapixels.
  for (const [width, height] of [
    [8192, 6144],
    [8256, 6192],
  ] as const) {
    assert.equal((await decodeImage(await plain(width, height).jpeg().toBuffer())).width, 3072);
  }
  await assert.rejects(
    decodeImage(await plain(90, 400).png().toBuffer()),
    refused('IMAGE_TOO_SMALL'),
  );
  await assert.rejects(
    decodeImage(Buffer.concat([portraitOf('mei'), Buffer.alloc(33 << 20)])),
    refused('IMAGE_TOO_LARGE'),
  );
});

test('applies the EXIF orientation', async () => {
  for (const [orientation, size, corner] of [
    [1, [300, 200], [20, 20]],
    [3, [300, 200], [280, 180]],
    [6, [200, 300], [180, 20]],
    [8, [200, 300], [20, 280]],
  ] as const) {
    const image = await decodeImage(
      await marked().withMetadata({ orientation }).jpeg({ quality: 95 }).toBuffer(),
    );
    assert.deepEqual([image.width, image.height], size);
    assert.ok(isRed(image, corner[0], corner[1]), `orientation ${orientation}`);
  }
});

test('puts a neutral background behind transparency, and scales large pictures down', async () => {
  const { data } = await decodeImage(
    await sharp({
      create: {
        width: 200,
        height: 200,
        channels: 4,
        background: { r: 255, g: 0, b: 0, alpha: 0 },
      },
    })
      .png()
      .toBuffer(),
  );
  assert.deepEqual([...data.subarray(0, 3)], [200, 202, 206]);
  const large = await decodeImage(await plain(6000, 4000).jpeg().toBuffer());
  assert.deepEqual([large.width, large.height], [3072, 2048]);
});

import assert from 'node:assert/strict';
import { test } from 'vitest';
import { FaceLandmarker } from '../../../src/jobs/face/detect/face-landmarker.ts';
import { decodeImage } from '../../../src/jobs/face/imaging/decode.ts';
import { halve, type RgbImage } from '../../../src/jobs/face/imaging/image.ts';
import { portraitOf } from './portraits.ts';

const landmarker = FaceLandmarker.load();
const segment = async (image: RgbImage) => (await landmarker).segmenter.segment(image);
/** 256x256 pixels, the input of the network. */
const small = async (): Promise<RgbImage> => halve(halve(await decodeImage(portraitOf('mei'))));

test('gives the probabilities that TensorFlow Lite gives', async () => {
  const { width, data } = await segment(await small());
  // Computed by LiteRT from the original model; on the outline, in hair and on the shoulders.
  for (const [x, y, probability] of [
    [122, 40, 0.22],
    [146, 40, 0.2833],
    [174, 64, 0.4776],
    [77, 76, 0.5736],
    [175, 124, 0.7979],
    [168, 148, 0.3965],
    [108, 172, 0.7072],
    [45, 208, 0.3105],
    [128, 128, 1],
    [2, 2, 0],
  ] as const) {
    const found = data[y * width + x]!;
    assert.ok(Math.abs(found - probability) < 0.001, `${x},${y}: ${found}, not ${probability}`);
  }
});

test('gives a plane of one size, whatever the size and shape of the picture', async () => {
  const whole = await decodeImage(portraitOf('mei'));
  const expected = await segment(await small());
  const half = halve(whole);
  // Every other column.
  const narrow: RgbImage = {
    width: half.width / 2,
    height: half.height,
    data: half.data.filter((_, i) => Math.floor(i / 3) % 2 === 0),
  };
  for (const image of [whole, half, narrow, halve(await small())]) {
    const { width, height, data } = await segment(image);
    assert.deepEqual([width, height], [expected.width, expected.height]);
    assert.ok(data.every((value) => value >= 0 && value <= 1));
    const differing = data.filter((value, i) => Math.abs(value - expected.data[i]!) > 0.5).length;
    assert.ok(differing < 0.02 * data.length, `${image.width}x${image.height}: ${differing}`);
  }
});

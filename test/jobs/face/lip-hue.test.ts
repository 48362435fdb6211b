// The hue of closed lips: redder where they are darker, and less red at the corners.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  LOWER_INNER,
  LOWER_OUTER,
  px,
  py,
  UPPER_INNER,
} from '../../../src/jobs/face/detect/landmarks.ts';
import { curveThrough } from '../../../src/jobs/face/imaging/curve.ts';
import { labAt, lumaAt, lumaOf } from '../../../src/jobs/face/imaging/colour.ts';
import { inShade } from '../../../src/jobs/face/imaging/flesh.ts';
import { plane, type RgbImage, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import type { Rgb } from '../../../src/jobs/face/imaging/patch.ts';
import { colourLips, lipColours } from '../../../src/jobs/face/regions/lip-colour.ts';
import { drawLipShadows } from '../../../src/jobs/face/regions/lip-shadows.ts';
import { MouthFrame } from '../../../src/jobs/face/regions/mouth-frame.ts';
import { SmileCloser } from '../../../src/jobs/face/regions/smile-closer.ts';
import { flatFace, SIZE } from './flat-face.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';

const { landmarks } = syntheticParts();
const frame = new MouthFrame(landmarks);

/** Lips of one colour on skin of one colour, closed as a smile is. */
function closed(lip: Rgb, skin: Rgb): RgbImage {
  const image = flatFace(landmarks, lip, skin);
  colourLips(image, landmarks, lipColours(image, landmarks, plane(SIZE, SIZE))!, 1, 1);
  new SmileCloser(landmarks, frame, { relax: 1, narrow: 0, smile: 1 }).drawSeam(image, 1);
  drawLipShadows(image, landmarks, 1, 1);
  return image;
}

const at = (x: number, y: number): number => Math.round(y) * SIZE + Math.round(x);
const middle = at(px(landmarks, 0), (py(landmarks, LOWER_INNER[5]) + py(landmarks, 17)) / 2);
const seam = at(px(landmarks, 0), py(landmarks, UPPER_INNER[5]));

test('shade takes half as much of red as of green and blue, and leaves grey grey', () => {
  const [red, green, blue] = inShade([180, 112, 104], 0.5).map((value, c) =>
    Math.log(value / [180, 112, 104][c]!),
  ) as [number, number, number];
  assert.ok(red / green > 0.45 && red / green < 0.6, `red ${red}, green ${green}`);
  assert.equal(green.toFixed(4), blue.toFixed(4));
  for (const value of inShade([120, 120, 120], 0.5)) {
    assert.ok(Math.abs(value - 60) < 1e-9);
  }
});

test('the dark seam of a smile that was closed is as red as the lips, or redder', () => {
  const image = closed([182, 116, 108], [210, 163, 141]);
  const [lip, dark] = [labAt(image, middle), labAt(image, seam)];
  assert.ok(dark.l < 0.75 * lip.l, `L* ${dark.l} of ${lip.l}`);
  assert.ok(dark.a > lip.a - 1 && dark.b > lip.b - 4, `a* ${dark.a}, b* ${dark.b}`);
});

test('lips lose red towards the corners, though they are darker there', () => {
  const image = closed([182, 116, 108], [210, 163, 141]);
  const skin = labAt(image, at(60, 60)).a;
  const red = (u: number): number => {
    const inner = curveThrough(frame.local(landmarks, LOWER_INNER))(u);
    const outer = curveThrough(frame.local(landmarks, LOWER_OUTER))(u);
    const { x, y } = frame.toPicture(u, (inner + outer) / 2);
    return labAt(image, at(x, y)).a - skin;
  };
  for (const side of [-0.85, 0.85]) {
    const share = red(side * frame.halfWidth) / red(0);
    assert.ok(share > 0.4 && share < 0.95, `${share} of the red of the middle`);
  }
});

test('in black and white lips stay without colour', () => {
  const image = closed([120, 120, 120], [170, 170, 170]);
  for (const pixel of [middle, seam]) {
    const [r, g, b] = image.data.subarray(pixel * 3, pixel * 3 + 3);
    assert.ok(Math.max(r!, g!, b!) - Math.min(r!, g!, b!) <= 1);
    assert.ok(lumaOf(r!, g!, b!) < 125);
  }
});

test('pixels at the seam that show the other lip do not become a row of dots', () => {
  const image = rgbImage(SIZE, SIZE);
  const line = curveThrough(frame.local(landmarks, UPPER_INNER));
  const rise = (i: number): number => {
    const { x, y } = frame.toLocal((i % SIZE) + 0.5, Math.floor(i / SIZE) + 0.5);
    return line(x) - y;
  };
  for (let i = 0; i < SIZE * SIZE; i++) {
    const isDot = rise(i) > 0 && rise(i) < 1 && i % 3 === 0;
    image.data.set(isDot ? [230, 170, 165] : rise(i) > 0 ? [140, 76, 72] : [182, 116, 108], i * 3);
  }
  const colours = lipColours(image, landmarks, plane(SIZE, SIZE))!;
  colourLips(image, landmarks, colours, 1, 1);
  const lumas: number[] = [];
  for (let i = 0; i < SIZE * SIZE; i++) {
    const { x } = frame.toLocal((i % SIZE) + 0.5, Math.floor(i / SIZE) + 0.5);
    if (rise(i) > 0 && rise(i) < 1 && Math.abs(x) < 0.5 * frame.halfWidth) {
      lumas.push(lumaAt(image, i));
    }
  }
  const [least, most] = [Math.min(...lumas), Math.max(...lumas)];
  assert.ok(most < 1.2 * least, `between ${least} and ${most} along the seam`);
});

test('lips that hardly part keep the dark line between them', () => {
  const [faint, dark] = [0, 1].map((line) => {
    const image = closed([182, 116, 108], [210, 163, 141]);
    const closer = new SmileCloser(landmarks, frame, { relax: 0, narrow: 0, smile: 0 });
    closer.drawSeam(image, 1, line);
    return lumaAt(image, seam);
  }) as [number, number];
  assert.ok(dark < 0.75 * faint, `${dark} instead of ${faint}`);
});

// What a smile becomes at rest: a narrower mouth, a level seam, cheeks with soft folds.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  CHIN,
  INNER_CORNERS,
  LOWER_INNER,
  LOWER_OUTER,
  type Landmarks,
  NOSE_BASE,
  py,
  UPPER_INNER,
  UPPER_OUTER,
} from '../../../src/jobs/face/detect/landmarks.ts';
import { lumaAt } from '../../../src/jobs/face/imaging/colour.ts';
import { plane, type RgbImage, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import type { Rgb } from '../../../src/jobs/face/imaging/patch.ts';
import { lipShape } from '../../../src/jobs/face/regions/lip-shape.ts';
import { MouthFrame } from '../../../src/jobs/face/regions/mouth-frame.ts';
import { isOpen, wholeOpening } from '../../../src/jobs/face/regions/mouth-opening.ts';
import { narrowing, smilingEyes } from '../../../src/jobs/face/regions/resting-mouth.ts';
import { SmileCloser } from '../../../src/jobs/face/regions/smile-closer.ts';
import { softenFolds } from '../../../src/jobs/face/regions/smile-folds.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';
import { CORNERS, openedBy, SIZE } from './flat-face.ts';

const { landmarks } = syntheticParts();

/** Rows of the upper lip's edges, then of the lower one's, in the middle of the mouth. */
const lipLines = (points: Landmarks): [number, number, number, number] => [
  py(points, UPPER_OUTER[5]),
  py(points, UPPER_INNER[5]),
  py(points, LOWER_INNER[5]),
  py(points, LOWER_OUTER[5]),
];

test('the broader a smile is, the more its mouth narrows; part of a broad mouth is its own', () => {
  assert.equal(narrowing(0.55), 0);
  const [slight, broad, broadest] = [0.6, 0.71, 0.83].map(narrowing) as [number, number, number];
  assert.ok(slight > 0.02 && slight < 0.06, `${slight}`);
  assert.ok(broad > 0.08 && broad < 0.13, `${broad}`);
  assert.ok(broadest > 0.15 && broadest <= 0.2, `${broadest}`);
});

test('the corners of a broad smile sink, and keep a little of their lift', () => {
  const points = openedBy(landmarks, 20);
  const frame = new MouthFrame(points);
  for (const index of CORNERS) {
    points[index * 3 + 1]! -= 0.25 * frame.halfWidth;
  }
  const lift = (relax: number, kept = 0): number => {
    const relaxation = { relax, narrow: 0, smile: 1, kept };
    const moved = new SmileCloser(points, new MouthFrame(points), relaxation).move(points);
    return (py(moved, UPPER_INNER[5]) - py(moved, INNER_CORNERS[0])) / frame.halfWidth;
  };
  assert.ok(lift(1) < 0.5 * lift(0) && lift(1) > 0.1 * lift(0), `${lift(0)} became ${lift(1)}`);
  assert.ok(lift(1, 1) > 1.5 * lift(1), `below smiling eyes ${lift(0)} became ${lift(1, 1)}`);
});

test('eyes that are as open as at rest do not smile, narrow ones do', () => {
  const eyes = (height: number): number => {
    const points = landmarks.slice();
    for (const [upper, lower] of [
      [159, 145],
      [386, 374],
    ] as const) {
      const middle = (py(points, upper) + py(points, lower)) / 2;
      for (const index of [upper, lower]) {
        points[index * 3 + 1] = middle + height * (py(points, index) - middle);
      }
    }
    return smilingEyes(points);
  };
  assert.equal(eyes(1), 0);
  assert.equal(eyes(0.6), 1);
});

test('lips that a smile has raised meet no nearer to the nose than at rest', () => {
  const points = landmarks.slice();
  const frame = new MouthFrame(points);
  const at = (index: number): number => frame.local(points, [index])[0]!.y;
  const length = at(CHIN) - at(NOSE_BASE);
  // The lips are open, and nearer to the nose.
  const rise = at(UPPER_OUTER[5]) - at(NOSE_BASE) - 0.11 * length;
  const opened = 0.1 * length;
  for (const [lip, down] of [
    [[...UPPER_INNER, ...UPPER_OUTER], -rise],
    [[...LOWER_INNER, ...LOWER_OUTER], opened - rise],
  ] as const) {
    for (const index of lip.filter((i) => !CORNERS.has(i))) {
      points[index * 3 + 1]! += down;
    }
  }
  const meet = (smile: number): number => {
    const { relax, narrow } = { relax: 1, narrow: 0.1 };
    const moved = new SmileCloser(points, frame, { relax, narrow, smile }).move(points);
    const seam = py(moved, UPPER_INNER[5]) - py(moved, NOSE_BASE);
    return seam / (py(moved, CHIN) - py(moved, NOSE_BASE));
  };
  const [grave, smiling] = [meet(0), meet(1)];
  assert.ok(smiling > 0.29 && grave < smiling - 0.03, `${grave} and ${smiling} of the way`);
});

test('the seam of a crooked smile is nearly even', () => {
  const points = landmarks.slice();
  const frame = new MouthFrame(points);
  const half = frame.halfWidth;
  // One half of the mouth is open further down.
  for (const index of [...LOWER_INNER, ...UPPER_INNER].filter((i) => !CORNERS.has(i))) {
    const { x } = frame.local(points, [index])[0]!;
    points[index * 3 + 1]! += 0.2 * x * (1 - (x / half) ** 2);
  }
  const skew = (gap: number): number => {
    const { seam } = lipShape(points, frame, gap, 0.5);
    return seam(0.5 * half) - seam(-0.5 * half);
  };
  const [closed, open] = [skew(0), skew(0.2)];
  assert.ok(closed > 5 && open < 0.45 * closed && open > 0, `${closed} became ${open}`);
});

test('most of a fine fold goes, with its rims, where pores stay and a broad shadow does', () => {
  const picture = rgbImage(SIZE, SIZE);
  const isPore = (x: number, y: number): boolean => (x * 7 + y * 11) % 23 === 0;
  for (let i = 0; i < SIZE * SIZE; i++) {
    const [x, y] = [i % SIZE, Math.floor(i / SIZE)];
    const inFold = x > 184 && x < 188 && y > 280 && y < 345;
    const inShadow = x > 318 && x < 350 && y > 270 && y < 350;
    const light = (inFold ? 0.5 : inShadow ? 0.8 : 1) - (isPore(x, y) ? 0.03 : 0);
    picture.data.set(
      [205, 160, 140].map((value) => value * light),
      i * 3,
    );
  }
  const flat = (amount: number, folded: number): RgbImage => {
    const image: RgbImage = { ...picture, data: picture.data.slice() };
    softenFolds(image, landmarks, amount, folded);
    return image;
  };
  const column = (image: RgbImage, x: number): number =>
    Array.from({ length: 23 }, (_, k) => lumaAt(image, (300 + k) * SIZE + x) / 23).reduce(
      (sum, value) => sum + value,
    );
  const gone = (image: RgbImage, x: number): number =>
    (column(image, x) - column(picture, x)) / (column(picture, 170) - column(picture, x));
  const all = flat(1, 1);
  assert.ok(gone(all, 186) > 0.55 && gone(all, 186) < 0.8, `${gone(all, 186)} of the fold`);
  const foldsOnly = flat(0.3, 1);
  assert.ok(gone(foldsOnly, 186) > 0.5, `${gone(foldsOnly, 186)} of the fold alone`);
  assert.ok(gone(foldsOnly, 330) < 0.35, `${gone(foldsOnly, 330)} of a shadow`);
  const deepest = (x: number): number =>
    Math.max(
      ...Array.from({ length: 23 }, (_, k) => column(all, x) - lumaAt(all, (300 + k) * SIZE + x)),
    );
  assert.ok(deepest(200) > 2, `a pore is ${deepest(200)} deep beside the fold`);
});

test('teeth above the outline of the lips belong to the opening, pale skin there does not', () => {
  const points = openedBy(landmarks, 20);
  const [top, from, to] = [UPPER_OUTER[5], UPPER_INNER[5], LOWER_INNER[5]].map((i) =>
    Math.round(py(points, i)),
  ) as [number, number, number];
  const seen = plane(SIZE, SIZE);
  for (let y = from; y < to; y++) {
    seen.data.fill(1, y * SIZE + 236, y * SIZE + 276);
  }
  const found = (above: readonly [number, number, number]): number => {
    const image = rgbImage(SIZE, SIZE);
    for (let i = 0; i < SIZE * SIZE; i++) {
      const [x, y] = [i % SIZE, Math.floor(i / SIZE)];
      const isTooth = x >= 246 && x < 262 && y > top - 3 && y < to;
      const isLip = y >= top && y < py(points, LOWER_OUTER[5]);
      image.data.set(isTooth ? above : isLip ? [178, 88, 92] : [205, 150, 120], i * 3);
    }
    return wholeOpening(image, points, seen).data[(top - 1) * SIZE + 254]!;
  };
  assert.equal(found([232, 226, 214]), 1);
  assert.equal(found([222, 178, 158]), 0);
});

test('teeth of a blurred picture, as red as its lips, are seen by their light', () => {
  const { halfWidth } = new MouthFrame(landmarks);
  const gap = 0.19 * halfWidth;
  const points = openedBy(landmarks, gap);
  const [top, from, to, bottom] = lipLines(points);
  const isOpenWith = (between: Rgb, sharpness: number, lip: Rgb = [176, 128, 112]): boolean => {
    const image = rgbImage(SIZE, SIZE);
    const seen = plane(SIZE, SIZE);
    for (let i = 0; i < SIZE * SIZE; i++) {
      const y = Math.floor(i / SIZE) + 0.5;
      const isMouth = Math.abs((i % SIZE) - 256) < 0.9 * halfWidth && y > top && y < bottom;
      const isBetween = isMouth && y > from && y < to;
      seen.data[i] = isBetween ? 1 : 0;
      image.data.set(isBetween ? between : isMouth ? lip : [205, 160, 140], i * 3);
    }
    return isOpen(image, points, seen, gap / (2 * halfWidth), sharpness);
  };
  const [teeth, seam]: Rgb[] = [
    [206, 157, 141],
    [150, 106, 92],
  ];
  assert.equal(isOpenWith(teeth!, 0.5), true);
  assert.equal(isOpenWith(teeth!, 1), false, 'gloss on lips of a sharp picture');
  assert.equal(isOpenWith(seam!, 0.5), false);
  // Redder lips have kept their colour: teeth are a little paler than they, gloss is not.
  const [pale, gloss]: Rgb[] = [
    [205, 138, 130],
    [208, 125, 122],
  ];
  assert.equal(isOpenWith(pale!, 0.5, [184, 112, 106]), true);
  assert.equal(isOpenWith(pale!, 1, [184, 112, 106]), false);
  assert.equal(isOpenWith(gloss!, 0.5, [184, 112, 106]), false);
});

test('teeth that the landmarks take for the upper lip open the mouth', () => {
  const { halfWidth } = new MouthFrame(landmarks);
  const gap = 0.09 * halfWidth;
  const points = openedBy(landmarks, gap);
  const [top, from, to, bottom] = lipLines(points);
  const isOpenWith = (above: Rgb): boolean => {
    const image = rgbImage(SIZE, SIZE);
    const seen = plane(SIZE, SIZE);
    for (let i = 0; i < SIZE * SIZE; i++) {
      const y = Math.floor(i / SIZE) + 0.5;
      const isMouth = Math.abs((i % SIZE) - 256) < 0.9 * halfWidth && y > top && y < bottom;
      const isBetween = isMouth && y > from && y < to;
      const isAbove = isMouth && y > (top + from) / 2 && y < from;
      seen.data[i] = isBetween ? 1 : 0;
      const mouth: Rgb = isBetween ? [56, 28, 26] : isAbove ? above : [150, 78, 74];
      image.data.set(isMouth ? mouth : [190, 140, 118], i * 3);
    }
    return isOpen(image, points, seen, gap / (2 * halfWidth));
  };
  assert.equal(isOpenWith([176, 154, 138]), true, 'teeth');
  assert.equal(isOpenWith([190, 112, 106]), false, 'gloss');
  assert.equal(isOpenWith([150, 78, 74]), false, 'lip');
});

test('an upper lip that darkens towards a narrow gap stays a lip', () => {
  const { halfWidth } = new MouthFrame(landmarks);
  const opened = (gap: number): number => {
    const points = openedBy(landmarks, gap);
    const [from, to] = [py(points, UPPER_INNER[5]), py(points, LOWER_INNER[5])];
    const image = rgbImage(SIZE, SIZE);
    const seen = plane(SIZE, SIZE);
    for (let i = 0; i < SIZE * SIZE; i++) {
      const [x, y] = [i % SIZE, Math.floor(i / SIZE) + 0.5];
      const isMiddle = Math.abs(x - 256) < 0.25 * halfWidth;
      const isDark = y > from - 9 && y < to && Math.abs(x - 256) < 0.6 * halfWidth;
      seen.data[i] = isMiddle && y > from && y < to ? 1 : 0;
      image.data.set(isDark ? [70, 24, 24] : [164, 104, 98], i * 3);
    }
    const opening = wholeOpening(image, points, seen);
    return Array.from(
      { length: 12 },
      (_, k) => opening.data[(Math.round(from) - 1 - k) * SIZE + 256]!,
    ).filter((value) => value > 0.5).length;
  };
  assert.ok(opened(0.1 * halfWidth) <= 6, `${opened(0.1 * halfWidth)} pixels of the upper lip`);
  assert.ok(opened(0.3 * halfWidth) >= 7, 'the dark of a wide opening belongs to it');
});

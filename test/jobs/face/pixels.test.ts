import assert from 'node:assert/strict';
import { test } from 'vitest';
import { curveThrough, tabulated } from '../../../src/jobs/face/imaging/curve.ts';
import { blur, dilate, erode, polygonMask } from '../../../src/jobs/face/imaging/mask.ts';
import {
  clamp,
  halve,
  plane,
  Pyramid,
  rgbImage,
  type RgbImage,
} from '../../../src/jobs/face/imaging/image.ts';
import { inpaint } from '../../../src/jobs/face/imaging/inpaint.ts';
import { lumaAt } from '../../../src/jobs/face/imaging/colour.ts';
import { FACE_OVAL, NOSE_BASE, UPPER_OUTER } from '../../../src/jobs/face/detect/landmarks.ts';
import { MouthFrame } from '../../../src/jobs/face/regions/mouth-frame.ts';
import { softenFolds } from '../../../src/jobs/face/regions/smile-folds.ts';
import { rgbToYuv } from '../../../src/jobs/face/imaging/patch.ts';
import { native } from '../../../src/native/addon.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';

const sum = (values: Float32Array): number => values.reduce((total, value) => total + value, 0);

test('the mask of a polygon has its area at any subpixel position', () => {
  const square = [
    { x: 3.3, y: 4.25 },
    { x: 13.3, y: 4.25 },
    { x: 13.3, y: 9.5 },
    { x: 3.3, y: 9.5 },
  ];
  const mask = polygonMask(20, 20, square);
  assert.ok(Math.abs(sum(mask.data) - 10 * 5.25) < 0.01);
  assert.ok(Math.abs(mask.data[5 * 20 + 3]! - 0.7) < 0.01);
  assert.equal(
    sum(
      polygonMask(
        20,
        20,
        square.map(({ x, y }) => ({ x: x + 100, y })),
      ).data,
    ),
    0,
  );
});

test('masks grow, shrink and blur without losing weight', () => {
  const mask = plane(21, 21);
  mask.data[10 * 21 + 10] = 1;
  assert.equal(sum(dilate(mask, 2).data), 25);
  assert.equal(sum(erode(dilate(mask, 2), 2).data), 1);
  assert.ok(Math.abs(sum(blur(mask, 1.5).data) - 1) < 1e-5);
});

test('a blur is the sum of its kernel, with the edge pixels repeated', () => {
  const [width, height, sigma] = [13, 9, 1.7];
  const radius = Math.ceil(3 * sigma);
  const offsets = Array.from({ length: 2 * radius + 1 }, (_, i) => i - radius);
  const weight = (k: number): number => Math.exp(-(k ** 2) / (2 * sigma ** 2));
  const whole = offsets.reduce((total, k) => total + weight(k), 0);
  // Values at an edge, values around the middle alone, and nothing.
  for (const isFilled of [(x: number) => x < 5, (x: number) => x === 6, () => false]) {
    const source = plane(width, height);
    source.data.forEach((_, i) => {
      source.data[i] = isFilled(i % width) && i >= 2 * width ? 1 + ((i * 37) % 11) : 0;
    });
    const at = (x: number, y: number): number =>
      source.data[clamp(y, 0, height - 1) * width + clamp(x, 0, width - 1)]!;
    const blurred = blur(source, sigma);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const row = (line: number): number =>
          offsets.reduce((total, k) => total + (weight(k) * at(x + k, line)) / whole, 0);
        const expected = offsets.reduce((total, k) => total + (weight(k) * row(y + k)) / whole, 0);
        assert.ok(Math.abs(blurred.data[y * width + x]! - expected) < 1e-5);
      }
    }
  }
});

test('a blur of no width changes nothing, and a plane may be empty', () => {
  const source = plane(3, 2);
  source.data.set([1, 0, 3, 0, 5, 0]);
  assert.deepEqual(blur(source, 0).data, source.data);
  for (const empty of [plane(0, 4), plane(4, 0)]) {
    assert.equal(blur(empty, 1).data.length, 0);
    assert.equal(dilate(empty, 2).data.length, 0);
  }
});

test('dilation and erosion take the extremes of a square window within the plane', () => {
  const [width, height] = [11, 7];
  const source = plane(width, height);
  source.data.forEach((_, i) => {
    source.data[i] = i % width > 2 && i < 5 * width ? (i * 37) % 11 : 0;
  });
  for (const radius of [0, 1, 3, 20]) {
    const windowAt = (at: number): number[] =>
      Array.from(source.data).filter(
        (_, i) =>
          Math.abs((i % width) - (at % width)) <= radius &&
          Math.abs(Math.floor(i / width) - Math.floor(at / width)) <= radius,
      );
    const extremes = (pick: (...values: number[]) => number): number[] =>
      Array.from(source.data, (_, at) => pick(...windowAt(at)));
    assert.deepEqual(Array.from(dilate(source, radius).data), extremes(Math.max));
    assert.deepEqual(Array.from(erode(source, radius).data), extremes(Math.min));
  }
});

test('curves pass through their points and do not overshoot', () => {
  const points = [
    { x: 0, y: 0 },
    { x: 1, y: 0 },
    { x: 2, y: 5 },
    { x: 3, y: 5 },
  ];
  const curve = curveThrough(points);
  for (const { x, y } of points) {
    assert.ok(Math.abs(curve(x) - y) < 1e-9);
  }
  for (let x = -1; x < 4; x += 0.05) {
    assert.ok(curve(x) >= -1e-9 && curve(x) <= 5 + 1e-9);
  }
  const wide = curveThrough(points.map(({ x, y }) => ({ x: x * 10, y })));
  const table = tabulated(wide, -5, 35);
  for (let x = -4; x < 34; x += 0.3) {
    assert.ok(Math.abs(table(x) - wide(x)) < 0.02);
  }
});

test('inpainting continues the surroundings and keeps known pixels', () => {
  const image = rgbImage(40, 30);
  const known = new Uint8Array(40 * 30).fill(1);
  for (let i = 0; i < known.length; i++) {
    image.data.set([Math.floor(i / 40) * 6, 100, 200 - (i % 40) * 3], i * 3);
    if (i % 40 > 14 && i % 40 < 24 && i > 10 * 40 && i < 20 * 40) {
      known[i] = 0;
    }
  }
  const truth = image.data.slice();
  for (let i = 0; i < known.length; i++) {
    if (!known[i]) {
      image.data.fill(0, i * 3, i * 3 + 3);
    }
  }
  inpaint(image, known);
  for (let i = 0; i < known.length; i++) {
    for (let c = 0; c < 3; c++) {
      assert.ok(
        Math.abs(image.data[i * 3 + c]! - truth[i * 3 + c]!) <= (known[i] ? 0 : 14),
        `pixel ${i}`,
      );
    }
  }
});

test('sampling a rotated square gives the same picture at every scale', () => {
  const image = rgbImage(256, 256);
  for (let i = 0; i < 256 * 256; i++) {
    image.data.fill(
      128 + 100 * Math.sin((i % 256) / 20) * Math.cos(Math.floor(i / 256) / 25),
      i * 3,
      i * 3 + 3,
    );
  }
  const pyramid = new Pyramid(image);
  assert.deepEqual(
    [halve(image).width, pyramid.level(3.9).factor, pyramid.level(4).factor],
    [128, 2, 4],
  );
  const out = pyramid.sample({ cx: 128, cy: 128, side: 128, angle: Math.PI / 2 }, 32, 1, 0);
  for (const [x, y] of [
    [4, 7],
    [16, 20],
    [30, 3],
  ] as const) {
    // A quarter turn clockwise: right in the sample is down in the picture.
    const [u, v] = [(x + 0.5 - 16) * 4, (y + 0.5 - 16) * 4];
    const expected = image.data[(Math.floor(128 + u) * 256 + Math.floor(128 - v)) * 3]!;
    assert.ok(
      Math.abs(out[(y * 32 + x) * 3]! - expected) < 12,
      `${out[(y * 32 + x) * 3]} against ${expected}`,
    );
  }
});

test('colour conversion agrees with the native addon', () => {
  for (const rgb of [
    [0, 0, 0],
    [255, 255, 255],
    [200, 120, 90],
    [30, 60, 220],
  ] as const) {
    const rgba = new Uint8Array(16 * 16 * 4);
    for (let i = 0; i < 256; i++) {
      rgba.set([...rgb, 255], i * 4);
    }
    const i420 = new Uint8Array(16 * 16 * 1.5);
    native.rgbaToI420(rgba, 16, 16, i420);
    const [y, u, v] = rgbToYuv(rgb);
    for (const [ours, theirs] of [
      [y, i420[0]],
      [u, i420[256]],
      [v, i420[320]],
    ] as const) {
      assert.ok(Math.abs(ours - theirs!) <= 1, `${rgb.join()}: ${ours} and ${theirs}`);
    }
  }
});

test('the folds of a smile are softened; a beard, and a mouth at rest, stay as they are', () => {
  const { landmarks } = syntheticParts();
  const drawn = (isDark: (x: number, y: number) => boolean): RgbImage => {
    const image = rgbImage(512, 512);
    for (let i = 0; i < 512 * 512; i++) {
      image.data.set(isDark(i % 512, i >> 9) ? [120, 80, 65] : [205, 160, 140], i * 3);
    }
    return image;
  };
  // A fold beside the mouth, five pixels wide, and the hair of a beard.
  const fold = (x: number, y: number): boolean => Math.abs(x - 190) < 3 && y > 280 && y < 345;
  const hair = (x: number, y: number): boolean => (x * 7 + y * 3) % 9 < 3;
  const lumaAfter = (isDark: typeof fold, amount: number): [number, number] => {
    const image = drawn(isDark);
    const before = lumaAt(image, 315 * 512 + 190);
    softenFolds(image, landmarks, amount);
    return [before, lumaAt(image, 315 * 512 + 190)];
  };
  const [dark, softened] = lumaAfter(fold, 1);
  assert.ok(softened > dark + 40, `${dark} became ${softened}`);
  for (const [isDark, amount] of [
    [fold, 0],
    [hair, 1],
  ] as const) {
    const image = drawn(isDark);
    softenFolds(image, landmarks, amount);
    // A difference of so many values would take all memory to print.
    assert.ok(Buffer.compare(image.data, drawn(isDark).data) === 0, `amount ${amount}`);
  }
});

test('the bright ridge beside a fold goes with it, and nothing beside the face changes', () => {
  const { landmarks } = syntheticParts();
  const image = rgbImage(512, 512);
  const isBeside = (x: number): boolean => x < 130 || x > 382;
  const skin = [205, 160, 140] as const;
  for (let i = 0; i < 512 * 512; i++) {
    const [x, y] = [i % 512, i >> 9];
    const isMarked = y > 285 && y < 345;
    // A dark fold, and a bright ridge outside it, 4 pixels wide each; stripes beside the face.
    const light = isMarked && x >= 186 && x < 190 ? -50 : isMarked && x >= 182 && x < 186 ? 40 : 0;
    const colour = isBeside(x) ? [(y & 8) * 20, 60, 90] : skin.map((value) => value + light);
    image.data.set(colour, i * 3);
  }
  const before = image.data.slice();
  softenFolds(image, landmarks, 1);
  const luma = (x: number): number => lumaAt(image, 315 * 512 + x);
  const skinLuma = lumaAt({ ...image, data: Uint8Array.from(skin) }, 0);
  assert.ok(luma(183) - skinLuma < 14 && luma(183) - skinLuma > -8, `ridge ${luma(183)}`);
  assert.ok(skinLuma - luma(188) < 16, `fold ${luma(188)} in ${skinLuma}`);
  for (let i = 0; i < 512 * 512; i++) {
    if (isBeside(i % 512)) {
      assert.equal(image.data[i * 3], before[i * 3], `${i % 512}, ${i >> 9}`);
    }
  }
});

test('on the far side of a turned head a fold in deep shade at the outline is softened', () => {
  const { landmarks } = syntheticParts();
  const frame = new MouthFrame(landmarks);
  const points = landmarks.slice();
  const outline = frame.x - 1.8 * frame.halfWidth;
  for (const i of FACE_OVAL) {
    points[i * 3] = Math.max(outline, points[i * 3]!);
  }
  const image = rgbImage(512, 512);
  const y = Math.round(frame.y - 0.2 * frame.halfWidth);
  for (let i = 0; i < 512 * 512; i++) {
    const isFold = i % 512 < outline + 14 && Math.abs((i >> 9) - y) < 9;
    const skin = isFold ? [70, 54, 47] : [205, 160, 140];
    image.data.set(i % 512 < outline ? [240, 240, 255] : skin, i * 3);
  }
  const at = y * 512 + Math.round(outline) + 10;
  const before = lumaAt(image, at);
  softenFolds(image, points, 1);
  assert.ok(lumaAt(image, at) > before + 50, `${before} became ${lumaAt(image, at)}`);
});

test('a moustache that looks like skin where light falls on it is kept on both sides', () => {
  const { landmarks } = syntheticParts();
  const frame = new MouthFrame(landmarks);
  const { halfWidth } = frame;
  const noseY = frame.local(landmarks, [NOSE_BASE])[0]!.y;
  const upperLip = frame.local(landmarks, [UPPER_OUTER[5]])[0]!.y;
  const middle = (noseY + upperLip) / 2;
  // Contrast of hairs in the light, right of the middle in half widths of the mouth; `isDark` says
  // what lies left of it.
  const keptOf = (isDark: boolean, right = 0.3): number => {
    const image = rgbImage(512, 512);
    for (let i = 0; i < 512 * 512; i++) {
      const [x, y] = [i % 512, i >> 9];
      const { x: u, y: v } = frame.toLocal(x + 0.5, y + 0.5);
      const isHair = v > noseY && v < upperLip + 4 && Math.abs(u) < 0.9 * halfWidth;
      const lit = isHair && u > 0 && x % 12 < 6 ? 0.88 : 1;
      const skin = [205 * lit, 160 * lit, 140 * lit];
      image.data.set(isHair && u < 0 && isDark ? [88, 60, 48] : skin, i * 3);
    }
    const contrast = (): number => {
      const lumas = Array.from({ length: 24 }, (_, k) => {
        const at = { x: frame.x + right * halfWidth + k, y: frame.y + middle };
        return lumaAt(image, Math.round(at.y) * 512 + Math.round(at.x));
      });
      return Math.max(...lumas) - Math.min(...lumas);
    };
    const before = contrast();
    softenFolds(image, landmarks, 1);
    return contrast() / before;
  };
  const [shaven, moustache, end] = [keptOf(false), keptOf(true), keptOf(true, 0.55)];
  assert.ok(shaven < 0.8, `${shaven} of the contrast of bare skin`);
  assert.ok(moustache > 0.95, `${moustache} of the contrast of a moustache`);
  assert.ok(end > 0.95, `${end} of that at its end: it does not shrink to its middle`);
});

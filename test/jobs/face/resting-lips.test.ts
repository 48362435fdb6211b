// Lips at rest, made from those of a smile: their colours and their thickness.
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  CHIN,
  FACE_OVAL,
  INNER_CORNERS,
  type Landmarks,
  LOWER_INNER,
  LOWER_OUTER,
  MOUTH_CORNERS,
  NOSE_BASE,
  NOSE_WINGS,
  UPPER_INNER,
  UPPER_OUTER,
  px,
  py,
} from '../../../src/jobs/face/detect/landmarks.ts';
import { curveThrough } from '../../../src/jobs/face/imaging/curve.ts';
import { plane, type RgbImage, rgbImage } from '../../../src/jobs/face/imaging/image.ts';
import type { Rgb } from '../../../src/jobs/face/imaging/patch.ts';
import { colourLips, lipColours } from '../../../src/jobs/face/regions/lip-colour.ts';
import { clearLipRim } from '../../../src/jobs/face/regions/lip-rim.ts';
import { snapToLipSeam } from '../../../src/jobs/face/regions/lip-seam.ts';
import { snapToCorners, snapToOutline } from '../../../src/jobs/face/regions/lip-outline.ts';
import { lipShape } from '../../../src/jobs/face/regions/lip-shape.ts';
import { snapToMoustache } from '../../../src/jobs/face/regions/moustache.ts';
import { MouthFrame } from '../../../src/jobs/face/regions/mouth-frame.ts';
import { wholeOpening } from '../../../src/jobs/face/regions/mouth-opening.ts';
import { SmileCloser } from '../../../src/jobs/face/regions/smile-closer.ts';
import { syntheticParts } from '../../pipeline/render/synthetic-face.ts';

const SIZE = 512;
const SKIN: Rgb = [205, 160, 135];
const { landmarks } = syntheticParts();
const nothing = plane(SIZE, SIZE);
/** Of the outline, below the ears. */
const JAW_ANGLES = [132, 361];
const MOUTH = new Set<number>([...MOUTH_CORNERS, ...INNER_CORNERS]);

/** @returns skin, with `paint` where it gives a colour */
function drawn(paint: (x: number, y: number) => Rgb | undefined): RgbImage {
  const image = rgbImage(SIZE, SIZE);
  for (let i = 0; i < SIZE * SIZE; i++) {
    image.data.set(paint(i % SIZE, Math.floor(i / SIZE)) ?? SKIN, i * 3);
  }
  return image;
}

const inLowerLip = (y: number): boolean =>
  y > py(landmarks, LOWER_INNER[5]) && y < py(landmarks, LOWER_OUTER[5]);

describe('lips at rest', () => {
  test('meet where a dark line is between them, up to their corners', () => {
    const frame = new MouthFrame(landmarks);
    const [left, right] = MOUTH_CORNERS.map((i) => px(landmarks, i)) as [number, number];
    const seam = py(landmarks, UPPER_INNER[5]);
    for (const low of [-3, 3]) {
      const image = drawn((x, y) => {
        const line = Math.round(py(landmarks, MOUTH_CORNERS[0])) + low;
        const onLine = Math.abs(y - line) < 1.5 && x > left - 3 && x < right + 3;
        return onLine ? [70, 40, 38] : Math.abs(y - seam) < 12 ? [178, 98, 92] : undefined;
      });
      const points = snapToLipSeam(image, landmarks, frame);
      for (const index of [...MOUTH_CORNERS, ...INNER_CORNERS]) {
        const moved = py(points, index) - py(landmarks, MOUTH_CORNERS[0]);
        assert.ok(Math.abs(moved - low) < 1.2, `${index}: ${moved} of ${low}`);
      }
    }
    // Without a line the corners stay.
    const points = snapToLipSeam(
      drawn(() => SKIN),
      landmarks,
      frame,
    );
    for (const index of MOUTH_CORNERS) {
      assert.ok(Math.abs(py(points, index) - py(landmarks, index)) < 0.2, `${index}`);
    }
  });

  test('end where a moustache begins, and keep their outline below bare skin', () => {
    const lip: Rgb = [178, 98, 92];
    const hair: readonly Rgb[] = [
      [40, 30, 26],
      [110, 84, 70],
    ];
    const [seam, outer] = [py(landmarks, UPPER_INNER[5]), py(landmarks, UPPER_OUTER[5])];
    const frame = new MouthFrame(landmarks);
    for (const share of [0.5, 0.8]) {
      const edge = seam - share * (seam - outer);
      const portrait = (above: (x: number, y: number) => Rgb): RgbImage =>
        drawn((x, y) => (y + 0.5 > edge && y < seam ? lip : y < edge ? above(x, y) : undefined));
      const bearded = portrait((x, y) => hair[(Math.floor(x / 2) + Math.floor(y / 6)) % 2]!);
      const moved = py(snapToMoustache(bearded, landmarks, frame), UPPER_OUTER[5]);
      assert.ok(Math.abs(moved - edge) < 1.5, `${moved} is not at ${edge}`);
      const shaved = portrait(() => SKIN);
      assert.deepEqual(snapToMoustache(shaved, landmarks, frame), landmarks);
    }
  });

  test('lose the streak of a highlight, and keep hair that hangs over them', () => {
    const lip: Rgb = [178, 98, 92];
    const from = py(landmarks, LOWER_INNER[5]);
    const streak = Math.round(from + 0.6 * (py(landmarks, LOWER_OUTER[5]) - from));
    const image = drawn((x, y) => {
      if (Math.abs(x - 236) < 8) {
        return [30, 22, 20];
      }
      if (Math.abs(y - streak) <= 1 && Math.abs(x - 262) < 12) {
        return [250, 240, 238];
      }
      return inLowerLip(y) ? lip : undefined;
    });
    const colours = lipColours(image, landmarks, nothing)!;
    const before = image.data[(streak * SIZE + 262) * 3 + 1]!;
    colourLips(image, landmarks, colours, 1, 1);
    const after = image.data[(streak * SIZE + 262) * 3 + 1]!;
    assert.ok(before === 240 && after < 165, `green of the streak ${before}, then ${after}`);
    assert.ok(image.data[(streak * SIZE + 236) * 3]! < 90, 'the hair has become lip');
  });

  test('have their colour where shadows at the corners were filled with skin', () => {
    const lip: Rgb = [178, 60, 62];
    const isLip = (x: number, y: number): boolean => inLowerLip(y) && Math.abs(x - 256) < 22;
    const image = drawn((x, y) => (isLip(x, y) ? lip : undefined));
    const colours = lipColours(image, landmarks, nothing)!;
    colourLips(image, landmarks, colours, 0, 1);
    const middle = Math.round((py(landmarks, LOWER_INNER[5]) + py(landmarks, LOWER_OUTER[5])) / 2);
    const green = (x: number, y: number): number => image.data[(y * SIZE + x) * 3 + 1]!;
    for (const x of [226, 286]) {
      const filled = Math.min(...[-4, -2, 0, 2].map((dy) => green(x, middle + dy)));
      assert.ok(filled < 110, `green ${filled} of ${SKIN[1]} at ${x}`);
    }
    assert.ok(
      Math.abs(green(256, middle) - lip[1]) < 12,
      `${green(256, middle)}, it was ${lip[1]}`,
    );
  });

  test('are red where a smile has made them pale, and not blue in a blue light', () => {
    const image = drawn((_, y) => (inLowerLip(y) ? [196, 152, 150] : undefined));
    const { lower, upper } = lipColours(image, landmarks, nothing)!;
    for (const [r, g, b] of [lower, upper]) {
      assert.ok(r / g > 1.38, `red ${r} and green ${g} of pale lips at rest`);
      assert.ok(b < g, `blue ${b} and green ${g}`);
    }
    assert.ok(upper[1] < 0.92 * lower[1], 'the upper lip faces down');
  });

  test('fade into the skin as softly as an enlarged picture does', () => {
    const steepest = (softness: number): number => {
      const image = drawn(() => undefined);
      const colours = {
        lower: [150, 60, 60] as Rgb,
        upper: [130, 50, 50] as Rgb,
        slope: 0,
        seenAbove: 1,
      };
      colourLips(image, landmarks, colours, 1, softness);
      const edge = Math.round(py(landmarks, LOWER_OUTER[5]));
      const green = (y: number): number => image.data[(y * SIZE + 256) * 3 + 1]!;
      const steps = [-4, -3, -2, -1, 0, 1, 2, 3, 4].map(
        (dy) => green(edge + dy) - green(edge + dy - 1),
      );
      return Math.max(...steps);
    };
    const [sharp, enlarged] = [steepest(1), steepest(2.5)];
    assert.ok(sharp > 25 && enlarged < 0.65 * sharp, `steps of ${sharp} and ${enlarged}`);
  });

  test('are not measured where there is only the dark of an opening', () => {
    const image = drawn((_, y) => (inLowerLip(y) ? [38, 14, 14] : undefined));
    assert.equal(lipColours(image, landmarks, nothing), undefined);
  });

  test('are a little thicker than those of a broad smile, not swollen', () => {
    const points = landmarks.slice();
    const centre = (points[61 * 3]! + points[291 * 3]!) / 2;
    // Stretched by a half, and parted by 24 pixels.
    for (const index of new Set([...UPPER_INNER, ...UPPER_OUTER, ...LOWER_INNER, ...LOWER_OUTER])) {
      points[index * 3] = centre + (points[index * 3]! - centre) * 1.5;
    }
    const ends = new Set<number>([
      UPPER_INNER[0],
      UPPER_INNER[10],
      LOWER_OUTER[0],
      LOWER_OUTER[10],
    ]);
    for (const index of [...LOWER_INNER, ...LOWER_OUTER].filter((i) => !ends.has(i))) {
      points[index * 3 + 1]! += 24;
    }
    const frame = new MouthFrame(points);
    const { seam, upper, lower } = lipShape(points, frame, 24 / (2 * frame.halfWidth), 0.45);
    const mean = (inner: (u: number) => number, outer: (u: number) => number): number =>
      [-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5]
        .map((k) => Math.abs(inner((k / 10) * frame.halfWidth) - outer((k / 10) * frame.halfWidth)))
        .reduce((sum, thickness) => sum + thickness / 11, 0);
    const smiling = (inner: readonly number[], outer: readonly number[]): number =>
      mean(curveThrough(frame.local(points, inner)), curveThrough(frame.local(points, outer)));
    const above = mean(seam, upper) / smiling(UPPER_INNER, UPPER_OUTER);
    const below = mean(seam, lower) / smiling(LOWER_INNER, LOWER_OUTER);
    assert.ok(above > 1.04 && above < 1.3, `upper lip ${above}`);
    assert.ok(below > 1.02 && below < 1.25, `lower lip ${below}`);
  });
});

/** Landmarks of a mouth that is open by `gap` pixels. */
function opened(gap: number): Landmarks {
  const points = landmarks.slice();
  for (const index of [...LOWER_INNER.slice(1, -1), ...LOWER_OUTER.slice(1, -1)]) {
    points[index * 3 + 1]! += gap;
  }
  return points;
}

test('a smile that closes leaves the outline of the face, and moves the chin little', () => {
  const points = opened(14);
  for (const [k, index] of NOSE_WINGS.entries()) {
    points[index * 3] = px(points, NOSE_BASE) + (k === 0 ? -28 : 28);
    points[index * 3 + 1] = py(points, NOSE_BASE) - 8;
  }
  const frame = new MouthFrame(points);
  const moved = (smile: number): Landmarks =>
    new SmileCloser(points, frame, { relax: 1, narrow: 0.12, smile }).move(points);
  const [smiling, open] = [moved(1), moved(0)];
  const inwards = (index: number): number => Math.abs(px(smiling, index) - px(points, index));
  assert.ok(inwards(MOUTH_CORNERS[0]) > 4, `the corner moves by ${inwards(MOUTH_CORNERS[0])}`);
  for (const index of FACE_OVAL) {
    assert.ok(inwards(index) < 0.6, `landmark ${index} of the outline moves by ${inwards(index)}`);
  }
  const [left, right] = [NOSE_WINGS[0], NOSE_WINGS[1]].map(inwards) as [number, number];
  assert.ok(left > 0.5 && right > 0.5, `the wings of the nose move by ${left} and ${right}`);
  const raised = (closed: Landmarks): number => py(points, CHIN) - py(closed, CHIN);
  assert.ok(raised(smiling) < 0.6 * raised(open), `chin ${raised(smiling)}, ${raised(open)}`);
});

test('the jaw of a laugh rises to where it was, and the sides of the face stay', () => {
  const eyes = new MouthFrame(landmarks).eyeDistance;
  /** How far a landmark is from its place at rest after a mouth has closed, in eye distances. */
  const left = (gap: number, drop: number): ((index: number) => number) => {
    const points = opened(gap * eyes);
    points[CHIN * 3 + 1]! += drop * eyes;
    const frame = new MouthFrame(points);
    const closed = new SmileCloser(points, frame, { relax: 1, narrow: 0.12, smile: 1 }).move(
      points,
    );
    return (index) => (py(closed, index) - py(landmarks, index)) / eyes;
  };
  const [smile, laugh, teeth] = [left(0.08, 0), left(0.2, 0.1), left(0.2, -0.1)];
  assert.ok(Math.abs(smile(CHIN)) < 0.03, `a smile's chin moves by ${smile(CHIN)}`);
  assert.ok(Math.abs(laugh(CHIN)) < 0.03, `a laugh's chin is ${laugh(CHIN)} from its place`);
  assert.ok(teeth(CHIN) + 0.1 > -0.05, `a short chin rises by ${-0.1 - teeth(CHIN)}`);
  for (const index of JAW_ANGLES) {
    assert.ok(Math.abs(laugh(index)) < 0.02, `the jaw's angle ${index} moves by ${laugh(index)}`);
  }
});

test('lips that close meet in a seam without stairs', () => {
  const points = opened(16);
  const [cos, sin] = [Math.cos(0.15), Math.sin(0.15)];
  for (let i = 0; i < points.length; i += 3) {
    const [x, y] = [points[i]! - 256, points[i + 1]! - 320];
    points[i] = 256 + cos * x - sin * y;
    points[i + 1] = 320 + sin * x + cos * y;
  }
  const flat = (value: number): RgbImage => drawn(() => [value, value, value]);
  const frame = new MouthFrame(points);
  const closer = new SmileCloser(points, frame, { relax: 0, narrow: 0, smile: 0 });
  const { data } = closer.warp(flat(0), flat(0), flat(255));
  const rows = Array.from({ length: 60 }, (_, k) => 290 + k);
  const low = (x: number): number =>
    rows.reduce((sum, y) => sum + data[(y * SIZE + x) * 3]! / 255, 0);
  for (let x = 242; x < 270; x++) {
    assert.ok(Math.abs(low(x - 1) - 2 * low(x) + low(x + 1)) < 0.5, `a step at ${x}`);
  }
});

test('the corners of an open mouth do not hang when it closes', () => {
  const points = opened(40);
  // The jaw has taken the corners with it.
  for (const index of [...MOUTH_CORNERS, ...INNER_CORNERS]) {
    points[index * 3 + 1]! += 26;
  }
  const frame = new MouthFrame(points);
  const closed = new SmileCloser(points, frame, { relax: 1, narrow: 0.05, smile: 0 }).move(points);
  const below = py(closed, INNER_CORNERS[0]) - py(closed, UPPER_INNER[5]);
  assert.ok(below < 5, `the corner hangs ${below} below the middle of the seam`);
});

describe('the skin beside lips at rest', () => {
  const lip: Rgb = [178, 98, 92];
  const from = py(landmarks, LOWER_INNER[5]);
  const to = py(landmarks, LOWER_OUTER[5]);
  /** Luma and redness of what lies below the lower lip, after `rim` has been drawn there. */
  const cleared = (rim: Rgb): { image: RgbImage; at: number } => {
    const image = drawn((_, y) =>
      y > from && y < to ? lip : y >= to && y < to + 3 ? rim : undefined,
    );
    clearLipRim(image, landmarks, lip, 1);
    return { image, at: (Math.ceil(to + 1) * SIZE + 256) * 3 };
  };

  test('loses the red edge of lips that were thicker', () => {
    const { image, at } = cleared([184, 112, 102]);
    const [r, g] = [image.data[at]!, image.data[at + 1]!];
    assert.ok(r / g < 1.4, `red ${r}, green ${g} below the lip`);
  });

  test('keeps the dark of hair and of shadows', () => {
    const { image, at } = cleared([60, 38, 32]);
    assert.deepEqual([...image.data.subarray(at, at + 3)], [60, 38, 32]);
  });
});

test('lips of a black and white portrait stay grey, and about as light', () => {
  const grey = (value: number): Rgb => [value, value, value];
  const image = drawn((_, y) => grey(inLowerLip(y) ? 176 : 150));
  const { lower, upper } = lipColours(image, landmarks, nothing)!;
  for (const [r, g, b] of [lower, upper]) {
    assert.ok(r - Math.min(g, b) < 3, `${r}, ${g}, ${b}`);
  }
  assert.ok(lower[0] > 150, `${lower[0]} of 176`);
});

describe('an open mouth', () => {
  const frame = new MouthFrame(landmarks);
  const [left, right] = MOUTH_CORNERS;
  const seamY = py(landmarks, left);

  test('has its corners where the dark line between the lips ends, not in a fold', () => {
    const beyond = 0.1 * frame.halfWidth;
    const line = (rise: number): RgbImage =>
      drawn((x, y) => {
        const outside = Math.max(px(landmarks, left) - x, x - px(landmarks, right));
        const middle = seamY - rise * Math.max(0, outside);
        return outside < beyond && Math.abs(y + 0.5 - middle) < 2 ? [50, 20, 18] : undefined;
      });
    const width = (image: RgbImage): number => {
      const moved = snapToCorners(image, landmarks, frame);
      return px(moved, right) - px(moved, left);
    };
    const before = px(landmarks, right) - px(landmarks, left);
    const wider = width(line(0)) - before;
    assert.ok(Math.abs(wider - 2 * beyond) < 4, `wider by ${wider}, not by ${2 * beyond}`);
    assert.ok(width(line(2)) - before < beyond, 'a fold of the cheek was taken for the line');
    assert.equal(width(drawn(() => undefined)), before);
  });

  test('has its outline where the lips end, in any light, and keeps it if the lips are pale', () => {
    const to = py(landmarks, LOWER_OUTER[5]) + 0.02 * frame.faceHeight;
    const portrait = (lip: Rgb, darker: number): RgbImage =>
      drawn((x, y) => {
        const light = 1 - (darker * (x - 256)) / frame.halfWidth;
        const [r, g, b] = y > py(landmarks, LOWER_INNER[5]) && y + 0.5 < to ? lip : SKIN;
        return [r * light, g * light, b * light];
      });
    for (const darker of [0, 0.15]) {
      const image = portrait([178, 98, 92], darker);
      const moved = snapToOutline(image, landmarks, frame, nothing);
      for (const index of [LOWER_OUTER[4], LOWER_OUTER[5], LOWER_OUTER[6]]) {
        assert.ok(Math.abs(py(moved, index) - to) < 2, `${py(moved, index)} is not at ${to}`);
      }
      assert.equal(py(moved, LOWER_INNER[5]), py(landmarks, LOWER_INNER[5]));
    }
    const pale = snapToOutline(portrait(SKIN, 0), landmarks, frame, nothing);
    assert.deepEqual(pale, landmarks);
  });

  test('does not count the lower lip as open where it is pale', () => {
    const points = landmarks.slice();
    for (const index of [...LOWER_INNER, ...LOWER_OUTER].filter((i) => !MOUTH.has(i))) {
      points[index * 3 + 1]! += 20;
    }
    const seen = plane(SIZE, SIZE);
    const [from, to] = [py(points, UPPER_INNER[5]), py(points, LOWER_INNER[5])];
    const outer = py(points, LOWER_OUTER[5]);
    const at = (share: number): number => Math.round(to + share * (outer - to));
    for (let y = Math.ceil(from); y < to; y++) {
      seen.data.fill(1, y * SIZE + 236, y * SIZE + 276);
    }
    const image = drawn((_, y) => {
      const isGloss = y >= to && y < at(0.75);
      return y > from && y < to ? [225, 215, 200] : isGloss ? [215, 160, 165] : [178, 88, 92];
    });
    const opening = wholeOpening(image, points, seen);
    assert.equal(opening.data[at(0.5) * SIZE + 256], 0);
    assert.equal(opening.data[Math.round((from + to) / 2) * SIZE + 256], 1);
  });

  test('gets back lips that it has rolled in', () => {
    const points = landmarks.slice();
    const [inner, outer] = [py(points, UPPER_INNER[5]), py(points, UPPER_OUTER[5])];
    for (const index of UPPER_OUTER.filter((i) => !MOUTH.has(i))) {
      points[index * 3 + 1]! += 0.6 * (inner - outer);
    }
    const thickness = (gap: number): number => {
      const { seam, upper } = lipShape(points, frame, gap, 0.45);
      return seam(0) - upper(0);
    };
    const [closed, open] = [thickness(0), thickness(0.2)];
    assert.ok(open > 1.1 * closed && open < 1.8 * closed, `${open}, closed ${closed}`);
  });

  test('that closes has a seam that is darkest in the middle and fades at its ends', () => {
    const points = landmarks.slice();
    for (const index of [...LOWER_INNER, ...LOWER_OUTER].filter((i) => !MOUTH.has(i))) {
      points[index * 3 + 1]! += 20;
    }
    const open = new MouthFrame(points);
    const closer = new SmileCloser(points, open, { relax: 0, narrow: 0, smile: 0 });
    const image = drawn(() => undefined);
    closer.drawSeam(image, 1);
    const [from, to] = INNER_CORNERS.map((i) => px(points, i)) as [number, number];
    const darkest = (share: number): number => {
      const x = Math.round((from + to) / 2 + (share * (to - from)) / 2);
      const column = Array.from({ length: 80 }, (_, k) => Math.round(open.y) - 40 + k);
      return Math.min(...column.map((y) => image.data[(y * SIZE + x) * 3 + 1]!));
    };
    assert.ok(darkest(0) < darkest(0.5), 'the seam is as dark beside its middle');
    assert.ok(darkest(0.85) < darkest(0.5), 'the seam is not darker before the corner');
    assert.ok(darkest(1.06) > 155, `the seam ends abruptly: ${darkest(1.06)}`);
  });
});

test('an upper lip that was hidden has the colour of the lower one, not of the shadow at its edge', () => {
  const lip: Rgb = [190, 96, 84];
  const seam = py(landmarks, UPPER_INNER[5]);
  const thin = 0.75 * (seam - py(landmarks, UPPER_OUTER[5]));
  const unknown = plane(SIZE, SIZE);
  const image = drawn((x, y) => {
    if (y < seam && y > seam - thin) {
      unknown.data[y * SIZE + x] = 1;
    }
    return inLowerLip(y) ? lip : y < seam && y > seam - 30 ? [96, 52, 44] : undefined;
  });
  const { upper, seenAbove } = lipColours(image, landmarks, unknown)!;
  assert.ok(seenAbove < 0.35, `seen: ${seenAbove}`);
  assert.ok(upper[0] > 0.78 * lip[0], `red ${upper[0]} of ${lip[0]}`);
});

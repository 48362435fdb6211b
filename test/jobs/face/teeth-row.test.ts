// The row of teeth of a smile: measured and straightened.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { plane, type Plane } from '../../../src/jobs/face/imaging/image.ts';
import { bitingEdge, straighten } from '../../../src/jobs/face/regions/teeth-row.ts';
import { describeFace } from './face-checks.ts';
import { laughing } from './portraits.ts';

const WIDTH = 160;
const HEIGHT = 100;
const BOX = { left: 10, right: 150, top: 10, bottom: 90 };
const TALL = 20;

/** Teeth and the opening round them. @param end the lowest row of teeth, for x from -1 to 1 */
function smile(end: (x: number) => number): { row: Plane; opening: Plane } {
  const [row, opening] = [plane(WIDTH, HEIGHT), plane(WIDTH, HEIGHT)];
  for (let x = 30; x < 130; x++) {
    const last = Math.round(end((x - 79.5) / 69.5));
    for (let y = last - TALL + 1; y <= last; y++) {
      row.data[y * WIDTH + x] = 1;
      opening.data[y * WIDTH + x] = 1;
    }
  }
  return { row, opening };
}

test('a bent biting edge is measured, and straightened to the level of the corners', () => {
  for (const tilt of [0, 12]) {
    const { row, opening } = smile((x) => 60 - 30 * x * x + tilt * x);
    const edge = bitingEdge(row, BOX);
    assert.ok(Math.abs(edge.bend + 30) < 1.5, `${edge.bend}`);
    assert.ok(Math.abs(edge.slope - tilt) < 1, `${edge.slope}`);
    assert.ok(edge.unevenness < 0.03, `${edge.unevenness}`);
    const image = { width: WIDTH, height: HEIGHT, data: new Uint8Array(WIDTH * HEIGHT * 3) };
    image.data.forEach((_, i) => {
      image.data[i] = 200 * row.data[Math.floor(i / 3)]!;
    });
    straighten(image, row, BOX, opening, edge);
    const straight = bitingEdge(row, BOX);
    assert.ok(straight.bend > -0.4 * TALL && straight.bend < 0, `${straight.bend}`);
    // A head that leans keeps its teeth parallel to its mouth.
    assert.ok(Math.abs(straight.slope - tilt) < 2, `${straight.slope}`);
    // The colours move with the mask.
    const wrong = row.data.filter((tooth, i) => tooth !== (image.data[3 * i]! > 100 ? 1 : 0));
    assert.ok(wrong.length < 10, `${wrong.length}`);
  }
});

test('shade that has eaten into the teeth makes their edge uneven', () => {
  const { row } = smile((x) => 60 - 12 * x * x - (Math.floor(x * 8) % 2 === 0 ? 5 : 0));
  assert.ok(bitingEdge(row, BOX).unevenness > 0.1);
});

test("a laughing portrait's teeth go on to the sides when its corners have sunk", async () => {
  const { parts } = await describeFace(await laughing('mei', { x: 516, y: 598, halfWidth: 88 }));
  const { alpha, width, height } = parts.teethUpper!;
  const row = plane(width, height);
  alpha.forEach((value, i) => {
    row.data[i] = value / 255;
  });
  const { bend } = bitingEdge(row, { left: 0, right: width, top: 0, bottom: height });
  assert.ok(bend > -0.3 * height, `${bend} of ${height}`);
});

// A portrait in low light becomes the same face as in good light, only darker.
import assert from 'node:assert/strict';
import sharp from 'sharp';
import { test } from 'vitest';
import type { FacePatch, FaceTints } from '../../../src/media/face-asset.ts';
import { partsOf } from './face-checks.ts';
import { laughing } from './portraits.ts';

const GAIN = 0.36;

test('a laugh in low light gets the mouth, the lids and the teeth of one in good light', async () => {
  const portrait = await laughing('mei', { x: 516, y: 598, halfWidth: 88 });
  const lit = await partsOf(portrait);
  const dim = await partsOf(await sharp(portrait).linear(GAIN, 0).png().toBuffer());

  const shown = lit.landmarks.map((value, i) => Math.abs(value - dim.landmarks[i]!));
  assert.ok(Math.max(...shown) < 4, `landmarks differ by ${Math.max(...shown)}`);
  // The mouth, which was closed.
  const [left, right] = [lit.landmarks[61 * 3]!, lit.landmarks[291 * 3]!];
  const middle = lit.landmarks[13 * 3 + 1]!;
  let [sum, count] = [0, 0];
  for (let y = Math.round(middle - 30); y < middle + 30; y++) {
    for (let x = Math.round(left); x < right; x++, count++) {
      const [a, b] = [lit, dim].map(({ neutral }) => neutral[y * lit.width + x]! - 16) as [
        number,
        number,
      ];
      sum += Math.abs(a - b / GAIN);
    }
  }
  assert.ok(sum / count < 9, `the mouth differs by ${sum / count}`);
  for (const name of ['teeth', 'tongue', 'gums'] satisfies (keyof FaceTints)[]) {
    const [a, b] = [lit.tints[name], dim.tints[name]];
    assert.ok(Math.abs(a[0] - 16 - (b[0] - 16) / GAIN) < 10, `${name} ${a.join()} and ${b.join()}`);
    for (const c of [1, 2] as const) {
      assert.ok(Math.abs(a[c] - 128 - (b[c] - 128) / GAIN) < 5, `${name} ${a.join()}, ${b.join()}`);
    }
  }
  const lid = ({ luma, alpha }: FacePatch): number => {
    const shades = [...luma].filter((_, i) => alpha[i] === 255);
    return shades.reduce((total, value) => total + value - 16, 0) / shades.length;
  };
  const [a, b] = [lid(lit.lidLeft!), lid(dim.lidLeft!) / GAIN];
  assert.ok(Math.abs(a / b - 1) < 0.06, `lids of ${a} and ${b}`);
});

// Faces from portraits, and what holds for each of them: for the tests of face creation.
import assert from 'node:assert/strict';
import { createFace, type CreatedFace } from '../../../src/jobs/face/create-face.ts';
import { FaceLandmarker } from '../../../src/jobs/face/detect/face-landmarker.ts';
import { FaceError, type FaceErrorCode } from '../../../src/jobs/face/face-error.ts';
import {
  BREATH_CELL,
  decodeFaceAsset,
  type FaceAssetParts,
} from '../../../src/media/face-asset.ts';

/** Loaded once for all tests of a file. */
const landmarker = FaceLandmarker.load();

/** Creates a face from a portrait. @throws FaceError when it is refused */
export const create = async (bytes: Uint8Array): Promise<CreatedFace> =>
  createFace(bytes, { name: 'test', landmarker: await landmarker });
/** The parts of the face of a portrait, and the warnings. */
export const describeFace = async (bytes: Uint8Array) => {
  const { asset, warnings } = await create(bytes);
  return { parts: decodeFaceAsset(asset), warnings };
};
export const partsOf = async (bytes: Uint8Array): Promise<FaceAssetParts> =>
  decodeFaceAsset((await create(bytes)).asset);
/** Where landmark `index` is in the crop. */
export const at = ({ landmarks }: FaceAssetParts, index: number): [number, number] => [
  landmarks[index * 3]!,
  landmarks[index * 3 + 1]!,
];
/** Asserts that a portrait is refused with `code`. */
export const rejects = async (bytes: Uint8Array, code: FaceErrorCode): Promise<void> =>
  assert.rejects(create(bytes), (error: unknown) => {
    assert.ok(error instanceof FaceError, String(error));
    assert.equal(error.code, code);
    return true;
  });

/**
 * Checks what holds for every asset: features in their places, a matte that covers the face and
 * fades to the border, patches over the eyes.
 */
export function assertSound(parts: FaceAssetParts): void {
  const [[lx, ly], [rx, ry]] = [at(parts, 33), at(parts, 263)];
  assert.ok(rx - lx > 80 && rx - lx < 230, `eyes ${rx - lx} apart`);
  assert.ok(Math.abs(Math.atan2(ry - ly, rx - lx)) < (10 * Math.PI) / 180, 'nearly upright');
  const [noseX, noseY] = at(parts, 1);
  assert.ok(Math.abs(noseX - 256) < 90 && noseY > 180 && noseY < 380, 'in the middle');
  const [, chinY] = at(parts, 152);
  assert.ok(chinY > noseY + 40 && chinY < 500);
  for (const [upper, lower] of [
    [13, 14],
    [81, 178],
    [311, 402],
  ] as const) {
    assert.deepEqual(at(parts, upper), at(parts, lower), 'lips together');
  }
  const weight = (x: number, y: number): number =>
    parts.matte[Math.round(y) * parts.width + Math.round(x)]!;
  assert.ok(weight(noseX, noseY) === 255 && weight(lx, ly) === 255 && weight(rx, ry) === 255);
  // At the upper edge, where many heads are cut off, the renderer sees to it.
  for (let i = 0; i < 512; i++) {
    assert.ok([weight(0, i), weight(511, i), weight(i, 511)].every((value) => value <= 8));
  }
  for (let i = 1; i < parts.matte.length; i++) {
    if (i % 512 !== 0) {
      assert.ok(Math.abs(parts.matte[i]! - parts.matte[i - 1]!) <= 8);
    }
  }
  for (let i = 512; i < parts.matte.length; i++) {
    assert.ok(Math.abs(parts.matte[i]! - parts.matte[i - 512]!) <= 8);
  }
  const across = parts.width / BREATH_CELL;
  const breath = (x: number, y: number): number =>
    parts.shoulders![Math.floor(y / BREATH_CELL) * across + Math.floor(x / BREATH_CELL)]!;
  assert.ok(chinY > 400 || breath(noseX, 511) > 128, 'the chest breathes');
  assert.ok(breath(noseX, noseY) === 0 && breath(2, 2) === 0 && breath(509, 2) === 0);
  for (const [lid, x, y] of [
    [parts.lidLeft, (lx + at(parts, 133)[0]) / 2, ly],
    [parts.lidRight, (rx + at(parts, 362)[0]) / 2, ry],
  ] as const) {
    assert.ok(lid && x > lid.x && x < lid.x + lid.width && y > lid.y && y < lid.y + lid.height);
    assert.ok(lid.alpha[Math.round(y - lid.y) * lid.width + Math.round(x - lid.x)]! > 200);
    for (let column = 0; column < lid.width; column++) {
      assert.ok(lid.alpha[column]! < 40 && lid.alpha[(lid.height - 1) * lid.width + column]! < 40);
    }
  }
}

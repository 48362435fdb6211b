// The closed eye: skin of the lid in place of the eye, invented from its surroundings, with the portrait's own grain.
import { clamp, plane, type Plane, type RgbImage, smoothstep } from './image.ts';
import { lumaAt, median } from './colour.ts';
import { blur, type Curve, curveThrough, polygonMask, type Point } from './curve.ts';
import { fillUnknown } from './inpaint.ts';
import { CHEEKS, type EyeIndices, type Landmarks, px, py } from './landmarks.ts';
import type { Light } from './skin.ts';
import { noiseSource } from './noise.ts';
import { type Box, cutPatch } from './sprite.ts';
import type { FacePatch } from '../../media/face-asset.ts';

/** Lid skin where the eye is, lashes left out (they move with the lid's edge); alpha is full over the opening and soft round it. */
export function closedEye(image: RgbImage, points: Landmarks, eye: EyeIndices, light: Light, seed: number): FacePatch {
  const outline = lidOutline(points, eye);
  const mask = polygonMask(image.width, image.height, outline);
  const lid: RgbImage = { width: image.width, height: image.height, data: image.data.slice() };
  // Lashes and liner round the opening would bleed into the fill, so its rim is unknown too.
  const wide = polygonMask(image.width, image.height, grow(outline, 1.06, 2));
  fillUnknown(lid, Uint8Array.from(wide.data, (value) => value > 0 ? 0 : 1));
  const box = boxOf(outline, 6, image);
  const upper = curveThrough([eye.outer, ...eye.upper, eye.inner].map((i) => ({ x: px(points, i), y: py(points, i) })));
  const lower = curveThrough([eye.outer, ...eye.lower, eye.inner].map((i) => ({ x: px(points, i), y: py(points, i) })));
  shadeLid(lid, wide, box, upper, lower);
  addGrain(lid, wide, box, light.grain, seed);
  drawLashes(lid, points, eye, light);
  return cutPatch(lid, blur(mask, 1.5), box);
}

/** The eye's opening with the margin that lashes and lid rim take. */
function lidOutline(points: Landmarks, { outer, inner, upper, lower }: EyeIndices): Point[] {
  const at = (index: number): Point => ({ x: px(points, index), y: py(points, index) });
  const ring = [outer, ...upper, inner, ...lower.toReversed()].map(at);
  const heights = [...upper, ...lower].map((index) => py(points, index));
  const opening = Math.max(...heights) - Math.min(...heights);
  const cx = ring.reduce((sum, { x }) => sum + x, 0) / ring.length;
  return ring.map(({ x, y }, i) => {
    const lift = i === 0 || i === upper.length + 1 ? 0 : i <= upper.length ? -.45 * opening - 1 : .22 * opening + 1;
    return { x: cx + (x - cx) * 1.18, y: y + lift };
  });
}

function grow(outline: readonly Point[], factor: number, margin: number): Point[] {
  const cx = outline.reduce((sum, { x }) => sum + x, 0) / outline.length;
  const cy = outline.reduce((sum, { y }) => sum + y, 0) / outline.length;
  return outline.map(({ x, y }) => {
    const length = Math.hypot(x - cx, y - cy) || 1;
    return { x: cx + (x - cx) * (factor + margin / length), y: cy + (y - cy) * (factor + margin / length) };
  });
}

function boxOf(outline: readonly Point[], margin: number, image: RgbImage): Box {
  return {
    left: Math.max(0, Math.floor(Math.min(...outline.map(({ x }) => x)) - margin)),
    top: Math.max(0, Math.floor(Math.min(...outline.map(({ y }) => y)) - margin)),
    right: Math.min(image.width, Math.ceil(Math.max(...outline.map(({ x }) => x)) + margin)),
    bottom: Math.min(image.height, Math.ceil(Math.max(...outline.map(({ y }) => y)) + margin)),
  };
}

/** A lid is a part of a ball: lighter where it bulges, darker in the crease above and towards the lash line. */
function shadeLid(lid: RgbImage, mask: Plane, box: Box, upper: Curve, lower: Curve): void {
  const soft = blur(mask, 2);
  for (let y = box.top; y < box.bottom; y++) {
    for (let x = box.left; x < box.right; x++) {
      const i = y * lid.width + x;
      const weight = soft.data[i]!;
      if (weight < .01) continue;
      const top = upper(x + .5);
      const open = Math.max(2, lower(x + .5) - top);
      const t = (y + .5 - (top - .35 * open)) / (1.35 * open);
      const gain = 1 + weight * (.055 * Math.sin(Math.PI * clamp(t, 0, 1)) - .05 * smoothstep(.8, 1.05, t) - .05 * Math.exp(-(((t + .02) / .10) ** 2)));
      for (let c = i * 3; c < i * 3 + 3; c++) lid.data[c] = clamp(lid.data[c]! * gain + .5, 0, 255);
    }
  }
}

function addGrain(lid: RgbImage, mask: Plane, box: Box, grain: number, seed: number): void {
  const noise = noiseSource(seed);
  const field = plane(box.right - box.left, box.bottom - box.top);
  for (let i = 0; i < field.data.length; i++) field.data[i] = noise();
  const soft = blur(field, .6);
  for (let k = 0; k < field.data.length; k++) {
    const i = (Math.floor(k / field.width) + box.top) * lid.width + k % field.width + box.left;
    const delta = soft.data[k]! * Math.min(6, 1.8 * grain) * mask.data[i]!;
    for (let c = i * 3; c < i * 3 + 3; c++) lid.data[c] = clamp(lid.data[c]! + delta + .5, 0, 255);
  }
}

/** The line where the lids meet, on the lower lid's curve and sagging a tenth of the eye's height, with short lashes below. */
function drawLashes(lid: RgbImage, points: Landmarks, eye: EyeIndices, { skin }: Light): void {
  const at = (index: number): Point => ({ x: px(points, index), y: py(points, index) });
  const upper = curveThrough([eye.outer, ...eye.upper, eye.inner].map(at));
  const lower = curveThrough([eye.outer, ...eye.lower, eye.inner].map(at));
  const left = Math.min(px(points, eye.outer), px(points, eye.inner));
  const right = Math.max(px(points, eye.outer), px(points, eye.inner));
  const height = Math.max(3, lower((left + right) / 2) - upper((left + right) / 2));
  const thickness = .9 + .045 * height;
  const outwards = Math.sign(px(points, eye.outer) - px(points, eye.inner));
  for (let x = Math.floor(left) - 2; x <= right + 2; x++) {
    const t = clamp((x + .5 - left) / (right - left), 0, 1);
    const line = lower(x + .5) + .10 * height * Math.sin(Math.PI * t);
    const fade = smoothstep(-.06, .08, (x + .5 - left) / (right - left)) * smoothstep(1.06, .92, (x + .5 - left) / (right - left));
    // Lashes are longer and denser towards the outer corner.
    const outer = outwards > 0 ? t : 1 - t;
    const lash = (.8 + 1.5 * outer) * thickness;
    for (let y = Math.floor(line - 4 * thickness); y <= line + lash + 4; y++) {
      if (y < 0 || y >= lid.height || x < 0 || x >= lid.width) continue;
      const d = y + .5 - line;
      const dark = fade * .72 * (d < 0 ? Math.exp(-((d / thickness) ** 2)) : Math.exp(-((d / lash) ** 2)));
      const i = (y * lid.width + x) * 3;
      for (let c = 0; c < 3; c++) lid.data[i + c] = lid.data[i + c]! * (1 - dark) + (.12 * skin[c]! + 6) * dark;
    }
  }
}

/** Dark glasses: what lies round the eye is as dark as the eye, and far darker than the cheek. */
export function eyesHidden(image: RgbImage, points: Landmarks, eye: EyeIndices): boolean {
  const luma = (index: number): number => lumaAt(image, clamp(Math.round(py(points, index)), 0, image.height - 1) * image.width + clamp(Math.round(px(points, index)), 0, image.width - 1));
  const cheek = median(CHEEKS.map(luma));
  const ring = median([...eye.under, ...eye.crease].map(luma));
  return ring < .42 * cheek;
}

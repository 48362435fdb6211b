// How wide a face is at each height.
import type { Curve, Point } from '../imaging/curve.ts';
import { clamp } from '../imaging/image.ts';

/** How far an outline lies to the left and to the right of u = 0, over v. */
export function outlineOf(outline: readonly Point[]): [Curve, Curve] {
  const top = Math.floor(Math.min(...outline.map(({ y }) => y)));
  const bottom = Math.ceil(Math.max(...outline.map(({ y }) => y)));
  const sides = [0, 1].map(() => new Float32Array(bottom - top + 1));
  for (const [k, a] of outline.entries()) {
    const b = outline[(k + 1) % outline.length]!;
    for (let v = Math.ceil(Math.min(a.y, b.y)); v <= Math.max(a.y, b.y); v++) {
      const u = a.x + ((b.x - a.x) * (v - a.y)) / (b.y - a.y || 1);
      const side = sides[u < 0 ? 0 : 1]!;
      side[v - top] = Math.max(side[v - top]!, Math.abs(u));
    }
  }
  return sides.map((side): Curve => (v) => {
    const at = clamp(v - top, 0, bottom - top - 1);
    const [k, t] = [Math.floor(at), at % 1];
    return side[k]! * (1 - t) + side[k + 1]! * t;
  }) as [Curve, Curve];
}

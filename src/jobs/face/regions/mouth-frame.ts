// The mouth's own coordinates, and what every treatment of the lips shares.
import type { Point } from '../imaging/curve.ts';
import {
  CHIN,
  LEFT_EYE,
  LOWER_INNER,
  NOSE_BRIDGE,
  RIGHT_EYE,
  UPPER_INNER,
  type Landmarks,
  px,
  py,
} from '../detect/landmarks.ts';

/** Coordinates with the mouth's centre as origin and the eye line as x axis; pixels. */
export class MouthFrame {
  readonly x: number;
  readonly y: number;
  readonly cos: number;
  readonly sin: number;
  /** Half the distance of the mouth's corners. */
  readonly halfWidth: number;
  /** From the bridge of the nose to the chin. */
  readonly faceHeight: number;

  constructor(points: Landmarks) {
    const angle = Math.atan2(
      py(points, RIGHT_EYE.outer) - py(points, LEFT_EYE.outer),
      px(points, RIGHT_EYE.outer) - px(points, LEFT_EYE.outer),
    );
    this.cos = Math.cos(angle);
    this.sin = Math.sin(angle);
    this.x = (px(points, 61) + px(points, 291)) / 2;
    this.y = (py(points, 61) + py(points, 291)) / 2;
    this.halfWidth =
      Math.hypot(px(points, 61) - px(points, 291), py(points, 61) - py(points, 291)) / 2;
    this.faceHeight = Math.hypot(
      px(points, NOSE_BRIDGE) - px(points, CHIN),
      py(points, NOSE_BRIDGE) - py(points, CHIN),
    );
  }

  toLocal(x: number, y: number): Point {
    return {
      x: this.cos * (x - this.x) + this.sin * (y - this.y),
      y: -this.sin * (x - this.x) + this.cos * (y - this.y),
    };
  }

  toPicture(u: number, v: number): Point {
    return { x: this.x + this.cos * u - this.sin * v, y: this.y + this.sin * u + this.cos * v };
  }

  local(points: Landmarks, indices: readonly number[]): Point[] {
    return indices.map((index) => this.toLocal(px(points, index), py(points, index)));
  }
}

/** The closed mouth's two inner contours become one. */
export function joinInnerLips(points: Landmarks): void {
  for (let k = 0; k < UPPER_INNER.length; k++) {
    const a = UPPER_INNER[k]!;
    const b = LOWER_INNER[k]!;
    for (let c = 0; c < 3; c++) {
      const middle = (points[a * 3 + c]! + points[b * 3 + c]!) / 2;
      points[a * 3 + c] = middle;
      points[b * 3 + c] = middle;
    }
  }
}

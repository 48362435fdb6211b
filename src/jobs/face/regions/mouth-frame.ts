// Coordinates relative to the mouth, for all code that processes the lips.
import type { Point } from '../imaging/curve.ts';
import {
  CHIN,
  LEFT_EYE,
  LOWER_INNER,
  MOUTH_CORNERS,
  NOSE_BRIDGE,
  RIGHT_EYE,
  UPPER_INNER,
  type Landmarks,
  px,
  py,
} from '../detect/landmarks.ts';

/**
 * A coordinate system with the centre of the mouth as origin and the x axis parallel to the eye
 * line; pixels. Its coordinates are called u and v.
 */
export class MouthFrame {
  /** The centre of the mouth in the picture. */
  readonly x: number;
  readonly y: number;
  /** Of the angle of the eye line. */
  readonly cos: number;
  readonly sin: number;
  /** Half the distance between the corners of the mouth, pixels. */
  readonly halfWidth: number;
  /** Distance between the outer corners of the eyes, pixels. */
  readonly eyeDistance: number;
  /** Distance from the bridge of the nose to the chin, pixels. */
  readonly faceHeight: number;

  constructor(points: Landmarks) {
    const across = px(points, RIGHT_EYE.outer) - px(points, LEFT_EYE.outer);
    const down = py(points, RIGHT_EYE.outer) - py(points, LEFT_EYE.outer);
    const angle = Math.atan2(down, across);
    this.eyeDistance = Math.max(1, Math.hypot(across, down));
    this.cos = Math.cos(angle);
    this.sin = Math.sin(angle);
    const [left, right] = MOUTH_CORNERS;
    this.x = (px(points, left) + px(points, right)) / 2;
    this.y = (py(points, left) + py(points, right)) / 2;
    this.halfWidth =
      Math.hypot(px(points, left) - px(points, right), py(points, left) - py(points, right)) / 2;
    this.faceHeight = Math.hypot(
      px(points, NOSE_BRIDGE) - px(points, CHIN),
      py(points, NOSE_BRIDGE) - py(points, CHIN),
    );
  }

  /** From picture coordinates to mouth coordinates. */
  toLocal(x: number, y: number): Point {
    return {
      x: this.cos * (x - this.x) + this.sin * (y - this.y),
      y: -this.sin * (x - this.x) + this.cos * (y - this.y),
    };
  }

  /** From mouth coordinates to picture coordinates. */
  toPicture(u: number, v: number): Point {
    return { x: this.x + this.cos * u - this.sin * v, y: this.y + this.sin * u + this.cos * v };
  }

  /** The landmarks `indices` in mouth coordinates. */
  local(points: Landmarks, indices: readonly number[]): Point[] {
    return indices.map((index) => this.toLocal(px(points, index), py(points, index)));
  }
}

/** Moves the inner contours of both lips onto their mean: those of a closed mouth coincide. */
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

// The face as an upright ellipse, for measures of distance from it.
import { FACE_OVAL, type Landmarks, px, py } from '../detect/landmarks.ts';

/** Centre and radii, pixels. */
export interface Ellipse {
  readonly x: number;
  readonly y: number;
  readonly rx: number;
  readonly ry: number;
}

/** The ellipse in the bounding box of the face's outline. */
export function faceEllipse(points: Landmarks): Ellipse {
  const xs = FACE_OVAL.map((i) => px(points, i));
  const ys = FACE_OVAL.map((i) => py(points, i));
  const [left, right, top, bottom] = [
    Math.min(...xs),
    Math.max(...xs),
    Math.min(...ys),
    Math.max(...ys),
  ];
  return {
    x: (left + right) / 2,
    y: (top + bottom) / 2,
    rx: (right - left) / 2,
    ry: (bottom - top) / 2,
  };
}

/** Distance of a position from the centre, in units of the ellipse: 0 in the centre, 1 on it. */
export function distanceFrom({ x, y, rx, ry }: Ellipse, atX: number, atY: number): number {
  const [across, down] = [(atX - x) / rx, (atY - y) / ry];
  // Math.hypot takes several times as long.
  return Math.sqrt(across * across + down * down);
}

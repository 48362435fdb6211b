// Moves the corners and the outer contours of the lips of an open mouth to where the picture shows
// them. FaceMesh puts the corners of a parted mouth too close together and its contours beside the
// edges of the lips: what lies outside them would stay behind beside the closed lips.
import { type Lab, labAt, median, medianLab } from '../imaging/colour.ts';
import { type Curve, curveThrough, lineThrough, type Point } from '../imaging/curve.ts';
import { clamp, type Plane, plane, type RgbImage, sampleAt, smoothstep } from '../imaging/image.ts';
import { blur } from '../imaging/mask.ts';
import { cheapestPath } from '../imaging/path.ts';
import {
  INNER_CORNERS,
  type Landmarks,
  LOWER_INNER,
  LOWER_LIP,
  LOWER_OUTER,
  MOUTH_CORNERS,
  px,
  py,
  UPPER_INNER,
  UPPER_LIP,
  UPPER_OUTER,
} from '../detect/landmarks.ts';
import { lumaPlane } from './lip-seam.ts';
import type { MouthFrame } from './mouth-frame.ts';

/** How far outwards a corner may lie, half widths of the mouth. */
const OUTWARDS = 0.16;
/** Contrast of the dark line at the corner to the skin above and below, share of the skin's luma. */
const CORNER_DARK = 0.2;
/** Steepest rise or fall of that line, pixels per pixel across. */
const STEEPEST = 0.3;
/** Where that skin is: distance from the line, half widths. */
const BESIDE_CORNER = 0.13;

/** Moves the corners of an open mouth outwards along the dark line between the lips. */
export function snapToCorners(image: RgbImage, points: Landmarks, frame: MouthFrame): Landmarks {
  const luma = blur(lumaPlane(image), 0.006 * frame.faceHeight);
  const at = (u: number, v: number): number => {
    const { x, y } = frame.toPicture(u, v);
    return sampleAt(luma, x - 0.5, y - 0.5);
  };
  const beside = BESIDE_CORNER * frame.halfWidth;
  const shifts = MOUTH_CORNERS.map((corner, side): Point => {
    const way = side === 0 ? -1 : 1;
    const from = frame.local(points, [corner])[0]!;
    const darkest = (u: number, v: number, reach: number): number => {
      let best = v;
      for (let d = -reach; d <= reach; d += 0.25) {
        if (at(u, v + d) < at(u, best)) {
          best = v + d;
        }
      }
      return best;
    };
    const start = darkest(from.x, from.y, 0.5 * beside);
    let v = start;
    let found: Point = { x: 0, y: 0 };
    for (let d = 0; d <= OUTWARDS * frame.halfWidth; d += 0.5) {
      const u = from.x + way * d;
      v = darkest(u, v, 0.25);
      const skin = Math.min(at(u, v - beside), at(u, v + beside));
      // A fold of the cheek rises more steeply than the line between the lips.
      const steep = Math.abs(v - start) > STEEPEST * (d + 2);
      if (steep || skin - at(u, v) < CORNER_DARK * skin) {
        break;
      }
      found = { x: way * d, y: v - from.y };
    }
    return found;
  });
  const middle = frame.local(points, MOUTH_CORNERS).reduce((sum, { x }) => sum + x / 2, 0);
  const moved = points.slice();
  for (const index of new Set([...UPPER_LIP, ...LOWER_LIP, ...MOUTH_CORNERS, ...INNER_CORNERS])) {
    const { x, y } = frame.toLocal(px(points, index), py(points, index));
    const shift = shifts[x < middle ? 0 : 1]!;
    const weight = Math.min(1, Math.abs(x - middle) / frame.halfWidth) ** 2;
    const to = frame.toPicture(x + shift.x * weight, y + shift.y * weight);
    moved[index * 3] = to.x;
    moved[index * 3 + 1] = to.y;
  }
  return moved;
}

/** Places from the left to the right corner at which the edge is searched. */
const COLUMNS = 41;
/** How far from the contour, share of the face's height. */
const REACH = 0.04;
/** Share of the difference in lightness that counts: the skin beside lips may lie in shadow. */
const LIGHTNESS = 0.5;
/** Difference of the colours of lips and skin: too small to find the edge, and enough. */
const TELLS: readonly [number, number] = [5, 10];
/** What a step of half a pixel between columns costs, and a distance of the whole reach. */
const BEND = 0.25;
const DISTANT = 2;

/**
 * Moves the outer contours of both lips to their edges.
 * @param opening where the mouth is open, 0..1 per pixel
 */
export function snapToOutline(
  image: RgbImage,
  points: Landmarks,
  frame: MouthFrame,
  opening: Plane,
): Landmarks {
  const moved = points.slice();
  const inner = [UPPER_INNER, LOWER_INNER].map((lip) => frame.local(points, lip));
  const middle = curveThrough(
    inner[0]!.map(({ x, y }, i) => ({
      x: (x + inner[1]![i]!.x) / 2,
      y: (y + inner[1]![i]!.y) / 2,
    })),
  );
  for (const [indices, outer, way] of [
    [UPPER_LIP, UPPER_OUTER, -1],
    [LOWER_LIP, LOWER_OUTER, 1],
  ] as const) {
    const contour = frame.local(points, outer);
    const border = roundedOff(curveThrough(contour), middle, contour, way);
    const edge = edgeOf(image, frame, opening, { middle, border, contour, way });
    if (!edge) {
      continue;
    }
    const old = curveThrough(contour);
    for (const index of indices) {
      const { x, y } = frame.toLocal(px(points, index), py(points, index));
      const thick = (old(x) - middle(x)) * way;
      const weight = thick > 0.5 ? clamp(((y - middle(x)) * way) / thick, 0, 1) : 1;
      const to = frame.toPicture(x, y + (edge(x) - old(x)) * weight);
      moved[index * 3] = to.x;
      moved[index * 3 + 1] = to.y;
    }
  }
  return moved;
}

/** Lines along a lip, in the mouth's coordinates, and where it lies: -1 above, 1 below. */
interface Lip {
  readonly middle: Curve;
  readonly border: Curve;
  readonly contour: readonly Point[];
  readonly way: 1 | -1;
}

/** The contour with ends that taper to the corners: FaceMesh may draw them as walls. */
function roundedOff(outer: Curve, middle: Curve, contour: readonly Point[], way: 1 | -1): Curve {
  const [left, right] = [contour[0]!.x, contour.at(-1)!.x];
  const [centre, half] = [(left + right) / 2, Math.max(1, (right - left) / 2)];
  const most = Math.max(1, (outer(centre) - middle(centre)) * way);
  return (u) => {
    const taper = 2.2 * most * Math.max(0, 1 - Math.abs(u - centre) / half) ** 0.75;
    return middle(u) + way * Math.min(Math.max(0, (outer(u) - middle(u)) * way), taper);
  };
}

/** The lip's edge; undefined where its colour is too much like the skin's. */
function edgeOf(
  image: RgbImage,
  frame: MouthFrame,
  opening: Plane,
  { middle, border, contour, way }: Lip,
): Curve | undefined {
  const reach = Math.max(3, REACH * frame.faceHeight);
  const [left, right] = [contour[0]!.x, contour.at(-1)!.x];
  const columns = Array.from(
    { length: COLUMNS },
    (_, k) => left + ((right - left) * k) / (COLUMNS - 1),
  );
  /** Where the opening ends. */
  const ends = columns.map((u) => {
    let end = middle(u);
    for (let d = 0; d < Math.abs(border(u) - middle(u)) + reach; d += 0.5) {
      const { x, y } = frame.toPicture(u, middle(u) + way * d);
      if (sampleAt(opening, x - 0.5, y - 0.5) > 0.5) {
        end = middle(u) + way * d;
      }
    }
    return end;
  });
  const labOf = (u: number, v: number): Lab => {
    const { x, y } = frame.toPicture(u, v);
    const column = clamp(Math.floor(x), 0, image.width - 1);
    return labAt(image, clamp(Math.floor(y), 0, image.height - 1) * image.width + column);
  };
  const [lips, skins, sides]: [Lab[], Lab[], number[]] = [[], [], []];
  for (const [k, u] of columns.entries()) {
    if (Math.abs(k / (COLUMNS - 1) - 0.5) > 0.33) {
      continue;
    }
    for (let t = 0.3; t <= 0.7; t += 0.1) {
      lips.push(labOf(u, ends[k]! + t * (border(u) - ends[k]!)));
      skins.push(labOf(u, border(u) + way * reach * (1 + t)));
      sides.push(u);
    }
  }
  // Gloss is paler than the lip.
  const red = median(lips.map(({ a }) => a));
  const [lip, skin] = [medianLab(lips.filter(({ a }) => a >= red - 0.01)), medianLab(skins)];
  const axis = [LIGHTNESS * (lip.l - skin.l), lip.a - skin.a, lip.b - skin.b] as const;
  const apart = Math.hypot(...axis);
  const amount = smoothstep(...TELLS, apart);
  if (amount === 0) {
    return undefined;
  }
  // The light may fall from one side.
  const { slope } = lineThrough(skins.map(({ l }, k) => ({ x: sides[k]!, y: l })));
  const likeLip = blur(
    lipLike(image, frame, (lab, u) =>
      clamp(
        (LIGHTNESS * (lab.l - skin.l - slope * u) * axis[0] +
          (lab.a - skin.a) * axis[1] +
          (lab.b - skin.b) * axis[2]) /
          apart ** 2,
        0,
        1,
      ),
    ),
    0.8,
  );
  const steps = 2 * Math.ceil(2 * reach) + 1;
  const offset = (k: number): number => ((k / (steps - 1)) * 2 - 1) * reach;
  const costs = columns.map((u, column) => {
    // What is beyond the edge should be skin, and what is before it lip.
    const like = Float32Array.from({ length: steps }, (_, k) => {
      const v = border(u) + way * offset(k);
      const { x, y } = frame.toPicture(u, v);
      return (v - ends[column]!) * way < 1 ? 1 : sampleAt(likeLip, x - 0.5, y - 0.5);
    });
    const step = offset(1) - offset(0);
    let error = like.reduce((sum, value) => sum + value * step, 0);
    return like.map((value, k) => {
      error += step * (1 - 2 * value);
      const inside = Math.max(0, 1 - (border(u) + way * offset(k) - ends[column]!) * way);
      return error + DISTANT * (offset(k) / reach) ** 2 + 3 * inside;
    });
  });
  const path = cheapestPath(costs, BEND).map((k, column) => {
    const trust = smoothstep(0, 0.1, Math.min(column, COLUMNS - 1 - column) / COLUMNS);
    return amount * trust * offset(k);
  });
  const old = curveThrough(contour);
  return curveThrough(
    columns.map((u, i) => {
      const near = [-1, 0, 1].map((d) => path[clamp(i + d, 0, COLUMNS - 1)]!);
      const shift = (near[0]! + near[1]! + near[2]!) / 3;
      return { x: u, y: (1 - amount) * old(u) + amount * border(u) + way * shift };
    }),
  );
}

/** How much each pixel near the mouth is like the lip, 0..1. */
function lipLike(image: RgbImage, frame: MouthFrame, like: (lab: Lab, u: number) => number): Plane {
  const found = plane(image.width, image.height);
  for (let i = 0; i < found.data.length; i++) {
    const [x, y] = [i % image.width, Math.floor(i / image.width)];
    const { x: u, y: v } = frame.toLocal(x + 0.5, y + 0.5);
    if (Math.max(Math.abs(u), Math.abs(v)) < 2 * frame.halfWidth) {
      found.data[i] = like(labAt(image, i), u);
    }
  }
  return found;
}

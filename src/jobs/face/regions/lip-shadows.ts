// Draws the shadows that lips at rest have and a smile has not: the pits at the corners of the mouth,
// and the shadow below the lower lip. Measured on 198 portraits at rest and 139 whose mouth was closed
// here: those had half of the shadow at their corners, and hardly any below the lip, and looked painted.
import { lumaAt, median } from '../imaging/colour.ts';
import { type Curve, curveThrough, type Point } from '../imaging/curve.ts';
import { shadePixel } from '../imaging/flesh.ts';
import { clamp, type RgbImage } from '../imaging/image.ts';
import { type Landmarks, LOWER_INNER, LOWER_OUTER, MOUTH_CORNERS } from '../detect/landmarks.ts';
import { MouthFrame } from './mouth-frame.ts';

/**
 * A shadow: the luma that it gets at least, share of that of the skin beside it, and its most depth.
 * Portraits at rest have .42 in the pits and .74 below the lip in the median. Pits that deep look like
 * smudges where the rest of the face smiles: judges refused them.
 */
interface Shadow {
  readonly target: number;
  readonly depth: number;
}
const PIT: Shadow = { target: 0.5, depth: 0.36 };
const BELOW: Shadow = { target: 0.76, depth: 0.2 };

/** Where a pit lies between the middle (0) and the corner (1), and where the skin beside it does. */
const PIT_AT = 0.95;
const BESIDE_PIT = 1.4;
/** Half length of a pit towards the middle and away from it, and its half height; half widths. */
const PIT_LENGTH = { inwards: 0.17, outwards: 0.1 } as const;
const PIT_HEIGHT = 0.055;
/** The soft shadow round it, share of its depth; above the corner by this; its half axes. */
const HALO = { share: 0.18, above: 0.04, length: 0.22, height: 0.12 } as const;

/** Distance of the shadow from the edge of the lower lip, and its half height; eye distances. */
const BELOW_AT = 0.03;
const BELOW_HEIGHT = 0.036;
/** Where the skin below it is seen, eye distances. */
const BESIDE_BELOW = 0.14;
/** Its half length, half widths of the mouth. */
const BELOW_LENGTH = 0.45;

/**
 * Draws what is missing of these shadows, in place.
 * @param points landmarks of `image`, with closed lips
 * @param amount 0..1
 * @param softness 1 in a sharp picture, more in an enlarged one
 */
export function drawLipShadows(
  image: RgbImage,
  points: Landmarks,
  amount: number,
  softness: number,
): void {
  const frame = new MouthFrame(points);
  const { halfWidth, eyeDistance } = frame;
  const line = (indices: readonly number[]): Curve => curveThrough(frame.local(points, indices));
  const [seam, edge] = [line(LOWER_INNER), line(LOWER_OUTER)];
  const at = (u: number, v: number): number => lightAt(image, frame, u, v, 0.05 * halfWidth);
  const missing = ({ target, depth }: Shadow, seen: number, beside: number): number =>
    amount * clamp(1 - (target * beside) / Math.max(1, seen), 0, depth);

  const pits = frame.local(points, MOUTH_CORNERS).map((corner) => {
    const side = Math.sign(corner.x);
    const u = PIT_AT * corner.x;
    const v = seam(u);
    const skin = at(BESIDE_PIT * side * halfWidth, corner.y);
    const slope = clamp((v - seam(0.85 * u)) / (0.15 * u), -0.6, 0.6);
    return { u, v, side, slope, depth: missing(PIT, at(u, v), skin) };
  });
  const along = [-0.3, -0.15, 0, 0.15, 0.3].map((r) => r * halfWidth);
  const mean = (below: number): number =>
    median(along.map((u) => at(u, edge(u) + below * eyeDistance)));
  const below = missing(BELOW, mean(BELOW_AT), mean(BESIDE_BELOW));

  const [wide, high] = [1.6 * halfWidth, 1.2 * halfWidth];
  for (let y = Math.floor(frame.y - wide); y < frame.y + wide; y++) {
    for (let x = Math.floor(frame.x - wide); x < frame.x + wide; x++) {
      const point = frame.toLocal(x + 0.5, y + 0.5);
      if (!isInside(image, x, y) || Math.abs(point.y) > high) {
        continue;
      }
      const depth = Math.max(
        ...pits.map((pit) => pit.depth * pitShade(point, pit, halfWidth, softness)),
        below * belowShade(point, edge, frame, softness),
      );
      shadePixel(image, y * image.width + x, 1 - depth);
    }
  }
}

const isInside = ({ width, height }: RgbImage, x: number, y: number): boolean =>
  x >= 0 && y >= 0 && x < width && y < height;

const bell = (x: number, width: number): number => Math.exp(-((x / width) ** 2));

/** Where a pit is, its side (-1 left, 1 right), and the slope of the seam that ends in it. */
interface Pit {
  readonly u: number;
  readonly v: number;
  readonly side: number;
  readonly slope: number;
}

/** A pit and the shadow round it, 0..1. */
function pitShade({ x, y }: Point, pit: Pit, halfWidth: number, softness: number): number {
  const outwards = ((x - pit.u) * pit.side) / halfWidth;
  const down = (y - pit.v - pit.slope * (x - pit.u)) / halfWidth;
  const length = outwards > 0 ? PIT_LENGTH.outwards : PIT_LENGTH.inwards;
  const height = Math.max(PIT_HEIGHT, softness / halfWidth);
  const core = bell(outwards, length) * bell(down, height);
  const halo = bell(outwards, HALO.length) * bell(down + HALO.above, HALO.height);
  return Math.min(1, core + HALO.share * halo);
}

/** The shadow below the lower lip, 0..1. */
function belowShade(
  { x, y }: Point,
  edge: Curve,
  { halfWidth, eyeDistance }: MouthFrame,
  softness: number,
): number {
  const height = Math.max(BELOW_HEIGHT, softness / eyeDistance);
  const from = (y - edge(clamp(x, -0.95 * halfWidth, 0.95 * halfWidth))) / eyeDistance;
  return bell(from - BELOW_AT, height) * bell(x / halfWidth, BELOW_LENGTH);
}

/** Median luma of a square round (u, v) with sides of 2 `radius` pixels. */
function lightAt(image: RgbImage, frame: MouthFrame, u: number, v: number, radius: number): number {
  const { x, y } = frame.toPicture(u, v);
  const lumas: number[] = [];
  for (let dy = -radius; dy <= radius; dy++) {
    for (let dx = -radius; dx <= radius; dx++) {
      const [column, row] = [Math.floor(x + dx), Math.floor(y + dy)];
      if (isInside(image, column, row)) {
        lumas.push(lumaAt(image, row * image.width + column));
      }
    }
  }
  return median(lumas);
}

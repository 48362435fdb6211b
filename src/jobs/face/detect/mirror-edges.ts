// Continues a portrait beyond its edges: mirrored, and the more blurred the farther out.
import {
  channel,
  clamp,
  type Plane,
  plane,
  type Pyramid,
  type RgbImage,
  type Square,
} from '../imaging/image.ts';
import { blur } from '../imaging/mask.ts';
import { sampleCubic } from '../imaging/sample-cubic.ts';

/** Sigmas of the blurred copies, pixels. */
const SIGMAS = [0, 2, 5, 12] as const;
/** Sigma of the blur, share of the distance from the edge. */
const SPREAD = 0.16;
/** How much of the finest texture stays however far out. */
const GRAIN = 0.5;
/** Where less of the portrait than this share is free of the head, it is mirrored wider. */
const LEAST_FREE = 0.3;

/** A rectangle in a picture, pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/**
 * Fills the pixels whose `known` is 0.
 * @param image sampled from the `square` of the portrait
 * @param head where nothing is mirrored, pixels of the portrait
 */
export function mirrorEdges(
  image: RgbImage,
  known: Uint8Array,
  portrait: Pyramid,
  square: Square,
  head: Box,
): void {
  const { width, height } = image;
  const { image: source, factor } = portrait.level(square.side / width);
  const scale = square.side / width;
  const [cos, sin] = [Math.cos(square.angle) * scale, Math.sin(square.angle) * scale];
  const at = (i: number): { readonly x: number; readonly y: number } => {
    const [u, v] = [(i % width) + 0.5 - width / 2, Math.floor(i / width) + 0.5 - height / 2];
    return { x: square.cx + cos * u - sin * v, y: square.cy + sin * u + cos * v };
  };
  const { width: across, height: down } = portrait.image;
  const corners = [0, width - 1, width * (height - 1), width * height - 1].map(at);
  const over = {
    left: Math.max(0, ...corners.map(({ x }) => -x)),
    right: Math.max(0, ...corners.map(({ x }) => x - across)),
    top: Math.max(0, ...corners.map(({ y }) => -y)),
    bottom: Math.max(0, ...corners.map(({ y }) => y - down)),
  };
  /** How far inside the portrait lies what is shown so far outside of it. */
  const slope = (free: number, outside: number): number =>
    clamp(free / Math.max(1, outside), LEAST_FREE, 1);
  const [toLeft, toRight, toTop, toBottom] = [
    slope(head.left, over.left),
    slope(across - head.right, over.right),
    slope(head.top, over.top),
    slope(down - head.bottom, over.bottom),
  ];
  const far = plane(width, height);
  for (let i = 0; i < known.length; i++) {
    if (known[i]) {
      continue;
    }
    const { x, y } = at(i);
    const [outX, outY] = [Math.max(-x, x - across, 0), Math.max(-y, y - down, 0)];
    const fromX = x < 0 ? -x * toLeft : x > across ? across - outX * toRight : x;
    const fromY = y < 0 ? -y * toTop : y > down ? down - outY * toBottom : y;
    sampleCubic(source, fromX / factor - 0.5, fromY / factor - 0.5, image.data, i * 3);
    far.data[i] = Math.hypot(outX, outY) / scale;
  }
  soften(image, far);
}

/** Blurs in place what lies `far` outside, pixels. */
function soften(image: RgbImage, far: Plane): void {
  for (let c = 0; c < 3; c++) {
    const sharp = channel(image, c);
    const levels = SIGMAS.map((sigma) => (sigma > 0 ? blur(sharp, sigma) : sharp));
    const fine = blur(sharp, 0.8);
    for (let i = 0; i < far.data.length; i++) {
      if (far.data[i] === 0) {
        continue;
      }
      const sigma = Math.min(SIGMAS[3], SPREAD * far.data[i]!);
      const k = sigma < SIGMAS[1] ? 0 : sigma < SIGMAS[2] ? 1 : 2;
      const share = (sigma - SIGMAS[k]) / (SIGMAS[k + 1]! - SIGMAS[k]);
      const soft = levels[k]!.data[i]! * (1 - share) + levels[k + 1]!.data[i]! * share;
      const grain = GRAIN * Math.min(1, sigma) * (sharp.data[i]! - fine.data[i]!);
      image.data[i * 3 + c] = clamp(soft + grain + 0.5, 0, 255);
    }
  }
}

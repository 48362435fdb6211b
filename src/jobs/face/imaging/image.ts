// Pictures and planes in memory, and the few operations on them that face creation needs.

/** Interleaved 8-bit RGB, row by row; shape [height][width][3]. */
export interface RgbImage {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
}

/** One float per pixel, row by row: a mask (0..1), luma or coverage. */
export interface Plane {
  readonly width: number;
  readonly height: number;
  readonly data: Float32Array;
}

/** A black picture. */
export const rgbImage = (width: number, height: number): RgbImage => ({
  width,
  height,
  data: new Uint8Array(width * height * 3),
});
/** A plane of zeros. */
export const plane = (width: number, height: number): Plane => ({
  width,
  height,
  data: new Float32Array(width * height),
});

/** One channel of a picture, in units of `unit`. */
export function channel({ width, height, data }: RgbImage, c: number, unit = 1): Plane {
  const out = plane(width, height);
  for (let i = 0, at = c; i < out.data.length; i++, at += 3) {
    out.data[i] = data[at]! / unit;
  }
  return out;
}

/** The product of two planes, value by value. */
export function product(a: Plane, b: Plane): Plane {
  const out = plane(a.width, a.height);
  for (let i = 0; i < out.data.length; i++) {
    out.data[i] = a.data[i]! * b.data[i]!;
  }
  return out;
}

/** `value` limited to low..high. */
export const clamp = (value: number, low: number, high: number): number =>
  value < low ? low : value > high ? high : value;

/** @returns `a` for a share of 0, `b` for 1, linear between */
export const mix = (a: number, b: number, share: number): number => a + (b - a) * share;

/** Hermite step from 0 at `from` to 1 at `to`; `from` may be the larger. */
export function smoothstep(from: number, to: number, value: number): number {
  const t = clamp((value - from) / (to - from), 0, 1);
  return t * t * (3 - 2 * t);
}

/** A square in a picture: centre and side in pixels, rotated clockwise by `angle` radians. */
export interface Square {
  readonly cx: number;
  readonly cy: number;
  readonly side: number;
  readonly angle: number;
}

/** Halves both sides of a picture by averaging 2x2 blocks. */
export function halve(image: RgbImage): RgbImage {
  const out = rgbImage(image.width >> 1, image.height >> 1);
  const stride = image.width * 3;
  const { data } = image;
  let at = 0;
  for (let y = 0; y < out.height; y++) {
    let from = 2 * y * stride;
    for (let x = 0; x < out.width; x++, from += 6) {
      for (let c = 0; c < 3; c++) {
        out.data[at++] =
          (data[from + c]! +
            data[from + 3 + c]! +
            data[from + stride + c]! +
            data[from + stride + 3 + c]! +
            2) >>
          2;
      }
    }
  }
  return out;
}

/** Half the size of a plane: the mean of four values each. */
export function halvePlane({ width, height, data }: Plane): Plane {
  const out = plane(width >> 1, height >> 1);
  for (let y = 0, i = 0; y < out.height; y++) {
    for (let x = 0; x < out.width; x++, i++) {
      const at = 2 * (y * width + x);
      out.data[i] = (data[at]! + data[at + 1]! + data[at + width]! + data[at + width + 1]!) / 4;
    }
  }
  return out;
}

/**
 * An image pyramid. Each level is made on first use, so that sampling at any scale skips no pixels.
 */
export class Pyramid {
  readonly #levels: RgbImage[];

  constructor(image: RgbImage) {
    this.#levels = [image];
  }

  get image(): RgbImage {
    return this.#levels[0]!;
  }

  /**
   * The level with between one and two of its pixels per output pixel.
   * @param scale source pixels per output pixel
   * @returns `factor` is the number of source pixels per pixel of the level
   */
  level(scale: number): { readonly image: RgbImage; readonly factor: number } {
    let index = 0;
    while (scale >= 2) {
      const last = this.#levels[index]!;
      if (Math.min(last.width, last.height) < 16) {
        break;
      }
      this.#levels[index + 1] ??= halve(last);
      index++;
      scale /= 2;
    }
    return { image: this.#levels[index]!, factor: 2 ** index };
  }

  /**
   * Samples `square` bilinearly into `size` x `size` pixels as float RGB, black outside the
   * picture. Each value v of 0..255 becomes v * gain + offset.
   */
  sample(square: Square, size: number, gain: number, offset: number): Float32Array {
    const { image, factor } = this.level(square.side / size);
    const { width, height, data } = image;
    const out = new Float32Array(size * size * 3);
    const step = square.side / size / factor;
    const cos = Math.cos(square.angle) * step;
    const sin = Math.sin(square.angle) * step;
    let at = 0;
    for (let y = 0; y < size; y++) {
      for (let x = 0; x < size; x++, at += 3) {
        const u = x + 0.5 - size / 2;
        const v = y + 0.5 - size / 2;
        const sx = square.cx / factor + cos * u - sin * v - 0.5;
        const sy = square.cy / factor + sin * u + cos * v - 0.5;
        const x0 = Math.floor(sx);
        const y0 = Math.floor(sy);
        const fx = sx - x0;
        const fy = sy - y0;
        for (let corner = 0; corner < 4; corner++) {
          const px = x0 + (corner & 1);
          const py = y0 + (corner >> 1);
          if (px < 0 || py < 0 || px >= width || py >= height) {
            continue;
          }
          const weight = (corner & 1 ? fx : 1 - fx) * (corner >> 1 ? fy : 1 - fy) * gain;
          const from = (py * width + px) * 3;
          out[at] = out[at]! + weight * data[from]!;
          out[at + 1] = out[at + 1]! + weight * data[from + 1]!;
          out[at + 2] = out[at + 2]! + weight * data[from + 2]!;
        }
        out[at] = out[at]! + offset;
        out[at + 1] = out[at + 1]! + offset;
        out[at + 2] = out[at + 2]! + offset;
      }
    }
    return out;
  }
}

/**
 * Bilinear value of a plane. Pixel centres lie at integers; outside the plane the edge is repeated.
 */
export function sampleAt({ width, height, data }: Plane, x: number, y: number): number {
  const cx = clamp(x, 0, width - 1.001);
  const cy = clamp(y, 0, height - 1.001);
  const i = Math.floor(cy) * width + Math.floor(cx);
  const fx = cx - Math.floor(cx);
  const fy = cy - Math.floor(cy);
  return (
    (data[i]! * (1 - fx) + data[i + 1]! * fx) * (1 - fy) +
    (data[i + width]! * (1 - fx) + data[i + width + 1]! * fx) * fy
  );
}

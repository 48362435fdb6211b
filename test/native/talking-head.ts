// A synthetic talking head for codec tests and benches: a textured background without motion, a
// head that sways, a mouth that opens, eyes that blink.
import { i420Bytes, macroblocks } from '../../src/media/picture.ts';

/** Deterministic noise from 0 to 1 (mulberry32). */
export function randomSource(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** @returns value noise of several octaves: width * height numbers from 0 to 1 */
function texture(
  width: number,
  height: number,
  seed: number,
  octaves: readonly (readonly [cell: number, weight: number])[],
): Float32Array {
  const out = new Float32Array(width * height);
  for (const [cell, weight] of octaves) {
    const random = randomSource(seed + cell);
    const columns = Math.ceil(width / cell) + 2;
    const grid = Float32Array.from({ length: columns * (Math.ceil(height / cell) + 2) }, random);
    for (let y = 0; y < height; y++) {
      const gy = Math.floor(y / cell),
        fy = (y % cell) / cell;
      for (let x = 0; x < width; x++) {
        const gx = Math.floor(x / cell),
          fx = (x % cell) / cell,
          g = gy * columns + gx;
        const top = grid[g]! * (1 - fx) + grid[g + 1]! * fx,
          bottom = grid[g + columns]! * (1 - fx) + grid[g + columns + 1]! * fx;
        out[y * width + x]! += weight * (top * (1 - fy) + bottom * fy);
      }
    }
  }
  return out;
}

/** A clip, drawn frame by frame into one buffer, as the renderer does. */
export class TalkingHead {
  readonly width: number;
  readonly height: number;
  readonly picture: Uint8Array;
  /** One byte per macroblock: 1 where the last `draw` changed the picture. */
  readonly dirty: Uint8Array;
  readonly #previous: Uint8Array;
  readonly #skin: Float32Array;

  constructor(width = 512, height = 512) {
    this.width = width;
    this.height = height;
    this.picture = new Uint8Array(i420Bytes(width, height)).fill(128);
    const background = texture(width, height, 1, [
      [96, 110],
      [24, 40],
      [6, 16],
      [2, 8],
    ]);
    for (let i = 0; i < width * height; i++) {
      this.picture[i] = 30 + background[i]!;
    }
    this.#skin = texture(width, height, 2, [
      [64, 70],
      [16, 30],
      [4, 20],
      [2, 12],
    ]);
    this.dirty = new Uint8Array(macroblocks(width, height)).fill(1);
    this.#previous = this.picture.slice();
  }

  /** Draws frame `index` at 30 fps. The same index gives the same picture. */
  draw(index: number): void {
    const { width, height, picture } = this;
    this.#previous.set(picture);
    const t = index / 30;
    const dx = 3 * Math.sin(t * 1.1) * (width / 512),
      dy = 1.5 * Math.sin(t * 1.7 + 1) * (width / 512);
    const open = Math.max(0, Math.sin(t * 17) * Math.sin(t * 3.1)),
      blink = index % 97 < 4 ? 1 : 0;
    const cx = width / 2,
      cy = height * 0.48,
      rx = width * 0.27,
      ry = height * 0.34;
    for (let y = Math.floor(cy - ry) - 6; y < cy + ry + 6; y++) {
      for (let x = Math.floor(cx - rx) - 8; x < cx + rx + 8; x++) {
        const u = (x - cx - dx) / rx,
          v = (y - cy - dy) / ry,
          r2 = u * u + v * v;
        if (r2 > 1) {
          if (r2 < 1.12) {
            this.#plot(x, y, 70 + (x & 3), 120, 134);
          }
          continue;
        }
        const sx = x - dx,
          sy = y - dy,
          ix = Math.floor(sx),
          iy = Math.floor(sy),
          fx = sx - ix,
          fy = sy - iy,
          at = iy * width + ix,
          s = this.#skin;
        const grain =
          (s[at]! * (1 - fx) + s[at + 1]! * fx) * (1 - fy) +
          (s[at + width]! * (1 - fx) + s[at + width + 1]! * fx) * fy;
        let luma = 95 + grain * 0.7 - 40 * r2,
          cb = 108,
          cr = 152;
        const mouth = (u / 0.36) ** 2 + ((v - 0.5) / (0.03 + 0.16 * open)) ** 2;
        if (mouth < 1) {
          luma = 35 + 20 * mouth;
          cb = 120;
          cr = 150;
        } else if (mouth < 1.6) {
          luma -= 25;
          cr = 165;
        }
        for (const side of [-0.42, 0.42]) {
          const eye = ((u - side) / 0.16) ** 2 + ((v + 0.2) / (blink ? 0.012 : 0.07)) ** 2;
          if (eye < 1) {
            luma = eye < 0.25 ? 30 : 200;
            cb = cr = 128;
          }
        }
        this.#plot(x, y, luma, cb, cr);
      }
    }
    this.#markDirty();
  }

  #plot(x: number, y: number, luma: number, cb: number, cr: number): void {
    const { width, height, picture } = this;
    picture[y * width + x] = luma;
    if ((x | y) & 1) {
      return;
    }
    const chroma = width * height + (y >> 1) * (width >> 1) + (x >> 1);
    picture[chroma] = cb;
    picture[chroma + ((width * height) >> 2)] = cr;
  }

  #markDirty(): void {
    const { width, height, picture, dirty } = this,
      columns = Math.ceil(width / 16),
      previous = this.#previous;
    dirty.fill(0);
    const compare = (offset: number, w: number, h: number, block: number): void => {
      for (let y = 0; y < h; y++) {
        for (let x = 0; x < w; x++) {
          const i = offset + y * w + x;
          if (picture[i] !== previous[i]) {
            dirty[Math.floor(y / block) * columns + Math.floor(x / block)] = 1;
          }
        }
      }
    };
    const luma = width * height,
      half = width >> 1,
      halfHeight = height >> 1;
    compare(0, width, height, 16);
    compare(luma, half, halfHeight, 8);
    compare(luma + half * halfHeight, half, halfHeight, 8);
  }
}
